package faulttest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/cmd"
	"github.com/retryx/retryx/statefile"
)

// partVariable makes the test binary play a part in another process.
const partVariable = "FAULTTEST_PART"

// The parts.
const (
	partProgram = "retryx" // the whole program
	partClerk   = "clerk"  // does what it is told on one record: clerk DIR
	partHolder  = "holder" // holds the lock of that record: holder DIR
)

func TestMain(m *testing.M) {
	part := os.Getenv(partVariable)
	_ = os.Unsetenv(partVariable) // a program's child is not to play it too
	var err error
	switch part {
	case "":
		os.Exit(m.Run())
	case partProgram:
		os.Exit(cmd.Main(cmd.System()))
	case partClerk:
		err = clerk(os.Args[1], os.Stdin, os.Stdout)
	case partHolder:
		err = holder(os.Args[1], os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("no part %q", part)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// play prepares a process that plays a part.
func play(part string, args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", args...)
	if self, err := os.Executable(); err == nil {
		c.Path = self
	}
	c.Args[0] = part
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasPrefix(name, "RETRYX_") && !strings.HasPrefix(name, "XDG_") {
			c.Env = append(c.Env, kv)
		}
	}
	c.Env = append(c.Env, partVariable+"="+part)
	return c
}

// The record that tests are about. Nothing refills it, so that every token is
// accounted for.
const (
	name     = "shared"
	capacity = 20
	bonus    = budget.Token / 10
)

func account() budget.Account {
	return budget.Account{Name: name, Params: budget.Params{Capacity: capacity, Bonus: bonus}}
}

func store(dir string) *filestore.Store { return &filestore.Store{Dir: statefile.Dir{Path: dir}} }

// clerk does the operation that each line of its input names and answers "GRANTED
// TOKENS ERROR", the error being "ok", "unusable" or "failed".
func clerk(dir string, in io.Reader, out io.Writer) error {
	runtime.LockOSThread() // so that the tracer finds all it does in one thread
	s := store(dir)
	if _, err := fmt.Fprintln(out, os.Getpid()); err != nil {
		return err
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil //nolint:nilerr // the end of the input is the end of the work
		}
		answer, err := operate(s, strings.TrimSpace(line))
		if _, err := fmt.Fprintln(out, answer.Granted, int64(answer.Balance.Tokens), kindOf(err)); err != nil {
			return err
		}
	}
}

func operate(s budget.Store, verb string) (budget.Answer, error) {
	ctx := context.Background()
	switch verb {
	case "withdraw":
		return s.Withdraw(ctx, account(), 0)
	case "refund":
		return s.Refund(ctx, account(), 0)
	case "deposit":
		return s.Settle(ctx, account(), budget.Settling{Bonus: true}, 0)
	case "configure":
		less := capacity - 5
		return s.Configure(ctx, account(), budget.Change{Capacity: &less})
	case "ask":
		return s.Ask(ctx, account(), budget.BreakerRule{Threshold: 1, Lease: time.Hour}, 1)
	case "read":
		r, _, err := s.Peek(ctx, account())
		return budget.Answer{Balance: r.Balance()}, err
	}
	return budget.Answer{}, fmt.Errorf("no verb %q", verb)
}

func kindOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, budget.ErrUnusable):
		return "unusable"
	}
	return "failed"
}

// holder takes the lock of the record, says so, and keeps it until its input has a
// line; then it takes a token and says what it left.
func holder(dir string, in io.Reader, out io.Writer) error {
	file := statefile.File{Dir: statefile.Dir{Path: dir}, Sub: "budgets", Name: name}
	lines := bufio.NewReader(in)
	_, err := file.Change(context.Background(), filestore.LockWait, func(c statefile.Content) []byte {
		fmt.Fprintln(out, "held")
		_, _ = lines.ReadString('\n')
		return c.Payload
	})
	if err != nil {
		return err
	}
	answer, err := store(dir).Withdraw(context.Background(), account(), 0)
	fmt.Fprintln(out, answer.Granted, int64(answer.Balance.Tokens), kindOf(err))
	return nil
}

// stateDir is where a test's record will be.
func stateDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state")
}

// recordPath is where it is.
func recordPath(dir string) string { return filepath.Join(dir, "budgets", name) }

// stock makes the record with a number of tokens.
func stock(t *testing.T, dir string, tokens int) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range capacity - tokens {
		if answer, err := store(dir).Withdraw(t.Context(), account(), 0); err != nil || !answer.Granted {
			t.Fatalf("Withdraw() = %+v, %v, want a grant", answer, err)
		}
	}
}

// balance reads what the record holds, which must be sound.
func balance(t *testing.T, dir string) budget.Record {
	t.Helper()
	r, found, err := store(dir).Peek(t.Context(), account())
	if err != nil || !found {
		t.Fatalf("Peek() = %v, %v, want a sound record", found, err)
	}
	return r
}

// tokens are whole ones.
func tokens(n int) budget.Micro { return budget.Micro(n) * budget.Token }

// attempts is how many of them programs make.
const attempts = 3

// newHome is a home directory with a shell that goes by the name of the record,
// after which an implicit budget is named.
func newHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(home, name)); err != nil {
		t.Fatal(err)
	}
	return home
}

// inHome prepares a run of the whole program.
func inHome(home string, flags []string, script string) *exec.Cmd {
	args := slices.Concat(
		[]string{"--state-dir", filepath.Join(home, "state"), "-n", strconv.Itoa(attempts), "--delay", "1ms", "--max-delay", "1ms", "--jitter", "none"},
		flags, []string{"--", filepath.Join(home, name), "-c", script})
	c := play(partProgram, args...)
	c.Dir = home
	c.Env = append(c.Env, "HOME="+home)
	return c
}

// outcome is what tests want to know of one.
type outcome struct {
	Outcome  string   `json:"outcome"`
	Reason   string   `json:"reason"`
	Count    int      `json:"attempt_count"`
	Warnings []string `json:"warnings"`
	Attempts []struct {
		Delay *float64 `json:"delay_ms"`
	} `json:"attempts"`
	Budgets []struct {
		Policy *string `json:"policy"`
	} `json:"budgets"`
}

// outcomeOf reads the last line of a stderr.
func outcomeOf(t *testing.T, stderr string) outcome {
	t.Helper()
	last := strings.TrimSpace(stderr)
	last = last[strings.LastIndex(last, "\n")+1:]
	var o outcome
	if err := json.Unmarshal([]byte(last), &o); err != nil {
		t.Errorf("the last line of stderr is no outcome: %v\n%s", err, stderr)
	}
	return o
}

// policy is the one that acted, "" if none did.
func (o outcome) policy() string {
	for _, b := range o.Budgets {
		if b.Policy != nil {
			return *b.Policy
		}
	}
	return ""
}

// result is how a run ended.
type result struct {
	status         int
	stdout, stderr string
	outcome        outcome
}

// perform runs the whole program and waits for it.
func perform(t *testing.T, home string, flags []string, script string) result {
	t.Helper()
	c := inHome(home, flags, script)
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String(), outcomeOf(t, stderr.String())}
}
