package faulttest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/budget"
)

// A fault is one system call about the state directory that fails in one way.
type fault struct {
	nth   int // of the calls about the state directory, the first is 1
	errno syscall.Errno
}

func (f fault) String() string { return fmt.Sprintf("%s at call %d", unix.ErrnoName(f.errno), f.nth) }

// errnos are the ways to fail, and whether each means that the place cannot be
// used at all.
func errnos() map[syscall.Errno]bool {
	return map[syscall.Errno]bool{
		syscall.ENOSPC: false, syscall.EIO: false, syscall.EMFILE: false,
		syscall.EROFS: true, syscall.EACCES: true, syscall.ENOLCK: true,
	}
}

// saboteur makes one call fail, or that and all that follow, and lists them all. A
// close is left alone: whatever it returns, the descriptor is gone.
type saboteur struct {
	dir   string
	fault fault
	on    bool // and all that follow
	calls []call
}

func (s *saboteur) judge(c call) verdict {
	if c.name == "close" || !strings.HasPrefix(c.path, s.dir) {
		return verdict{}
	}
	s.calls = append(s.calls, c)
	if n := len(s.calls); n == s.fault.nth || s.on && s.fault.nth > 0 && n > s.fault.nth {
		return verdict{fail: s.fault.errno}
	}
	return verdict{}
}

// failing is an operation, what there is before it, and the balances that it may
// leave: when it said that it was done, and when it said that it failed.
type failing struct {
	name, verb string
	prepare    func(t *testing.T, dir string)
	done       []budget.Micro
	failed     []budget.Micro
	missing    bool                     // there may be no record afterwards
	ruin       bool                     // or a damaged one
	spare      func(n int, c call) bool // calls that nothing depends on, besides unlocking
}

func failings() []failing {
	half := func(t *testing.T, dir string) { t.Helper(); stock(t, dir, 10) }
	none := func(t *testing.T, dir string) { t.Helper(); stock(t, dir, capacity) }
	ruin := func(t *testing.T, dir string) {
		t.Helper()
		stock(t, dir, 10)
		if err := os.WriteFile(recordPath(dir), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// These look first whether there is something to write; what the look did not
	// find out is found out under the lock.
	look := func(n int, _ call) bool { return n <= 8 }
	// A copy of what was damaged is made if it can be.
	copying := func(n int, c call) bool { return n == 11 && c.name == "pread" || strings.HasSuffix(c.path, ".corrupt") }
	tripped := func(t *testing.T, dir string) {
		t.Helper()
		stock(t, dir, 10)
		how := budget.Settling{Breaker: true, Rule: budget.BreakerRule{Threshold: 1}, Result: budget.Result{Failed: true}}
		if answer, err := store(dir).Settle(t.Context(), account(), how, 0); err != nil || answer.Breaker.State != budget.BreakerIsOpen {
			t.Fatalf("Settle() = %+v, %v, want an open breaker", answer, err)
		}
	}
	ten := tokens(10)
	return []failing{
		{name: "read", verb: "read", prepare: half, done: []budget.Micro{ten}, failed: []budget.Micro{ten}},
		{name: "withdraw", verb: "withdraw", prepare: half, done: []budget.Micro{tokens(9)}, failed: []budget.Micro{ten, tokens(9)}},
		{name: "refund", verb: "refund", prepare: half, done: []budget.Micro{tokens(11)}, failed: []budget.Micro{ten, tokens(11)}},
		{name: "deposit", verb: "deposit", prepare: half, done: []budget.Micro{ten + bonus}, failed: []budget.Micro{ten, ten + bonus}, spare: look},
		{name: "configure", verb: "configure", prepare: half, done: []budget.Micro{ten}, failed: []budget.Micro{ten}, spare: look},
		{name: "ask", verb: "ask", prepare: tripped, done: []budget.Micro{ten}, failed: []budget.Micro{ten}, spare: look},
		{name: "first", verb: "withdraw", prepare: none, done: []budget.Micro{tokens(19)}, failed: []budget.Micro{tokens(19)}, missing: true},
		{name: "damaged", verb: "withdraw", prepare: ruin, done: []budget.Micro{0}, failed: []budget.Micro{0}, ruin: true, spare: copying},
	}
}

// Property 25: whichever call of an operation fails, and however, the operation
// either is done or says that it failed and of which kind that was. Nothing is
// minted, at most the one token is lost, and the record stays sound.
func TestEveryCallFailsInEveryWay(t *testing.T) {
	for _, f := range failings() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			w := hire(t, dir)
			f.prepare(t, dir)
			sound := &saboteur{dir: dir}
			w.let(sound.judge)
			if r, _ := w.do(t, f.verb); r.kind != "ok" {
				t.Fatalf("without a fault it said %+v, want ok", r)
			}
			failed := 0
			for n := range sound.calls {
				for errno, unusable := range errnos() {
					failed += f.try(t, w, dir, fault{n + 1, errno}, unusable)
				}
			}
			t.Logf("%d calls in %d ways: %d failures", len(sound.calls), len(errnos()), failed)
		})
	}
}

// try returns how many operations failed, 0 or 1.
func (f *failing) try(t *testing.T, w *worker, dir string, fault fault, unusable bool) int {
	t.Helper()
	f.prepare(t, dir)
	s := &saboteur{dir: dir, fault: fault}
	w.let(s.judge)
	r, told := w.do(t, f.verb)
	if !told {
		t.Fatalf("%v: the clerk died", fault)
	}
	hit := s.calls[fault.nth-1]
	at := fmt.Sprintf("%v (%v)", fault, hit)
	allowed, kind := f.done, "ok"
	if r.kind != "ok" {
		allowed, kind = f.failed, map[bool]string{true: "unusable", false: "failed"}[unusable]
	}
	if r.kind != kind || r.kind != "ok" && r.granted {
		t.Errorf("%s: it said %+v, want %s", at, r, kind)
	}
	if spared := hit.name == "unlock" || f.spare != nil && f.spare(fault.nth, hit); spared != (r.kind == "ok") {
		t.Errorf("%s: it said %+v, want ok %v", at, r, spared)
	}
	f.check(t, dir, at, r, allowed)
	if r.kind == "ok" {
		return 0
	}
	return 1
}

func (f *failing) check(t *testing.T, dir, at string, r reply, allowed []budget.Micro) {
	t.Helper()
	record, found, err := store(dir).Peek(t.Context(), account())
	switch {
	case err != nil && f.ruin && !r.granted:
	case err != nil:
		t.Errorf("%s: Peek() = %v, want a sound record", at, err)
	case !found && f.missing && !r.granted:
	case !found:
		t.Errorf("%s: it said %+v and the record is gone", at, r)
	case !slices.Contains(allowed, record.Bucket.Tokens):
		t.Errorf("%s: it said %+v and %s tokens are left, want one of %v", at, r, record.Bucket.Tokens, allowed)
	}
}

// Property 29: where there are no locks the place is unusable, at once and without
// a wait. (Which filesystems are not even asked is TestRemoteName's business.)
func TestLocksThatAreNotSupported(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	w := hire(t, dir)
	for _, errno := range []syscall.Errno{syscall.ENOSYS, syscall.ENOLCK, syscall.EOPNOTSUPP, syscall.EINVAL} {
		stock(t, dir, 10)
		asked := 0
		w.let(func(c call) verdict {
			if c.name != "flock" {
				return verdict{}
			}
			asked++
			return verdict{fail: errno}
		})
		want := map[bool]string{true: "unusable", false: "failed"}[errno != syscall.EINVAL]
		if r, told := w.do(t, "withdraw"); !told || r.kind != want || asked != 1 {
			t.Errorf("with %s for locks it said %+v after asking %d times, want %s after one", unix.ErrnoName(errno), r, asked, want)
		}
		if left := balance(t, dir).Bucket.Tokens; left != tokens(10) {
			t.Errorf("with %s for locks %s tokens are left, want 10", unix.ErrnoName(errno), left)
		}
	}
}

// The lock is held for as little as an update needs: a look whether the file is
// still the one that was opened, a read, a write. Whatever else is to be found out
// in a process's first decision (which boot this is) is found out before.
func TestLockIsHeldForThreeCalls(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	w := hire(t, dir)
	stock(t, dir, 10)
	const kernel = "/proc/sys/" // where a boot has its name
	var held []string
	holding := false
	w.let(func(c call) verdict {
		switch {
		case c.name == "flock":
			holding = true
		case c.name == "unlock":
			holding = false
		case holding && (strings.HasPrefix(c.path, dir) || strings.HasPrefix(c.path, kernel)): // not what the runtime does meanwhile
			held = append(held, c.name)
		}
		return verdict{}
	})
	if r, told := w.do(t, "withdraw"); !told || !r.granted {
		t.Fatalf("it said %+v, want a grant", r)
	}
	if got, want := strings.Join(held, " "), "fstatat pread pwrite"; got != want {
		t.Errorf("under the lock it called %q, want %q", got, want)
	}
}
