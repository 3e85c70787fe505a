package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/statefile"
)

var bg = context.Background

// hands is a clock that a test moves.
type hands struct{ at statefile.Stamp }

func newHands() *hands {
	return &hands{statefile.Stamp{Domain: 9, Boot: int64(time.Hour), Wall: time.Now().UnixNano()}}
}

func (h *hands) now() statefile.Stamp { return h.at }

func (h *hands) pass(d time.Duration) {
	h.at.Boot += int64(d)
	h.at.Wall += int64(d)
}

func timed(t *testing.T) (*filestore.Store, *hands) {
	t.Helper()
	h := newHands()
	return &filestore.Store{Dir: statefile.Dir{Path: stateDir(t)}, Now: h.now}, h
}

func path(s *filestore.Store, a budget.Account) string {
	return filepath.Join(s.Dir.Path, "budgets", a.Name)
}

func standard(name string) budget.Account {
	return budget.Account{Name: name, Params: budget.Defaults()}
}

// withdrawn returns how many of n withdrawals were granted.
func withdrawn(t *testing.T, s *filestore.Store, a budget.Account, n int) int {
	t.Helper()
	granted := 0
	for range n {
		answer, err := s.Withdraw(t.Context(), a, 0)
		if err != nil {
			t.Fatalf("Withdraw(%s) = %v, want nil", a.Name, err)
		}
		if answer.Granted {
			granted++
		}
	}
	return granted
}

func TestWithdrawRefundRefill(t *testing.T) {
	s, h := timed(t)
	a := standard("a")
	if got := withdrawn(t, s, a, 25); got != 20 {
		t.Errorf("a new budget paid %d of 25, want 20", got)
	}
	if answer, err := s.Refund(t.Context(), a, 0); err != nil || answer.Balance.Tokens != budget.Token {
		t.Errorf("Refund() = %+v, %v, want one token", answer, err)
	}
	h.pass(30 * time.Second)
	if got := withdrawn(t, s, a, 25); got != 4 {
		t.Errorf("after a refund and 30 s at 0.1/s it paid %d, want 4", got)
	}
	answer, err := s.Withdraw(t.Context(), a, 0)
	if err != nil || answer.Granted || answer.Balance.Next != 10*time.Second {
		t.Errorf("Withdraw() = %+v, %v, want a refusal with 10s to go", answer, err)
	}
}

// A record that is gone is full: a refund has nothing to write.
func TestRefundWithoutARecord(t *testing.T) {
	s, _ := timed(t)
	a := standard("a")
	if answer, err := s.Refund(t.Context(), a, 0); err != nil || answer.Balance.Tokens != 20*budget.Token {
		t.Errorf("Refund() = %+v, %v, want a full bucket", answer, err)
	}
	if _, err := os.Lstat(path(s, a)); err == nil {
		t.Error("Refund() made a record")
	}
}

// Property 64 and 7: successes on a full bucket write nothing, be there a record
// or none, also when the bucket became full only by now.
func TestSuccessOnAFullBucketWritesNothing(t *testing.T) {
	s, h := timed(t)
	a := standard("a")
	settle := func() {
		t.Helper()
		for range 1000 {
			if _, err := s.Settle(t.Context(), a, budget.Settling{Bonus: true}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle()
	if _, err := os.Lstat(s.Dir.Path); err == nil {
		t.Error("successes made the state directory")
	}
	withdrawn(t, s, a, 5)
	h.pass(50 * time.Second)
	before, err := os.ReadFile(path(s, a))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1, 0)
	if err := os.Chtimes(path(s, a), old, old); err != nil {
		t.Fatal(err)
	}
	settle()
	after, err := os.ReadFile(path(s, a))
	if info, serr := os.Stat(path(s, a)); err != nil || serr != nil || !info.ModTime().Equal(old) || !bytes.Equal(before, after) {
		t.Errorf("successes on a full bucket wrote the record (%v, %v)", err, serr)
	}
}

func TestDepositBelowFull(t *testing.T) {
	s, _ := timed(t)
	a := budget.Account{Name: "a", Params: budget.Params{Capacity: 1, Bonus: budget.Token / 10}}
	withdrawn(t, s, a, 1)
	for i := range 10 {
		if got := withdrawn(t, s, a, 1); got != 0 {
			t.Fatalf("after %d bonuses of 0.1 it paid", i)
		}
		if _, err := s.Settle(t.Context(), a, budget.Settling{Bonus: true}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := withdrawn(t, s, a, 2); got != 1 {
		t.Errorf("after ten bonuses of 0.1 it paid %d, want 1", got)
	}
}

// Property 63: looking changes no byte and works while others hold the lock.
func TestPeekWritesNothingAndWaitsForNobody(t *testing.T) {
	s, h := timed(t)
	a := standard("a")
	if r, found, err := s.Peek(t.Context(), a); found || err != nil || r.Bucket.Tokens != 20*budget.Token {
		t.Errorf("Peek() of nothing = %+v, %v, %v, want a full bucket, not found", r, found, err)
	}
	withdrawn(t, s, a, 3)
	h.pass(10 * time.Second)
	before, _ := os.ReadFile(path(s, a))
	release := hold(t, s, a)
	if r := peek(t, s, a); r.Bucket.Tokens != 18*budget.Token || r.Counters.Granted != 3 {
		t.Errorf("Peek() = %+v, want 18 tokens by now and 3 granted", r)
	}
	if names, err := s.List(t.Context(), budget.Named); err != nil || !cmp.Equal(names, []string{"a"}) {
		t.Errorf("List() = %q, %v, want a", names, err)
	}
	if answer, err := s.Ask(t.Context(), a, rule, 1); err != nil || !answer.Granted {
		t.Errorf("Ask() of a closed breaker = %+v, %v, want a permit without the lock", answer, err)
	}
	release()
	if after, _ := os.ReadFile(path(s, a)); !bytes.Equal(before, after) {
		t.Error("looking changed the record")
	}
}

// hold keeps the lock of an account.
func hold(t *testing.T, s *filestore.Store, a budget.Account) (release func()) {
	t.Helper()
	f := statefile.File{Dir: s.Dir, Sub: "budgets", Name: a.Name}
	locked, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = f.Change(bg(), time.Second, func(statefile.Content) []byte {
			close(locked)
			<-free
			return nil
		})
	}()
	<-locked
	return func() { close(free); <-done }
}

// Property 18: waits for a lock are as long as they should be, and end with the
// context.
func TestLockWaits(t *testing.T) {
	s, _ := timed(t)
	a := standard("a")
	withdrawn(t, s, a, 3)
	defer hold(t, s, a)()
	took := bonusAgainstALock(t, s, a)
	for range 20 { // a machine that is busy makes a wait longer, never shorter
		took = min(took, bonusAgainstALock(t, s, a))
		if took < filestore.LockWait {
			break
		}
	}
	if took >= filestore.LockWait {
		t.Errorf("Settle(bonus) took %v at best, want it to give up before %v", took, filestore.LockWait)
	}
	begun := time.Now()
	_, err := s.Withdraw(t.Context(), a, 0)
	if took := time.Since(begun); !errors.Is(err, statefile.ErrBusy) || took < filestore.LockWait || errors.Is(err, budget.ErrUnusable) {
		t.Errorf("Withdraw() = %v after %v, want ErrBusy, a failure in use, after %v", err, took, filestore.LockWait)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = s.Withdraw(ctx, a, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Withdraw() after the end of the context = %v, want that", err)
	}
}

// bonusAgainstALock returns how long a bonus waits for a lock that others hold.
func bonusAgainstALock(t *testing.T, s *filestore.Store, a budget.Account) time.Duration {
	t.Helper()
	begun := time.Now()
	_, err := s.Settle(t.Context(), a, budget.Settling{Bonus: true}, 0)
	took := time.Since(begun)
	if !errors.Is(err, statefile.ErrBusy) || took < filestore.BonusWait {
		t.Errorf("Settle(bonus) = %v after %v, want ErrBusy after %v", err, took, filestore.BonusWait)
	}
	return took
}

// Property 23 and 8: damage pays for nothing, is told once, keeps the bytes, and
// the budget recovers by its refill.
func TestDamagedRecord(t *testing.T) {
	for name, rubbish := range map[string][]byte{
		"text": []byte("hello"), "nothing": {}, "zeros": make([]byte, 1024),
	} {
		t.Run(name, func(t *testing.T) {
			s, h := timed(t)
			a := standard("a")
			withdrawn(t, s, a, 1)
			if err := os.WriteFile(path(s, a), rubbish, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Peek(t.Context(), a); err == nil || errors.Is(err, budget.ErrUnusable) {
				t.Errorf("Peek() = %v, want it to tell the damage", err)
			}
			answer, err := s.Withdraw(t.Context(), a, 0)
			if err != nil || answer.Granted || !strings.Contains(answer.Damaged, path(s, a)+".corrupt") {
				t.Errorf("Withdraw() = %+v, %v, want a refusal that names the copy", answer, err)
			}
			if kept, err := os.ReadFile(path(s, a) + ".corrupt"); err != nil || !bytes.Equal(kept, rubbish) {
				t.Errorf("the copy is %q, %v, want %q", kept, err, rubbish)
			}
			h.pass(10 * time.Second)
			answer, err = s.Withdraw(t.Context(), a, 0)
			if err != nil || !answer.Granted || answer.Damaged != "" {
				t.Errorf("Withdraw() after 10 s = %+v, %v, want a grant without a word", answer, err)
			}
			if r := peek(t, s, a); r.Counters.Resets != 1 {
				t.Errorf("counters = %+v, want one reset", r.Counters)
			}
			if names, err := s.List(t.Context(), budget.Named); err != nil || !cmp.Equal(names, []string{"a"}) {
				t.Errorf("List() = %q, %v, want a and no copies", names, err)
			}
		})
	}
}

// A record of another budget under this name pays for nothing either.
func TestRecordUnderAnotherName(t *testing.T) {
	s, _ := timed(t)
	a, b := standard("a"), standard("b")
	withdrawn(t, s, a, 1)
	data, err := os.ReadFile(path(s, a))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path(s, b), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := withdrawn(t, s, b, 3); got != 0 {
		t.Errorf("a copied record paid %d, want 0", got)
	}
}

// Property 9: parameters are written when they differ, at the old rate until now,
// and never add tokens; a missing record is made with them.
func TestConfigure(t *testing.T) {
	s, h := timed(t)
	a := standard("a")
	capacity, refill := 50, budget.Rate(0)
	answer, err := s.Configure(t.Context(), a, budget.Change{Capacity: &capacity})
	want := budget.Params{Capacity: 50, Refill: a.Params.Refill, Bonus: a.Params.Bonus}
	if err != nil || answer.Balance.Params != want || answer.Balance.Tokens != 50*budget.Token {
		t.Errorf("Configure() of nothing = %+v, %v, want full with %+v", answer, err, want)
	}
	withdrawn(t, s, a, 40)
	h.pass(30 * time.Second)
	capacity = 100
	if _, err := s.Configure(t.Context(), a, budget.Change{Capacity: &capacity, Refill: &refill}); err != nil {
		t.Fatal(err)
	}
	h.pass(time.Hour)
	if r := peek(t, s, a); r.Bucket.Tokens != 13*budget.Token || r.Bucket.Params.Capacity != 100 {
		t.Errorf("record = %+v, want 10 tokens, 3 for the time at the old rate, and none since", r.Bucket)
	}
	old := time.Unix(1, 0)
	if err := os.Chtimes(path(s, a), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Configure(t.Context(), a, budget.Change{Capacity: &capacity}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path(s, a)); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("Configure() with what stands there wrote the record (%v)", err)
	}
	capacity = 5
	if answer, err := s.Configure(t.Context(), a, budget.Change{Capacity: &capacity}); err != nil || answer.Balance.Tokens != 5*budget.Token {
		t.Errorf("Configure(5) = %+v, %v, want 5 tokens", answer, err)
	}
}

func TestReset(t *testing.T) {
	s, _ := timed(t)
	a := fixed("a", 7)
	if err := s.Reset(t.Context(), a); err != nil {
		t.Errorf("Reset() of nothing = %v, want nil", err)
	}
	withdrawn(t, s, a, 5)
	if _, err := s.Settle(t.Context(), a, budget.Settling{Breaker: true, Rule: rule, Result: budget.Result{Failed: true}}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(t.Context(), fixed("a", 99)); err != nil {
		t.Fatal(err)
	}
	r := peek(t, s, a)
	if r.Bucket.Tokens != 7*budget.Token || r.Bucket.Params.Capacity != 7 || r.Breaker.State != budget.BreakerClosed || r.Counters.Granted != 5 {
		t.Errorf("after Reset() it is %+v, want full, closed, parameters and counters kept", r)
	}
}

// Records of runs are apart from those of budgets, whatever the run is called,
// and go when nobody has used them for a week.
func TestRunRecords(t *testing.T) {
	s, h := timed(t)
	ids := []string{"01J9ZZZZZZZZZZZZZZZZZZZZZZ", "nightly", "../../etc/passwd", strings.Repeat("long", 100), "Ünïcode", "A", "a"}
	for i, id := range ids {
		a := budget.Account{Space: budget.Runs, Name: id, Params: budget.Params{Capacity: i + 1}}
		if _, err := s.Configure(t.Context(), a, budget.Change{}); err != nil {
			t.Fatalf("Configure(%q) = %v, want nil", id, err)
		}
	}
	for i, id := range ids {
		a := budget.Account{Space: budget.Runs, Name: id}
		if got := withdrawn(t, s, a, 10); got != i+1 {
			t.Errorf("run %q paid %d, want %d", id, got, i+1)
		}
	}
	runs := filepath.Join(s.Dir.Path, "runs")
	if files, err := os.ReadDir(runs); err != nil || len(files) != len(ids) {
		t.Fatalf("runs has %d files, %v, want %d", len(files), err, len(ids))
	}
	if names, err := s.List(t.Context(), budget.Named); err != nil || len(names) != 0 {
		t.Errorf("List(Named) = %q, %v, want no runs among them", names, err)
	}

	// A run that is still used is written once a day, so that it stays.
	long := time.Now().Add(-8 * 24 * time.Hour)
	age := func() {
		for _, name := range []string{"nightly", "a"} {
			if err := os.Chtimes(filepath.Join(runs, name), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	age()
	h.pass(25 * time.Hour)
	if _, err := s.Configure(t.Context(), budget.Account{Space: budget.Runs, Name: "nightly"}, budget.Change{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Configure(t.Context(), budget.Account{Space: budget.Runs, Name: "new"}, budget.Change{}); err != nil {
		t.Fatal(err)
	}
	names, err := s.List(t.Context(), budget.Runs)
	if joined := fmt.Sprint(names); err != nil || !strings.Contains(joined, "nightly") || strings.Contains(joined, " a ") || strings.Contains(joined, "[a ") {
		t.Errorf("List(Runs) = %q, %v, want nightly kept and a gone", names, err)
	}
}

// The fallback's records are apart too.
func TestFallbackRecords(t *testing.T) {
	s, _ := timed(t)
	withdrawn(t, s, budget.Account{Space: budget.Fallbacks, Name: "a", Params: budget.Params{Capacity: 3}}, 3)
	if got := withdrawn(t, s, standard("a"), 25); got != 20 {
		t.Errorf("the budget of the same name paid %d, want 20", got)
	}
}

// Property 41: a prober that dies is replaced when its lease ends. Property 43:
// until then, and before the cooldown is over, nobody else runs.
func TestDeadProber(t *testing.T) {
	s, h := timed(t)
	a := standard("a")
	if _, err := s.Settle(t.Context(), a, budget.Settling{Breaker: true, Rule: rule, Result: budget.Result{Failed: true, Dice: 0.5}}, 0); err != nil {
		t.Fatal(err)
	}
	ask := func(nonce uint64) bool {
		t.Helper()
		answer, err := s.Ask(t.Context(), a, rule, nonce)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Granted
	}
	var got []bool
	for _, step := range []struct {
		pass  time.Duration
		nonce uint64
	}{{0, 1}, {time.Minute - 1, 1}, {1, 1}, {0, 2}, {time.Minute - 1, 2}, {1, 2}, {0, 1}} {
		h.pass(step.pass)
		got = append(got, ask(step.nonce))
	}
	if want := []bool{false, false, true, false, false, true, false}; !cmp.Equal(got, want) {
		t.Errorf("permits = %v, want %v", got, want)
	}
}

// A lease is given back only by its holder, and only then is anything written.
func TestReleaseWritesOnlyForTheHolder(t *testing.T) {
	s, h := timed(t)
	a := standard("a")
	if _, err := s.Settle(t.Context(), a, budget.Settling{Breaker: true, Rule: rule, Result: budget.Result{Failed: true}}, 0); err != nil {
		t.Fatal(err)
	}
	h.pass(time.Hour)
	if answer, err := s.Ask(t.Context(), a, rule, 5); err != nil || !answer.Permit.Leased {
		t.Fatalf("Ask() = %+v, %v, want the lease", answer, err)
	}
	release := func(nonce uint64) budget.Breaker {
		how := budget.Settling{Breaker: true, Release: true, Rule: rule, Result: budget.Result{Nonce: nonce}}
		if _, err := s.Settle(t.Context(), a, how, 0); err != nil {
			t.Fatal(err)
		}
		return peek(t, s, a).Breaker
	}
	if b := release(6); b.Holder != 5 {
		t.Errorf("a stranger's release left %+v, want the holder in place", b)
	}
	if b := release(5); b.Holder != 0 || b.State != budget.BreakerHalfOpen {
		t.Errorf("the holder's release left %+v, want half-open and free", b)
	}
}

// With a breaker a success is written until ten of them stand there.
func TestCleanBreakerIsNotWritten(t *testing.T) {
	s, _ := timed(t)
	a := standard("a")
	writes := 0
	for range 1000 {
		before, _ := os.ReadFile(path(s, a))
		if _, err := s.Settle(t.Context(), a, budget.Settling{Bonus: true, Breaker: true, Rule: rule}, 0); err != nil {
			t.Fatal(err)
		}
		if after, _ := os.ReadFile(path(s, a)); !bytes.Equal(before, after) {
			writes++
		}
	}
	if writes != 10 {
		t.Errorf("1000 successes wrote %d times, want 10", writes)
	}
}

// Property 17: no descriptor is left open, so none can reach a child.
func TestNoDescriptorStaysOpen(t *testing.T) {
	s, _ := timed(t)
	a := standard("a")
	withdrawn(t, s, a, 2)
	_, _ = s.Settle(t.Context(), a, budget.Settling{Bonus: true}, 0)
	_, _ = s.List(t.Context(), budget.Named)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("cannot see open descriptors: ", err)
	}
	for _, fd := range open {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, s.Dir.Path) {
			t.Errorf("descriptor %s is open on %s", fd.Name(), target)
		}
	}
}

// What cannot be used at all is told from what failed.
func TestUnusableIsMarked(t *testing.T) {
	s := store("/proc/nowhere")
	if _, err := s.Withdraw(t.Context(), standard("a"), 0); !errors.Is(err, budget.ErrUnusable) {
		t.Errorf("Withdraw() in /proc = %v, want ErrUnusable", err)
	}
	if s.Kind() != budget.KindFile {
		t.Errorf("Kind() = %q, want file", s.Kind())
	}
}
