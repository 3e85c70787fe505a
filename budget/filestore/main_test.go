package filestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/statefile"
)

// helperVariable makes the test binary play a part in another process.
const helperVariable = "FILESTORE_TEST_HELPER"

func TestMain(m *testing.M) {
	part := os.Getenv(helperVariable)
	if part == "" {
		os.Exit(m.Run())
	}
	if err := play(part, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// play does what a helper process does. Each begins when its standard input has
// a line or ends, so that many begin at once.
func play(part, dir, capacity string) error {
	tokens, err := strconv.Atoi(capacity)
	if err != nil {
		return err
	}
	s, a := store(dir), fixed("shared", tokens)
	in := bufio.NewReader(os.Stdin)
	_, _ = in.ReadString('\n')
	switch part {
	case "drain":
		return drain(s, a, os.Stdout)
	case "loop":
		return loop(s, a, in, os.Stdout)
	case "probe":
		answer, err := s.Ask(context.Background(), a, rule, uint64(os.Getpid()))
		fmt.Fprintln(os.Stdout, answer.Granted)
		return err
	}
	return fmt.Errorf("no part %q", part)
}

// drain withdraws until it is refused, and writes for every call when it began
// and ended, and what it left: "BEGIN END TOKENS", tokens -1 for a refusal.
func drain(s *filestore.Store, a budget.Account, out io.Writer) error {
	w := bufio.NewWriter(out)
	var clock statefile.Clock
	for {
		begin := clock.Now().Boot
		answer, err := withdraw(s, a)
		if err != nil {
			return err
		}
		left := int64(-1)
		if answer.Granted {
			left = int64(answer.Balance.Tokens / budget.Token)
		}
		fmt.Fprintln(w, begin, clock.Now().Boot, left)
		if !answer.Granted {
			return w.Flush()
		}
	}
}

// loop withdraws until its input ends and writes a byte for each token the moment
// it has it.
func loop(s *filestore.Store, a budget.Account, in *bufio.Reader, out *os.File) error {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return nil
		default:
		}
		answer, err := withdraw(s, a)
		if err != nil {
			return err
		}
		if answer.Granted {
			if _, err := out.WriteString("g"); err != nil {
				return err
			}
		}
	}
}

// withdraw goes on when the lock was busy or the file was replaced: nothing has
// happened then.
func withdraw(s *filestore.Store, a budget.Account) (budget.Answer, error) {
	for {
		answer, err := s.Withdraw(context.Background(), a, 0)
		if !errors.Is(err, statefile.ErrBusy) && !errors.Is(err, statefile.ErrReplaced) {
			return answer, err
		}
	}
}

func store(dir string) *filestore.Store { return &filestore.Store{Dir: statefile.Dir{Path: dir}} }

// fixed is an account that is never refilled.
func fixed(name string, capacity int) budget.Account {
	return budget.Account{Name: name, Params: budget.Params{Capacity: capacity}}
}

func stateDir(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state")
}

// helper is a process that plays a part.
type helper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
}

func start(t testing.TB, part, dir string, capacity int) *helper {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir, strconv.Itoa(capacity))
	cmd.Env = append(os.Environ(), helperVariable+"="+part, "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &helper{cmd, in, out}
	t.Cleanup(func() {
		if h.cmd.ProcessState == nil {
			_ = h.cmd.Process.Kill()
			_ = h.cmd.Wait()
		}
	})
	return h
}

// begin lets the helper go.
func (h *helper) begin() { _, _ = io.WriteString(h.in, "\n") }

// finish ends the helper's input and returns its whole output.
func (h *helper) finish(t testing.TB) string {
	t.Helper()
	_ = h.in.Close()
	out, err := io.ReadAll(h.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Wait(); err != nil {
		t.Fatalf("helper: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func many(t testing.TB, n int, part, dir string, capacity int) []string {
	t.Helper()
	var helpers []*helper
	for range n {
		helpers = append(helpers, start(t, part, dir, capacity))
	}
	for _, h := range helpers {
		h.begin()
	}
	var outputs []string
	for _, h := range helpers {
		outputs = append(outputs, h.finish(t))
	}
	return outputs
}

func peek(t testing.TB, s *filestore.Store, a budget.Account) budget.Record {
	t.Helper()
	r, found, err := s.Peek(t.Context(), a)
	if err != nil || !found {
		t.Fatalf("Peek(%s) = %v, %v, want a record", a.Name, found, err)
	}
	return r
}
