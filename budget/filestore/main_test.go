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
	"time"

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
	if err := play(part, os.Args[1], os.Args[2], os.Args[3:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ready is the first thing that a helper writes.
const ready = "!"

// play does what a helper process does. Each says that it is ready and begins
// when its standard input has a line or ends, so that many begin at once.
func play(part, dir, capacity string, args ...string) error {
	tokens, err := strconv.Atoi(capacity)
	if err != nil {
		return err
	}
	s, a := store(dir), fixed("shared", tokens)
	in := bufio.NewReader(os.Stdin)
	if _, err := os.Stdout.WriteString(ready); err != nil {
		return err
	}
	_, _ = in.ReadString('\n')
	switch part {
	case "drain":
		return drain(s, a, os.Stdout)
	case "loop":
		return loop(s, a, in, os.Stdout)
	case "herd":
		return herd(s, a, in, os.Stdout)
	case "live":
		return live(s, a, args[0], args[1], os.Stdout)
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

// herd withdraws once for each line of its input and answers with the nanoseconds
// that it took, in ten digits.
func herd(s *filestore.Store, a budget.Account, in *bufio.Reader, out io.Writer) error {
	for {
		begun := time.Now()
		if _, err := withdraw(s, a); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%010d", time.Since(begun).Nanoseconds()); err != nil {
			return err
		}
		if _, err := in.ReadString('\n'); err != nil {
			return nil //nolint:nilerr // the end of the input is the end of the herd
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

func stateDir(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "state")
}

// helper is a process that plays a part.
type helper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
}

func start(tb testing.TB, part, dir string, capacity int, args ...string) *helper {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0], append([]string{dir, strconv.Itoa(capacity)}, args...)...)
	cmd.Env = append(os.Environ(), helperVariable+"="+part, "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	h := &helper{cmd, in, out}
	tb.Cleanup(func() {
		if h.cmd.ProcessState == nil {
			_ = h.cmd.Process.Kill()
			_ = h.cmd.Wait()
		}
	})
	return h
}

// begin lets the helpers go when all of them are ready.
func begin(tb testing.TB, helpers ...*helper) {
	tb.Helper()
	for _, h := range helpers {
		if _, err := io.ReadFull(h.out, make([]byte, len(ready))); err != nil {
			tb.Fatal("helper is not ready: ", err)
		}
	}
	for _, h := range helpers {
		_, _ = io.WriteString(h.in, "\n")
	}
}

// finish ends the helper's input and returns its whole output.
func (h *helper) finish(tb testing.TB) string {
	tb.Helper()
	_ = h.in.Close()
	out, err := io.ReadAll(h.out)
	if err != nil {
		tb.Fatal(err)
	}
	if err := h.cmd.Wait(); err != nil {
		tb.Fatalf("helper: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func many(tb testing.TB, n int, part, dir string, capacity int) []string {
	tb.Helper()
	var helpers []*helper
	for range n {
		helpers = append(helpers, start(tb, part, dir, capacity))
	}
	begin(tb, helpers...)
	var outputs []string
	for _, h := range helpers {
		outputs = append(outputs, h.finish(tb))
	}
	return outputs
}

func peek(tb testing.TB, s *filestore.Store, a budget.Account) budget.Record {
	tb.Helper()
	r, found, err := s.Peek(tb.Context(), a)
	if err != nil || !found {
		tb.Fatalf("Peek(%s) = %v, %v, want a record", a.Name, found, err)
	}
	return r
}
