package proc_test

import (
	"errors"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/retryx/retryx/exec/proc"
)

// groups are both modes by name, for subtests.
func groups() map[string]proc.Group {
	return map[string]proc.Group{"shared": proc.Shared, "new": proc.New}
}

func TestSignalReachesChildOnce(t *testing.T) { // scenarios 1, 2, 15 and 17
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"} {
				spec := helper("report:"+name+",IO", `out:ready\n`, "hang:")
				spec.Group = g
				p, out := startRead(t, spec)
				out.want("ready")
				send(t, p, signalNamed(name))
				out.want("got SIG" + name)
				send(t, p, syscall.SIGIO) // a second delivery would come before this
				out.want("got SIGIO")
			}
		})
	}
}

func TestDeathBySignal(t *testing.T) { // scenarios 1 and 2
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
				if signal.Ignored(sig) { // under nohup the child rightly ignores it too
					continue
				}
				spec := helper(`out:ready\n`, "hang:")
				spec.Group = g
				p, out := startRead(t, spec)
				out.want("ready")
				send(t, p, sig)
				if got := finish(t, p); got.Code != -1 || got.Signal != sig {
					t.Errorf("code, signal after %v = %d, %v, want -1, %v", sig, got.Code, got.Signal, sig)
				}
			}
		})
	}
}

func TestChildAnswersTerminate(t *testing.T) { // scenarios 7 and 8
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			spec := helper("quit:TERM=7", `out:ready\n`, "hang:")
			spec.Group = g
			p, out := startRead(t, spec)
			out.want("ready")
			if err := p.Terminate(); err != nil {
				t.Fatalf("Terminate() = %v, want nil", err)
			}
			out.want("quit")
			if got := finish(t, p); got.Code != 7 {
				t.Errorf("code = %d, want 7", got.Code)
			}
		})
	}
}

func TestKillEndsWhatIgnoresTerminate(t *testing.T) { // scenario 10
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			spec := helper("ignore:TERM", "report:CONT", `out:ready\n`, "hang:")
			spec.Group = g
			p, out := startRead(t, spec)
			out.want("ready")
			if err := p.Terminate(); err != nil {
				t.Fatalf("Terminate() = %v, want nil", err)
			}
			send(t, p, syscall.SIGCONT)
			out.want("got SIGCONT") // so TERM has passed without effect
			if err := p.Kill(); err != nil {
				t.Fatalf("Kill() = %v, want nil", err)
			}
			if got := finish(t, p); got.Signal != syscall.SIGKILL {
				t.Errorf("signal = %v, want %v", got.Signal, syscall.SIGKILL)
			}
		})
	}
}

func TestTerminateReachesStoppedChild(t *testing.T) { // scenario 13
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			spec := helper("quit:TERM=5", `out:ready\n`, "hang:")
			spec.Group = g
			p, out := startRead(t, spec)
			out.want("ready")
			send(t, p, syscall.SIGSTOP)
			awaitStop(t, p)
			if err := p.Terminate(); err != nil {
				t.Fatalf("Terminate() = %v, want nil", err)
			}
			if got := finish(t, p); got.Code != 5 {
				t.Errorf("code = %d, signal = %v, want 5, none: its handler runs", got.Code, got.Signal)
			}
		})
	}
}

func TestNoContForRunningChildInSharedGroup(t *testing.T) { // scenario 13
	spec := helper("report:TERM,CONT,WINCH", `out:ready\n`, "hang:")
	p, out := startRead(t, spec)
	out.want("ready")
	if err := p.Terminate(); err != nil {
		t.Fatalf("Terminate() = %v, want nil", err)
	}
	out.want("got SIGTERM")
	send(t, p, syscall.SIGWINCH) // a CONT would come before this
	out.want("got SIGWINCH")
}

func TestStopAndContinueGroup(t *testing.T) { // scenario 14
	spec := helper("report:CONT", `spawn:report:CONT|out:ready\n|hang:`, "hang:")
	spec.Group = proc.New
	p, out := startRead(t, spec)
	out.want("ready")
	send(t, p, syscall.SIGTSTP)
	awaitStop(t, p)
	send(t, p, syscall.SIGCONT)
	out.want("got SIGCONT")
	out.want("got SIGCONT")
}

func TestSignalReachesGrandchild(t *testing.T) { // scenario 28
	spec := helper(`spawn:out:ready\n|hang:`, "hang:")
	spec.Group = proc.New
	p, out := startRead(t, spec)
	out.want("ready")
	if err := p.Terminate(); err != nil {
		t.Fatalf("Terminate() = %v, want nil", err)
	}
	if got := finish(t, p); got.Signal != syscall.SIGTERM {
		t.Errorf("signal = %v, want %v", got.Signal, syscall.SIGTERM)
	}
	out.ended()
}

func TestSharedSignalSparesGrandchild(t *testing.T) { // scenario 28, the other mode
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	spec := helper(`spawn:out:ready\n|cat:|out:alive\n`, "hang:")
	spec.Stdin = in
	p, out := startRead(t, spec)
	in.Close()
	out.want("ready")
	if err := p.Kill(); err != nil {
		t.Fatalf("Kill() = %v, want nil", err)
	}
	finish(t, p)
	hold.Close()
	out.want("alive")
}

func TestStragglersAreEnded(t *testing.T) { // scenario 29
	for _, test := range []struct {
		name string
		by   func(*proc.Process)
	}{{"by pidfd", func(*proc.Process) {}}, {"by number", (*proc.Process).ForgetPidfd}} {
		t.Run(test.name, func(t *testing.T) {
			spec := helper(`spawn:report:TERM|ignore:HUP|out:ready\n|hang:`, "exit:1")
			spec.Group = proc.New
			p, out := startRead(t, spec)
			out.want("ready")
			test.by(p)
			if got := finish(t, p); got.Code != 1 {
				t.Fatalf("code = %d, want 1", got.Code)
			}
			if !p.GroupAlive() {
				t.Fatal("GroupAlive() = false, want true: a member is left")
			}
			if err := p.EndGroup(); err != nil {
				t.Fatalf("EndGroup() = %v, want nil", err)
			}
			out.want("got SIGTERM")
			if !p.GroupAlive() {
				t.Fatal("GroupAlive() = false, want true: it ignores TERM")
			}
			if !p.KillGroup() {
				t.Error("KillGroup() = false, want true")
			}
			out.ended()
			if p.GroupAlive() {
				t.Error("GroupAlive() after KillGroup = true, want false")
			}
		})
	}
}

// A limit is for the whole group: its end is that of the last member, which a
// Kill after the child's end still reaches.
func TestTerminatedGroupIsFollowedToItsEnd(t *testing.T) { // scenario 28
	for _, test := range []struct {
		name, straggler string
		kill            bool
	}{
		{"it ignores TERM", "ignore:TERM", true},
		{"it takes its leave", "quit:TERM=0", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			in, leave := piped(t, "")
			spec := helper(`spawn:`+test.straggler+`|out:ready\n|readline:|out:over\n|hang:`, "hang:")
			spec.Stdin = in
			spec.Stderr.Tee = true
			spec.Group = proc.New
			p, out := startRead(t, spec)
			in.Close()
			out.want("ready")
			if err := p.Terminate(); err != nil {
				t.Fatal(err)
			}
			await(t, p.Exited(), "exit of the child")
			if test.kill {
				select {
				case <-p.Done():
					t.Fatal("Done while a member of the group lives")
				case <-time.After(20 * time.Millisecond):
				}
				writeString(t, leave, "\n")
				out.want("over") // so it has lived until now
				if err := p.Kill(); err != nil {
					t.Fatal(err)
				}
			} else {
				out.want("quit")
			}
			got := finish(t, p)
			if got.Unended || got.Signal != syscall.SIGTERM {
				t.Errorf("Unended, signal = %v, %v, want false, TERM", got.Unended, got.Signal)
			}
			if got.LeftOpen || got.WriteErr != nil {
				t.Errorf("LeftOpen, WriteErr = %v, %v, want false, nil: nobody is left", got.LeftOpen, got.WriteErr)
			}
			out.ended()
		})
	}
}

// What nobody asked to end is not waited for: a daemon was meant.
func TestGroupOfAnEndedChildIsNotAwaited(t *testing.T) { // scenario 30
	spec := helper(`spawn:out:ready\n|hang:`, "exit:3")
	spec.Group = proc.New
	p, out := startRead(t, spec)
	out.want("ready")
	if got := finish(t, p); got.Code != 3 || got.Unended || !p.GroupAlive() {
		t.Errorf("code, Unended, GroupAlive = %d, %v, %v, want 3, false, true", got.Code, got.Unended, p.GroupAlive())
	}
}

func TestNothingLeft(t *testing.T) { // scenario 34
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			spec := helper("exit:1")
			spec.Group = g
			p := start(t, spec)
			finish(t, p)
			if p.GroupAlive() {
				t.Error("GroupAlive() = true, want false")
			}
			for _, err := range []error{p.Signal(syscall.SIGTERM), p.Terminate(), p.Kill(), p.EndGroup()} {
				if err != nil {
					t.Errorf("signal to an ended process: %v, want nil", err)
				}
			}
			if !p.KillGroup() {
				t.Error("KillGroup() = false, want true")
			}
		})
	}
}

func TestSessionEscapes(t *testing.T) { // scenario 33
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	spec := helper(`session:out:ready\n|cat:|out:alive\n`, "hang:")
	spec.Stdin = in
	spec.Group = proc.New
	p, out := startRead(t, spec)
	in.Close()
	out.want("ready")
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	if p.GroupAlive() {
		t.Error("GroupAlive() = true, want false: the only one left has another group")
	}
	hold.Close()
	out.want("alive")
}

func TestUnstartedProcessIsNoTarget(t *testing.T) { // scenario 35
	var p proc.Process // its number is 0: our own group, for kill(2)
	for _, err := range []error{p.Signal(syscall.SIGKILL), p.Terminate(), p.Kill()} {
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("signal to process 0 = %v, want EINVAL", err)
		}
	}
}

func TestSignalRacesWithExit(t *testing.T) { // scenarios 4 and 36
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			for range rounds {
				spec := proc.Spec{Argv: []string{"/bin/true"}, Group: g}
				spec.Stderr.Tee = true
				p, err := proc.Start(spec)
				if err != nil {
					t.Fatal(err)
				}
				var senders sync.WaitGroup
				for _, f := range []func() error{p.Terminate, p.Kill, p.EndGroup} {
					senders.Go(func() {
						if err := f(); err != nil {
							t.Errorf("signal in the race: %v, want nil", err)
						}
					})
				}
				senders.Wait()
				got := finish(t, p)
				p.Close()
				if got.WaitErr != nil || got.Code != 0 && got.Signal == 0 {
					t.Fatalf("code, signal, WaitErr = %d, %v, %v, want 0 or a signal", got.Code, got.Signal, got.WaitErr)
				}
			}
		})
	}
}

func TestForeignChild(t *testing.T) { // scenario 25
	if os.Getuid() != 0 {
		t.Skip("needs root to start a child as somebody else")
	}
	// Root may signal everybody, so it is a helper that gives its rights up
	// after it has started a child as root.
	spec := helper("unprivileged:")
	spec.Stdout.Tee = true
	if got := string(run(t, spec).Stdout); got != "operation not permitted\n" {
		t.Errorf("signal to another user's child = %q, want EPERM", got)
	}
}

// awaitStop returns when the child is stopped.
func awaitStop(t *testing.T, p *proc.Process) {
	t.Helper()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		proc.AwaitStop(p.Pid())
	}()
	await(t, stopped, "stop of process "+strconv.Itoa(p.Pid()))
}
