package faulttest_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/retryx/retryx/budget"
)

// worker is a clerk under the tracer.
type worker struct {
	*tracee
	in  *os.File
	out *bufio.Reader
}

func hire(t *testing.T, dir string) *worker {
	t.Helper()
	c := play(partClerk, dir)
	childIn, in := pipe(t)
	out, childOut := pipe(t)
	c.Stdin, c.Stdout, c.Stderr = childIn, childOut, os.Stderr
	w := &worker{in: in, out: bufio.NewReader(out)}
	w.tracee = trace(t, c, nothing)
	_ = childIn.Close()
	_ = childOut.Close()
	if _, err := w.out.ReadString('\n'); err != nil {
		t.Fatal("the clerk is not ready: ", err)
	}
	return w
}

// nothing lets every call happen.
func nothing(call) verdict { return verdict{} }

// pipe returns the ends of a pipe that go when the test does.
func pipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = reader.Close()
		_ = writer.Close()
	})
	return reader, writer
}

// reply is what a clerk answered.
type reply struct {
	granted bool
	tokens  budget.Micro
	kind    string
}

// do has the clerk do one thing; told is false if it did not live to tell. What has
// judged the calls is done with when it returns.
func (w *worker) do(t *testing.T, verb string) (r reply, told bool) {
	t.Helper()
	if _, err := io.WriteString(w.in, verb+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := w.out.ReadString('\n')
	w.let(nothing)
	if err != nil {
		return r, false
	}
	if _, err := fmt.Sscan(line, &r.granted, (*int64)(&r.tokens), &r.kind); err != nil {
		t.Fatalf("the clerk wrote %q: %v", line, err)
	}
	return r, true
}

// slayer kills at the nth call about the state directory, the first being 1, and
// lists those before it. Calls about nothing of ours (memory, threads, the answer)
// come and go as the runtime likes; being killed at one of them is being killed
// at the next of ours.
type slayer struct {
	dir   string
	nth   int
	at    func(call) bool // which calls count; nil: all
	named bool            // the filesystem knows no files without names
	calls []string        // those that count
}

// changes reports whether a call leaves anything behind. Being killed at one that
// does not is being killed at the next.
func changes(c call) bool {
	return c.made || c.new || slices.Contains([]string{"mkdirat", "unlinkat", "linkat", "flock", "unlock", "pwrite", "write", "ftruncate", "fchmod", "fchown"}, c.name)
}

func (s *slayer) judge(c call) verdict {
	if !strings.HasPrefix(c.path, s.dir) {
		return verdict{}
	}
	if s.at == nil || s.at(c) {
		if s.calls = append(s.calls, c.name); len(s.calls) == s.nth {
			return verdict{kill: true}
		}
	}
	if s.named && c.made {
		return verdict{fail: syscall.EOPNOTSUPP}
	}
	return verdict{}
}

// What there is before an update, and what each kind of update may leave behind
// when it is killed.
type killing struct {
	name    string
	verb    string
	prepare func(t *testing.T, dir string)
	after   []budget.Micro // balances that may be found
	missing bool           // there may be no record
	ruin    bool           // or one that is, or was, damaged, which pays for nothing
	named   bool           // as in slayer
}

func killings() []killing {
	half := func(t *testing.T, dir string) { t.Helper(); stock(t, dir, 10) }
	none := func(t *testing.T, dir string) { t.Helper(); stock(t, dir, capacity) }
	ruin := func(t *testing.T, dir string) {
		t.Helper()
		stock(t, dir, 10)
		if err := os.WriteFile(recordPath(dir), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []killing{
		{name: "withdraw", verb: "withdraw", prepare: half, after: []budget.Micro{tokens(10), tokens(9)}},
		{name: "refund", verb: "refund", prepare: half, after: []budget.Micro{tokens(10), tokens(11)}},
		{name: "deposit", verb: "deposit", prepare: half, after: []budget.Micro{tokens(10), tokens(10) + bonus}},
		{name: "first", verb: "withdraw", prepare: none, after: []budget.Micro{tokens(19)}, missing: true},
		{name: "first in two steps", verb: "withdraw", prepare: none, after: []budget.Micro{tokens(19)}, missing: true, ruin: true, named: true},
		{name: "damaged", verb: "withdraw", prepare: ruin, after: []budget.Micro{0}, ruin: true},
	}
}

// Property 21: an update that is killed at any of its system calls leaves the
// record as it was before or as it is after: it reads, nobody has to wait, no
// token was minted, and at most the one that was asked for is lost. (Where a record
// cannot be made complete before it has its name, a kill while it is made leaves
// an empty file, which counts as damaged and pays for nothing.)
func TestKilledAtEverySystemCall(t *testing.T) {
	for _, k := range killings() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			dir, seen := stateDir(t), map[budget.Micro]bool{}
			for n := 1; ; n++ {
				k.prepare(t, dir)
				w := hire(t, dir)
				s := &slayer{dir: dir, nth: n, named: k.named}
				w.let(s.judge)
				_, told := w.do(t, k.verb)
				if told {
					seen[k.check(t, dir, s.calls, k.after[len(k.after)-1:])] = true
					t.Logf("%d calls: %s", len(s.calls), strings.Join(s.calls, " "))
					for _, m := range k.after {
						if !seen[m] {
							t.Errorf("no kill left %s tokens, want one before and one after the write", m)
						}
					}
					return
				}
				if status := w.wait(); status.Signal() != syscall.SIGKILL {
					t.Fatalf("killed at call %d (%v), it ended with %#x, want SIGKILL", n, s.calls, status)
				}
				seen[k.check(t, dir, s.calls, k.after)] = true
			}
		})
	}
}

// check returns the balance that it found.
func (k *killing) check(t *testing.T, dir string, calls []string, allowed []budget.Micro) budget.Micro {
	t.Helper()
	at := fmt.Sprintf("killed at the last of %v", calls)
	s := store(dir)
	r, found, err := s.Peek(t.Context(), account())
	switch {
	case err != nil && k.ruin:
	case err != nil:
		t.Fatalf("%s: Peek() = %v, want nil", at, err)
	case !found && !k.missing:
		t.Fatalf("%s: the record is gone", at)
	case found && !slices.Contains(allowed, r.Bucket.Tokens):
		t.Fatalf("%s: %s tokens are left, want one of %v", at, r.Bucket.Tokens, allowed)
	}
	// The lock went with its holder: the next one is served at once, by a record
	// that counts on from there.
	answer, err := s.Withdraw(t.Context(), account(), 0)
	if want := r.Bucket.Tokens >= budget.Token; err != nil || answer.Granted != want || want && answer.Balance.Tokens != r.Bucket.Tokens-budget.Token {
		t.Fatalf("%s: the next Withdraw() = %+v, %v, want granted %v from %s", at, answer, err, want, r.Bucket.Tokens)
	}
	return r.Bucket.Tokens
}
