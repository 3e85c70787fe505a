package faulttest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// running is a run that has not ended.
type running struct {
	*exec.Cmd
	stdout, stderr *bufio.Reader
}

func launch(t *testing.T, c *exec.Cmd) *running {
	t.Helper()
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return &running{c, bufio.NewReader(stdout), bufio.NewReader(stderr)}
}

// await reads until a line has a text, and returns the line.
func await(t *testing.T, r *bufio.Reader, want string) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if strings.Contains(line, want) {
			return strings.TrimSpace(line)
		}
		if err != nil {
			t.Fatalf("no line has %q: %v", want, err)
		}
	}
}

// lockFree fails if somebody holds the record's lock.
func lockFree(t *testing.T, dir, when string) {
	t.Helper()
	f, err := os.OpenFile(recordPath(dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("%s the lock cannot be taken: %v", when, err)
	}
}

// Properties 16 and 17: while a retry that was paid for runs, nobody holds the
// lock, and the command has no descriptor of the state directory; nor has what the
// command leaves behind.
func TestNothingIsHeldWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	dir := filepath.Join(home, "state")
	stock(t, dir, 10)
	gate := filepath.Join(home, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `if ! test -e tried; then touch tried; exit 7; fi
sleep 300 >/dev/null 2>&1 & echo pid $!
cat gate`
	r := launch(t, inHome(home, []string{"-b", name}, script))
	pid, err := strconv.Atoi(strings.TrimPrefix(await(t, r.stdout, "pid "), "pid "))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()

	lockFree(t, dir, "while the command runs")
	if answer, err := store(dir).Withdraw(t.Context(), account(), 0); err != nil || answer.Balance.Tokens != tokens(8) {
		t.Errorf("Withdraw() meanwhile = %+v, %v, want 8 tokens left", answer, err)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	await(t, r.stderr, `"outcome":"success"`)
	if err := r.Wait(); err != nil {
		t.Errorf("the run ended with %v, want success", err)
	}
	lockFree(t, dir, "while something is left behind")
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, dir) {
			t.Errorf("what was left behind has %s open", target)
		}
	}
}

// Property 24: a run that is killed between a grant and its retry loses the token;
// no retry runs, and the next run is served like any other.
func TestKilledBetweenGrantAndRetry(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	dir := filepath.Join(home, "state")
	stock(t, dir, 10)
	const script = "echo run >>runs; exit 7"
	r := launch(t, inHome(home, []string{"-b", name, "--delay", "1h", "--max-delay", "1h"}, script))
	await(t, r.stderr, "retrying in")
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	if rec := balance(t, dir); rec.Bucket.Tokens != tokens(9) || rec.Counters.Granted != 11 || rec.Counters.Refunded != 0 {
		t.Errorf("the record says %+v, want one token gone", rec)
	}
	if got := perform(t, home, []string{"-b", name}, script); got.outcome.Count != attempts || got.status != 7 {
		t.Errorf("the next run made %d attempts and ended with %d, want %d and 7", got.outcome.Count, got.status, attempts)
	}
	if rec := balance(t, dir); rec.Bucket.Tokens != tokens(7) {
		t.Errorf("%s tokens are left, want 7", rec.Bucket.Tokens)
	}
	if data, err := os.ReadFile(filepath.Join(home, "runs")); err != nil || string(data) != strings.Repeat("run\n", 1+attempts) {
		t.Errorf("the command ran as %q, %v, want once and %d times", data, err, attempts)
	}
}

// Property 23: a run that meets a damaged record is granted no retry, says so once,
// and ends as its command does; the run after it has nothing more to say about it.
func TestRunOnADamagedRecord(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	dir := filepath.Join(home, "state")
	stock(t, dir, 10)
	if err := os.WriteFile(recordPath(dir), bytes.Repeat([]byte("x"), 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	first := perform(t, home, []string{"-b", name, "--budget-refill", "0/s"}, "exit 7")
	if first.status != 7 || first.outcome.Count != 1 || first.outcome.Reason != "budget_denied" || len(first.outcome.Warnings) != 1 {
		t.Errorf("on a damaged record it ended with %d and %+v, want 7, one attempt, budget_denied and one warning", first.status, first.outcome)
	}
	second := perform(t, home, []string{"-b", name}, "exit 7")
	if second.status != 7 || second.outcome.Reason != "budget_denied" || len(second.outcome.Warnings) != 0 {
		t.Errorf("the run after it ended with %d and %+v, want 7, budget_denied and no warning", second.status, second.outcome)
	}
	if rec := balance(t, dir); rec.Counters.Resets != 1 || rec.Bucket.Tokens != 0 {
		t.Errorf("the record says %+v, want 0 tokens and one reset", rec)
	}
}

// Property 28 for a whole run: what is no record of ours is left alone and the
// policy decides; the command runs.
func TestRunOnWhatIsNoRecordOfOurs(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	dir := filepath.Join(home, "state")
	victim := filepath.Join(home, "victim")
	for what, obstruct := range map[string]func(path string) error{
		"symlink":   func(path string) error { return os.Symlink(victim, path) },
		"hard link": func(path string) error { return os.Link(victim, path) },
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(what, func(t *testing.T) {
			stock(t, dir, 10)
			err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Remove(recordPath(dir)), obstruct(recordPath(dir)))
			if err != nil {
				t.Fatal(err)
			}
			got := perform(t, home, []string{"-b", name}, "exit 7")
			if got.status != 7 || got.outcome.Count != 1 || got.outcome.Reason != "budget_unavailable" || got.outcome.policy() != "closed" {
				t.Errorf("named: it ended with %d and %+v, want 7, budget_unavailable by policy closed", got.status, got.outcome)
			}
			got = perform(t, home, nil, "exit 7")
			if got.status != 7 || got.outcome.Count != attempts || got.outcome.policy() != "local" {
				t.Errorf("implicit: it ended with %d and %+v, want 7 and %d attempts by policy local", got.status, got.outcome, attempts)
			}
			if data, err := os.ReadFile(victim); string(data) != "precious" || err != nil {
				t.Errorf("the target is %q, %v, want it untouched", data, err)
			}
		})
	}
}

// Property 52: runs that begin at the same time wait for different times. Times
// are whole milliseconds, so that two may be alike by chance; not again and again.
func TestTwoRunsDrawDifferentWaits(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	waits := func(r *running) []float64 {
		t.Helper()
		var all []float64
		for _, a := range outcomeOf(t, await(t, r.stderr, `"schema"`)).Attempts {
			if a.Delay != nil {
				all = append(all, *a.Delay)
			}
		}
		_ = r.Wait()
		return all
	}
	for range 20 {
		flags := []string{"--no-budget", "--delay", "50ms", "--max-delay", "50ms", "--jitter", "full"}
		a, b := launch(t, inHome(home, flags, "exit 7")), launch(t, inHome(home, flags, "exit 7"))
		first, second := waits(a), waits(b)
		if len(first) != attempts-1 || len(second) != attempts-1 {
			t.Fatalf("the runs waited %v and %v, want %d waits each", first, second, attempts-1)
		}
		if !cmp.Equal(first, second) {
			return
		}
	}
	t.Error("two runs waited for the same times again and again")
}
