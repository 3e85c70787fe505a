package faulttest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/statefile"
)

// stopped is a process that was stopped while it held the record's lock.
type stopped struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func stopHolder(t *testing.T, dir string) *stopped {
	t.Helper()
	h := &stopped{cmd: play(partHolder, dir)}
	h.cmd.Stderr = os.Stderr
	var out io.ReadCloser
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = h.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	h.out = bufio.NewReader(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	})
	if line, err := h.out.ReadString('\n'); line != "held\n" || err != nil {
		t.Fatalf("the holder wrote %q, %v, want held", line, err)
	}
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(h.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the holder is at status %#x, %v, want it stopped", status, err)
	}
	return h
}

// resume lets the holder go on and write, and then take a token; it returns what
// the holder says of that.
func (h *stopped) resume(t *testing.T) string {
	t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(h.in, "\n"); err != nil {
		t.Fatal(err)
	}
	line, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// longest is how long an operation may seem to take that waits for wait, on a
// machine that is busy with other things.
func longest(wait time.Duration) time.Duration { return 20 * wait }

// A process that is stopped while it holds the lock keeps it. Others wait as long
// as they should and no longer, may look meanwhile, and change nothing; when it
// goes on it writes what it meant to, and nothing was lost or paid twice.
func TestHolderStopped(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	stock(t, dir, 10)
	h := stopHolder(t, dir)
	s := store(dir)

	begun := time.Now()
	_, err := s.Withdraw(t.Context(), account(), 0)
	if took := time.Since(begun); !errors.Is(err, statefile.ErrBusy) || took < filestore.LockWait || took > longest(filestore.LockWait) {
		t.Errorf("Withdraw() = %v after %v, want ErrBusy after %v", err, took, filestore.LockWait)
	}
	begun = time.Now()
	_, err = s.Settle(t.Context(), account(), budget.Settling{Bonus: true}, 0)
	if took := time.Since(begun); !errors.Is(err, statefile.ErrBusy) || took < filestore.BonusWait || took > longest(filestore.LockWait) {
		t.Errorf("Settle(bonus) = %v after %v, want ErrBusy after %v", err, took, filestore.BonusWait)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Withdraw(ctx, account(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Withdraw() after the end of its context = %v, want that", err)
	}
	if r := balance(t, dir); r.Bucket.Tokens != tokens(10) || r.Counters.Granted != 10 {
		t.Errorf("the record says %+v, want it as it was", r)
	}

	if got, want := h.resume(t), fmt.Sprint(true, int64(tokens(9)), " ok"); got != want {
		t.Errorf("the holder says %q, want %q", got, want)
	}
	if r := balance(t, dir); r.Bucket.Tokens != tokens(9) || r.Counters.Granted != 11 || r.Counters.Denied != 0 {
		t.Errorf("the record says %+v, want the holder's one token gone", r)
	}
}

// When the record is removed under a holder that is stopped, which is how to reset
// it by hand, the old file is the holder's and nobody else's: what it writes there
// never reaches the new one.
func TestHolderOfARemovedRecord(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	stock(t, dir, 10)
	h := stopHolder(t, dir)
	if err := os.Remove(recordPath(dir)); err != nil {
		t.Fatal(err)
	}
	if answer, err := store(dir).Withdraw(t.Context(), account(), 0); err != nil || answer.Balance.Tokens != tokens(19) {
		t.Fatalf("Withdraw() from a new record = %+v, %v, want 19 tokens left", answer, err)
	}
	if got, want := h.resume(t), fmt.Sprint(true, int64(tokens(18)), " ok"); got != want {
		t.Errorf("the holder says %q, want %q: a token of the new record", got, want)
	}
	if r := balance(t, dir); r.Bucket.Tokens != tokens(18) || r.Counters.Granted != 2 {
		t.Errorf("the record says %+v, want two tokens gone from a new one", r)
	}
}

// The kernel takes the lock from a holder that is killed, also when it was stopped.
func TestHolderKilledWhileStopped(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	stock(t, dir, 10)
	h := stopHolder(t, dir)
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
	if answer, err := store(dir).Withdraw(t.Context(), account(), 0); err != nil || answer.Balance.Tokens != tokens(9) {
		t.Errorf("Withdraw() = %+v, %v, want 9 tokens left", answer, err)
	}
}

// A whole run meets a stopped holder: the command runs, and the policy decides
// whether it runs again. A budget that was named is closed; an implicit one pays
// one retry from memory. The record is not touched.
func TestProgramWhenTheHolderIsStopped(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	dir := filepath.Join(home, "state")
	stock(t, dir, 10)
	stopHolder(t, dir)
	for _, c := range []struct {
		name     string
		flags    []string
		attempts int
		reason   string
		policy   string
	}{
		{"named", []string{"-b", name}, 1, "budget_unavailable", budget.PolicyClosed},
		{"implicit", nil, 2, "budget_denied", budget.PolicyLocal},
		{"open", []string{"-b", name, "--budget-on-error", "open"}, 3, "attempts_exhausted", budget.PolicyOpen},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := perform(t, home, c.flags, "echo run; exit 7")
			if want := strings.Repeat("run\n", c.attempts); r.status != 7 || r.stdout != want {
				t.Errorf("it ended with %d and wrote %q, want 7 and %q", r.status, r.stdout, want)
			}
			if r.outcome.Reason != c.reason || r.outcome.policy() != c.policy {
				t.Errorf("it ended with reason %s by policy %q, want %s by %s", r.outcome.Reason, r.outcome.policy(), c.reason, c.policy)
			}
		})
	}
	if r := balance(t, dir); r.Bucket.Tokens != tokens(10) || r.Counters.Granted != 10 {
		t.Errorf("the record says %+v, want it as it was", r)
	}
}
