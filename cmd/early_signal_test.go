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
	if got := plant(t, dir, "retryx", "budget", "set", "locked", "--state-dir", "state", "--capacity", "3").ended(); got != "0" {
		t.Fatalf("budget set ended with %s", got)
	}
	lock, err := os.Open(filepath.Join(dir, "state", "budgets", "locked"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	seen, moment := false, 20*time.Millisecond
	for try := 0; !seen && try < 100; try++ {
		_, _ = os.Remove(filepath.Join(dir, "out")), os.Remove(filepath.Join(dir, "runs"))
		tr := plant(t, dir, "retryx", "--state-dir", "state", "-b", "locked", "--budget-capacity", "5", "--outcome", "out", "--",
			"sh", "-c", "echo run >>runs; exec sleep 300")
		<-time.After(moment)
		tr.signal(syscall.SIGTERM)
		if ended := tr.ended(); ended != "TERM" {
			t.Fatalf("ended with %s, want death by TERM", ended)
		}
		tr.gone()
		if tr.read("out") == "" { // before retryx listened
			moment *= 2
			continue
		}
		doc := tr.outcome("out", "outcome=cancelled", "reason=signal", "exit_status=143")
		if field(doc, "attempt_count") != "0" { // after the wait for the lock
			moment = moment * 3 / 4
			continue
		}
		seen = true
		if tr.read("runs") != "" {
			t.Error("the command has run, want no attempt after the signal")
		}
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
