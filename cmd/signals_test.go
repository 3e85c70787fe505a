package cmd

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// However many signals wait that cancel nothing, one that cancels is heard.
func TestOthersCrowdOutNoCancel(t *testing.T) {
	if signal.Ignored(syscall.SIGTERM) {
		t.Skip("TERM is ignored here")
	}
	heard := listen(false)
	t.Cleanup(func() { // INT and HUP stay caught, as other tests want them to be
		signal.Reset(syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT)
	})
	others := []syscall.Signal{syscall.SIGUSR1, syscall.SIGWINCH}
	patience := time.NewTimer(time.Minute)
	for i := range cap(heard.others) {
		raise(t, others[i%len(others)])
		for len(heard.others) <= i { // equal ones that wait together would be one to the system
			select {
			case <-patience.C:
				t.Fatalf("%d signals were heard, want %d", len(heard.others), cap(heard.others))
			case <-time.After(time.Millisecond):
			}
		}
	}
	raise(t, syscall.SIGTERM)
	select {
	case sig := <-heard.cancels:
		if sig != syscall.SIGTERM {
			t.Errorf("heard %v, want %v", sig, syscall.SIGTERM)
		}
	case <-time.After(10 * time.Second):
		t.Error("TERM behind many others was not heard")
	}
}

func raise(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}
