package cmd_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Scenario 6: a signal between the start of retryx and that of the command. A
// budget's record that somebody else has locked makes the moment long enough.
// Whether a signal hit it cannot be seen from outside, so it is tried until one
// did; whatever it hit, the command has not run without an attempt being told of.
func TestSignalBeforeTheFirstAttempt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record := filepath.Join(dir, "state", "budgets", "locked")
	seen := false
	for try := 0; !seen && try < 100; try++ {
		tr := plant(t, dir, "retryx", "budget", "set", "locked", "--state-dir", "state", "--capacity", "3")
		if got := tr.ended(); got != "0" {
			t.Fatalf("budget set ended with %s", got)
		}
		lock, err := os.Open(record)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "out"))
		tr = plant(t, dir, "retryx", "--state-dir", "state", "-b", "locked", "--budget-capacity", "5", "--outcome", "out", "--",
			"sh", "-c", "echo run >>runs; exec sleep 30")
		<-time.After(time.Duration(try%20) * 15 * time.Millisecond)
		tr.signal(syscall.SIGTERM)
		ended := tr.ended()
		tr.gone()
		lock.Close()
		if ended != "TERM" {
			t.Fatalf("ended with %s, want death by TERM", ended)
		}
		if tr.read("out") == "" { // before retryx listened
			continue
		}
		doc := tr.outcome("out", "outcome=cancelled", "reason=signal", "exit_status=143")
		seen = field(doc, "attempt_count") == "0"
		if seen && tr.read("runs") != "" {
			t.Error("the command has run, want no attempt after the signal")
		}
		_ = os.Remove(filepath.Join(dir, "runs"))
	}
	if !seen {
		t.Error("no signal came before the first attempt")
	}
}

// Scenario 16: URG is what Go's scheduler interrupts itself with. However many
// of them retryx gets while it is busy, the command gets none, and none of them
// cancels anything.
func TestSignalsOfTheRuntimeStayHere(t *testing.T) {
	t.Parallel()
	tr := wrap(t, "--outcome", "out", "--", "sh", "-c",
		"trap 'echo urgent >>got' URG; echo ready >ready; until test -e stop; do printf '%s\\n' '503 Service Unavailable' >&2; done")
	tr.await("ready", "ready", 1)
	for range 500 {
		tr.signal(syscall.SIGURG)
	}
	tr.write("stop", "")
	if got := tr.ended(); got != "0" {
		t.Errorf("ended with %s, want 0", got)
	}
	tr.outcome("out", "outcome=success", "attempt_count=1")
	if got := tr.read("got"); got != "" {
		t.Errorf("the command got %q, want no URG", got)
	}
}
