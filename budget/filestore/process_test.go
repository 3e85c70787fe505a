package filestore_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
)

// rule is a breaker that opens at once.
var rule = budget.BreakerRule{Threshold: 1, Cooldown: time.Minute, Lease: time.Minute}

// call is one withdrawal of a process, as it saw it itself.
type call struct {
	begin, end, left int64
}

func calls(t *testing.T, outputs []string) []call {
	t.Helper()
	var all []call
	for _, output := range outputs {
		for line := range strings.Lines(output) {
			var c call
			if _, err := fmt.Sscan(line, &c.begin, &c.end, &c.left); err != nil {
				t.Fatalf("helper wrote %q: %v", line, err)
			}
			all = append(all, c)
		}
	}
	return all
}

// Properties 13, 15 and 20: 200 processes that begin at once, without a record,
// get exactly the tokens there are, make one file, and the counters agree.
func TestManyProcessesShareOneBucket(t *testing.T) {
	const processes, capacity = 200, 100
	dir := stateDir(t)
	granted, refused := 0, 0
	for _, c := range calls(t, many(t, processes, "drain", dir, capacity)) {
		if c.left >= 0 {
			granted++
		} else {
			refused++
		}
	}
	if granted != capacity || refused != processes {
		t.Errorf("%d processes got %d tokens and %d refusals, want %d and %d", processes, granted, refused, capacity, processes)
	}
	r := peek(t, store(dir), fixed("shared", capacity))
	if r.Counters.Granted != capacity || r.Counters.Denied != processes || r.Bucket.Tokens != 0 {
		t.Errorf("the record says %+v and %s tokens, want %d granted, %d denied, none left", r.Counters, r.Bucket.Tokens, capacity, processes)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "budgets")); len(files) != 1 || err != nil {
		t.Errorf("the directory has %v, %v, want one file", files, err)
	}
}

// Property 14: every grant leaves a balance of its own, which orders them all; an
// order is right if nobody who began after another had ended comes before it.
func TestGrantsAreLinearizable(t *testing.T) {
	const processes, capacity = 8, 2000
	all := calls(t, many(t, processes, "drain", stateDir(t), capacity))
	var grants, refusals []call
	for _, c := range all {
		if c.left >= 0 {
			grants = append(grants, c)
		} else {
			refusals = append(refusals, c)
		}
	}
	slices.SortFunc(grants, func(a, b call) int { return cmp.Compare(b.left, a.left) })
	latest := int64(0) // the latest begin of those that come before
	for i, c := range grants {
		if want := int64(capacity - 1 - i); c.left != want {
			t.Fatalf("grant %d left %d tokens, want %d: each balance once", i, c.left, want)
		}
		if c.end < latest {
			t.Fatalf("grant %d ended before an earlier one began", i)
		}
		latest = max(latest, c.begin)
	}
	for _, c := range refusals {
		if c.end < latest {
			t.Error("a refusal ended before the last token was asked for")
		}
	}
}

// Property 19: while processes withdraw, the file is removed again and again.
// Every file pays its tokens at most once, and in the end there is one, which is
// ours if nobody withdrew after the last removal.
func TestRemovedWhileInUse(t *testing.T) {
	const processes, capacity, removals = 4, 50, 30
	dir := stateDir(t)
	path := filepath.Join(dir, "budgets", "shared")
	var helpers []*helper
	for range processes {
		helpers = append(helpers, start(t, "loop", dir, capacity))
	}
	begin(t, helpers...)
	for removed := 0; removed < removals; {
		if os.Remove(path) == nil {
			removed++
		}
	}
	granted := 0
	for _, h := range helpers {
		granted += len(h.finish(t))
	}
	if answer, err := withdraw(store(dir), fixed("shared", capacity)); err != nil {
		t.Fatal(err)
	} else if answer.Granted {
		granted++
	}
	if most := capacity * (removals + 1); granted > most {
		t.Errorf("%d files of %d tokens paid %d, want at most %d", removals+1, capacity, granted, most)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); len(files) != 1 || err != nil {
		t.Errorf("the directory has %v, %v, want one file", files, err)
	}
}

// Property 21: a process that is killed at any moment leaves a record that reads,
// with at most one token that nobody got.
func TestKilledInTheMiddle(t *testing.T) {
	const capacity = budget.MaxCapacity
	kills := 100
	if os.Getenv("RETRYX_STRESS") == "1" {
		kills = 10_000
	}
	dir := stateDir(t)
	s, a := store(dir), fixed("shared", capacity)
	lost := uint64(0)
	for i := range kills {
		before := uint64(0)
		if i > 0 {
			before = peek(t, s, a).Counters.Granted
		}
		told := runAndKill(t, dir, capacity, 1+rand.IntN(100))
		r := peek(t, s, a)
		paid := r.Counters.Granted - before
		if paid < told || paid > told+1 {
			t.Fatalf("kill %d: the record paid %d tokens and the process had %d, want them equal or one lost", i, paid, told)
		}
		lost += paid - told
		if want := capacity*budget.Token - budget.Micro(r.Counters.Granted)*budget.Token; r.Bucket.Tokens != want {
			t.Fatalf("kill %d: %s tokens are left, want %s", i, r.Bucket.Tokens, want)
		}
		if r.Counters.Resets != 0 {
			t.Fatalf("kill %d: the record was damaged", i)
		}
	}
	t.Logf("%d kills lost %d tokens", kills, lost)
}

// runAndKill lets a process withdraw, kills it after a number of tokens, and
// returns how many it knew of.
func runAndKill(t *testing.T, dir string, capacity, after int) uint64 {
	t.Helper()
	h := start(t, "loop", dir, capacity)
	begin(t, h)
	told, buffer := 0, make([]byte, 1)
	for told < after {
		n, err := h.out.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		told += n
	}
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := h.out.Read(buffer)
		told += n
		if err != nil {
			break
		}
	}
	_ = h.cmd.Wait()
	return uint64(told)
}

// Property 40: of many processes that find the cooldown over, one probes.
func TestOneProbeAmongProcesses(t *testing.T) {
	dir := stateDir(t)
	s, a := store(dir), fixed("shared", 5)
	ctx := t.Context()
	failed := budget.Settling{Breaker: true, Rule: budget.BreakerRule{Threshold: 1, Lease: time.Minute}, Result: budget.Result{Failed: true}}
	if answer, err := s.Settle(ctx, a, failed, 0); err != nil || answer.Breaker.State != budget.BreakerIsOpen {
		t.Fatalf("Settle(failed) = %+v, %v, want an open breaker", answer, err)
	}
	granted := 0
	for _, output := range many(t, 30, "probe", dir, 5) {
		if output == "true" {
			granted++
		}
	}
	if granted != 1 {
		t.Errorf("30 processes began %d probes, want 1", granted)
	}
}
