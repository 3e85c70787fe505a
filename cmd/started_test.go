package cmd

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

// A command or a hook that has exited is not asked to end, though something that
// it started still holds its output: that is no timeout.
func TestWhatHasExitedIsNotTerminated(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := proc.Start(proc.Spec{
		Argv: []string{"sh", "-c", "sleep 300 &"}, Group: proc.New, Stdout: proc.Sink{Tee: true}, WaitDelay: time.Hour,
	})
	must(t, err)
	t.Cleanup(func() {
		must(t, p.Kill())
		<-p.Done()
		p.Close()
	})
	<-p.Exited()
	for _, running := range []exec.Process{&process{started: started{p}}, &hookProcess{started{p}}} {
		if err := running.Terminate(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%T.Terminate() after the exit = %v, want %v", running, err, os.ErrProcessDone)
		}
	}
	if !p.GroupAlive() {
		t.Error("what was left behind has ended")
	}
}
