package proc_test

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/exec/proc"
)

func TestOnlyInheritedDescriptorsReachTheChild(t *testing.T) { // scenarios 69 and 70
	in, hold := piped(t, "")
	defer hold.Close()
	kept, w, err := os.Pipe() // another process's pipe, inherited by us and so by all
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	defer w.Close()
	if _, err := unix.FcntlInt(kept.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	want := bareDescriptors(t)

	// Things of ours that are open meanwhile: a spool's file, a replay, another
	// attempt's pipes.
	var spool proc.Spool
	if _, err := spool.Write(make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	replay := proc.NewInput(in, proc.InputReplay, 100)
	if _, err := replay.Begin(); err != nil {
		t.Fatal(err)
	}
	other := helper("hang:")
	other.Stderr.Tee = true
	other.Group = proc.New
	start(t, other)

	for range 2 {
		spec := helper("fds:")
		spec.Stdin = in
		spec.Stdout.Tee = true
		spec.Stderr.Tee = true
		spec.Group = proc.New
		got := strings.Fields(string(run(t, spec).Stdout))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("descriptors differ from those of a bare child (-want +got):\n%s", diff)
		}
		if !slices.Contains(got, strconv.Itoa(int(kept.Fd()))) {
			t.Errorf("descriptors = %q, want the inherited %d among them", got, kept.Fd())
		}
	}
	if err := replay.End(); err != nil {
		t.Error(err)
	}
}

func TestDescriptorLimitIsTheUsers(t *testing.T) { // scenario 71
	// The Go runtime raises the soft limit of this test; the child must see
	// what the shell that started us has set.
	spec := proc.Spec{Argv: []string{"/bin/sh", "-c", `ulimit -Sn 48; exec "$@"`, "sh", self(), "nested:ulimit -Sn"}}
	spec.Env = helperEnviron()
	spec.Stdout.Tee = true
	if got := strings.TrimSpace(string(run(t, spec).Stdout)); got != "48" {
		t.Errorf("soft limit in the child = %s, want 48", got)
	}
}

func TestStartedWithStandardDescriptorsClosed(t *testing.T) { // scenarios 40 and 68
	spec := proc.Spec{Argv: []string{"/bin/sh", "-c", `exec "$@" 0<&- 1>&- 2>&-`, "sh", self(), "relay:exit 3"}}
	spec.Env = helperEnviron()
	if got := run(t, spec); got.Code != 3 {
		t.Errorf("code = %d, want 3", got.Code)
	}
}

func TestIgnoredSignalsOfTheParent(t *testing.T) { // scenarios 18, 19, 20 and 40
	// A shell with these signals ignored starts a helper, which starts a shell
	// through this package. What Go keeps ignored is its documented limit.
	spec := proc.Spec{Argv: []string{
		"/bin/sh", "-c", `trap '' HUP INT QUIT TERM PIPE CHLD; exec "$@"`, "sh",
		self(), `relay:for s in HUP INT QUIT TERM PIPE; do (kill -$s $(exec sh -c 'echo $PPID'); echo $s kept); done; exit 3`,
	}}
	spec.Env = helperEnviron()
	spec.Stdout.Tee = true
	got := run(t, spec)
	if want := "HUP kept\nINT kept\n"; got.Code != 3 || string(got.Stdout) != want {
		t.Errorf("code, still ignored in the child = %d, %q, want 3, %q", got.Code, got.Stdout, want)
	}
}

func TestRuntimeSignalsStayHere(t *testing.T) { // scenario 16
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGURG)
	defer signal.Stop(c)
	spec := helper("report:URG,IO", `out:ready\n`, "hang:")
	spec.Env = append(spec.Env, "GODEBUG=asyncpreemptoff=1") // else it sends them to itself
	spec.Group = proc.New
	p, out := startRead(t, spec)
	out.want("ready")
	for range 50 {
		runtime.GC() // preempts by SIGURG
	}
	send(t, p, syscall.SIGIO)
	out.want("got SIGIO")
}

func TestChildSurvivesThreadTurnover(t *testing.T) { // scenario 38
	// Start runs on a thread that lives on, as its contract says; all others
	// may come and go.
	started := make(chan *proc.Process)
	release := make(chan struct{})
	w, out := pipe(t)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		spec := helper(`out:ready\n`, "report:TERM,IO", `out:set\n`, "hang:")
		spec.Stdout.File = w
		p, err := proc.Start(spec)
		if err != nil {
			t.Error(err)
			close(started)
			return
		}
		started <- p
		<-release
	}()
	p := <-started
	if p == nil {
		t.FailNow()
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		finish(t, p)
		close(release)
	})
	out.want("ready")
	out.want("set")
	for range 20 {
		var threads sync.WaitGroup
		for range 20 {
			threads.Go(func() { runtime.LockOSThread() }) // never unlocked: the thread ends
		}
		threads.Wait()
	}
	send(t, p, syscall.SIGIO)
	out.want("got SIGIO")
}

// bareDescriptors returns what the same child has when os/exec starts it, its
// runtime's own descriptors included.
func bareDescriptors(t *testing.T) []string {
	t.Helper()
	bare := exec.Command(self(), "fds:")
	bare.Env = helperEnviron()
	bare.Stdin = os.Stdin
	text, err := bare.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}
