package proc_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/exec/proc"
)

func TestChildDiesWithUs(t *testing.T) { // scenario 37
	// A helper starts a child through this package and tells its number; then
	// the helper is killed. The child's end is seen on the pipe both hold.
	spec := helper("parent:")
	p, out := startRead(t, spec)
	for range 2 { // in either order
		if line := out.line(); line != "ready" && !strings.HasPrefix(line, "child ") {
			t.Fatalf("line = %q, want the child's number and that it is ready", line)
		}
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	out.want("quit")
	out.ended()
}

func TestStandWithoutTerminal(t *testing.T) { // scenario 49
	spec := helper("stand:")
	spec.Stdout.Tee = true
	spec.Argv = append([]string{"setsid"}, spec.Argv...)
	if got := string(run(t, spec).Stdout); got != "no terminal\n" {
		t.Errorf("Stand() without a terminal = %q, want no terminal", got)
	}
}

func TestOrphansOfOthersAreNotReaped(t *testing.T) { // scenario 39
	// As a subreaper this process gets the orphan, as PID 1 would. Following
	// our own child must not take the stranger's status away.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	in, hold := piped(t, "")
	spec := helper(`spawn:pid:|cat:|exit:7`, "exit:3")
	spec.Stdin = in
	p, out := startRead(t, spec)
	var orphan int
	if _, err := fmt.Sscanf(out.line(), "%d", &orphan); err != nil {
		t.Fatal(err)
	}
	if got := finish(t, p); got.Code != 3 {
		t.Errorf("code = %d, want 3", got.Code)
	}
	hold.Close()
	out.ended()
	if got := run(t, helper("exit:4")); got.Code != 4 {
		t.Errorf("code of the next child = %d, want 4", got.Code)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(orphan, &status, 0, nil); err != nil || status.ExitStatus() != 7 {
		t.Errorf("status of the orphan = %d, %v, want 7: it was left to us", status.ExitStatus(), err)
	}
}

func TestZombiesOfAGroupAreNotAlive(t *testing.T) { // scenario 34
	// As PID 1 without an init, nobody reaps what a failed attempt left: its
	// zombies must not count, or each retry would wait for them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	spec := helper(`spawn:pid:|hang:`, "exit:1")
	spec.Group = proc.New
	p, out := startRead(t, spec)
	var orphan int
	if _, err := fmt.Sscanf(out.line(), "%d", &orphan); err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	if !p.GroupAlive() {
		t.Fatal("GroupAlive() = false, want true")
	}
	if !p.KillGroup() {
		t.Error("KillGroup() = false, want true: only a zombie is left")
	}
	if p.GroupAlive() {
		t.Error("GroupAlive() = true, want false: only a zombie is left")
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", orphan)); err != nil {
		t.Errorf("the zombie is gone (%v): this test shows nothing", err)
	}
	if _, err := syscall.Wait4(orphan, nil, 0, nil); err != nil {
		t.Error(err)
	}
}

func TestMemberIsAwaited(t *testing.T) { // rule "nothing polls for an exit"
	spec := helper(`out:ready\n`, "hang:")
	spec.Group = proc.New
	p, out := startRead(t, spec)
	out.want("ready")
	over := make(chan struct{})
	go func() {
		defer close(over)
		proc.AwaitMember(p.Pid(), 2*patience)
	}()
	select {
	case <-over:
		t.Fatal("AwaitMember returned while the member lives")
	case <-time.After(20 * time.Millisecond):
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, over, "notice of the member's end")
}
