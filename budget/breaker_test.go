package budget_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
)

var rule = budget.BreakerRule{Threshold: 5, Cooldown: 30 * time.Second, Lease: 60 * time.Second}

// run plays outcomes ('F', 'S') one second apart into a fresh breaker and returns
// it with the time after the last.
func run(t *testing.T, rule budget.BreakerRule, outcomes string) (budget.Breaker, int64) {
	t.Helper()
	var b budget.Breaker
	now := int64(0)
	for _, o := range outcomes {
		now += second
		if !b.Record(now, rule, budget.Result{Failed: o == 'F', Generation: b.Generation, Dice: 0.5}) {
			t.Fatalf("Record(%c) in %q was ignored", o, outcomes)
		}
	}
	return b, now
}

// Property 44: both rules open exactly at the threshold, and only on a failure.
func TestBreakerOpensAtTheThreshold(t *testing.T) {
	with := func(threshold int) budget.BreakerRule { r := rule; r.Threshold = threshold; return r }
	tests := []struct {
		outcomes string // the last one decides
		rule     budget.BreakerRule
		open     bool
	}{
		{"FFFF", rule, false},
		{"FFFFF", rule, true},
		{"SSSSSSSSSSFFFF", rule, false}, // 4 of 10
		{"SSSSSSSSSSFFFFF", rule, true}, // five in a row
		{"FSFS", rule, false},           // 4 outcomes
		{"FSFSF", rule, true},           // 3 of 5
		{"SFSFSF", rule, true},          // 3 of 6
		{"SSFSFSF", rule, false},        // 3 of 7
		{"SSSSSSSFSFSFSF", rule, false}, // last ten: 4 of 10
		{"SSSSSSSFSFSFSFF", rule, true}, // last ten: 5 of 10
		{"FFFFS", rule, false},          // four of five, but a success opens nothing
		{"FFFFSF", rule, true},          // 5 of 6
		{"F", with(1), true},
		{"FF", with(3), false},
		{"FFF", with(3), true},
		{"FSF", with(3), true},           // 2 of 3
		{"FFFFFFFFFFF", with(12), false}, // ten outcomes are fewer than twelve
		{"FFFFFFFFFFFF", with(12), true},
	}
	for _, tt := range tests {
		last := len(tt.outcomes) - 1
		b, now := run(t, tt.rule, tt.outcomes[:last])
		if b.State != budget.BreakerClosed {
			t.Errorf("after %q (threshold %d) it is %v, want closed", tt.outcomes[:last], tt.rule.Threshold, b.State)
			continue
		}
		b.Record(now, tt.rule, budget.Result{Failed: tt.outcomes[last] == 'F', Generation: b.Generation})
		if got := b.State == budget.BreakerIsOpen; got != tt.open {
			t.Errorf("after %q (threshold %d) open = %v, want %v", tt.outcomes, tt.rule.Threshold, got, tt.open)
		}
	}
}

// Property 44: outcomes of ten minutes ago do not count for the ratio; failures in
// a row count however far apart they are.
func TestBreakerForgets(t *testing.T) {
	short := rule
	short.Threshold = 3
	for _, tt := range []struct {
		pause time.Duration
		open  bool
	}{{10*time.Minute - 1, true}, {10 * time.Minute, false}} {
		b, now := run(t, short, "F")
		now += int64(tt.pause)
		b.Record(now, short, budget.Result{Generation: b.Generation})
		b.Record(now, short, budget.Result{Failed: true, Generation: b.Generation})
		if got := b.State == budget.BreakerIsOpen; got != tt.open {
			t.Errorf("F, %v, SF with threshold 3: open = %v, want %v", tt.pause, got, tt.open)
		}
	}
	b, now := run(t, rule, "FFFF")
	b.Record(now+24*hour, rule, budget.Result{Failed: true, Generation: b.Generation})
	if b.State != budget.BreakerIsOpen {
		t.Errorf("a fifth failure in a row a day later leaves it %v, want open", b.State)
	}
}

// Property 43: the cooldown is spread by a fifth, doubles with each failed probe
// to five minutes, and starts over after a success.
func TestBreakerCooldown(t *testing.T) {
	b, now := run(t, rule, "FFFF")
	fail := func(nonce uint64, dice float64) time.Duration {
		b.Record(now, rule, budget.Result{Failed: true, Generation: b.Generation, Nonce: nonce, Dice: dice})
		return b.Wait(now)
	}
	if got, want := fail(0, 0), 24*time.Second; got != want {
		t.Fatalf("lowest cooldown = %v, want %v", got, want)
	}
	for _, want := range []time.Duration{60, 120, 240, 300, 300} {
		if p := b.Ask(b.Until-1, rule, 9); p.Granted || p.Retry != 1 {
			t.Fatalf("Ask() a nanosecond early = %+v, want a refusal for 1ns", p)
		}
		now = b.Until
		if p := b.Ask(now, rule, 9); !p.Granted || !p.Leased {
			t.Fatalf("Ask() after the cooldown = %+v, want a lease", p)
		}
		if got := fail(9, 0.5); got != want*time.Second {
			t.Fatalf("cooldown after a failed probe = %v, want %v", got, want*time.Second)
		}
	}
	now = b.Until
	b.Ask(now, rule, 9)
	b.Record(now, rule, budget.Result{Generation: b.Generation, Nonce: 9})
	if b.State != budget.BreakerClosed || b.Failures != 0 || len(b.Recent) != 0 {
		t.Fatalf("after a good probe it is %+v, want closed and clean", b)
	}
	for range 5 {
		fail(0, 0.999999)
	}
	if got := b.Wait(now); got < 35*time.Second || got > 36*time.Second {
		t.Errorf("highest first cooldown = %v, want just below 36s", got)
	}
}

func open(t *testing.T) (budget.Breaker, int64) {
	t.Helper()
	b, _ := run(t, rule, "FFFFF")
	return b, b.Until
}

// Property 40: one lease at a time. Property 41: one whose holder died is free
// when it expires.
func TestBreakerLease(t *testing.T) {
	b, now := open(t)
	if p := b.Ask(now, rule, 1); !p.Granted {
		t.Fatalf("Ask(1) = %+v, want the lease", p)
	}
	if p := b.Ask(now+1, rule, 2); p.Granted || p.Retry != rule.Lease-1 {
		t.Errorf("Ask(2) during the lease of 1 = %+v, want a refusal until it ends", p)
	}
	now += 59 * second
	if p := b.Ask(now, rule, 1); !p.Granted || p.Leased {
		t.Errorf("Ask(1) by the holder = %+v, want a renewal", p)
	}
	if p := b.Ask(now+int64(rule.Lease)-1, rule, 2); p.Granted {
		t.Errorf("Ask(2) before the renewed lease ends = %+v, want a refusal", p)
	}
	now += int64(rule.Lease)
	p := b.Ask(now, rule, 2)
	if !p.Granted || !p.Leased {
		t.Fatalf("Ask(2) after the lease of 1 = %+v, want the lease", p)
	}
	if p := b.Ask(now, rule, 1); p.Granted {
		t.Errorf("Ask(1) after it lost the lease = %+v, want a refusal", p)
	}
	b.Release(1)
	if b.Holder != 2 {
		t.Errorf("Release(1) took the lease from %d, want it untouched", 2)
	}
	b.Release(2)
	if p := b.Ask(now, rule, 3); !p.Granted {
		t.Errorf("Ask(3) after Release(2) = %+v, want the lease", p)
	}
}

// Property 42: results from an earlier generation, or from others than the
// holder, change nothing.
func TestBreakerIgnoresLateResults(t *testing.T) {
	b, now := open(t)
	early := b.Ask(now, rule, 1)
	late := b.Ask(now+int64(rule.Lease), rule, 2)
	ignored := []budget.Result{
		{Generation: early.Generation, Nonce: 1},               // lost its lease
		{Generation: early.Generation, Nonce: 1, Failed: true}, //
		{Generation: 0},                             // began before it opened
		{Generation: 0, Failed: true},               //
		{Generation: late.Generation, Nonce: 3},     // never had the lease
		{Generation: late.Generation + 1, Nonce: 2}, // from nowhere
	}
	for _, r := range ignored {
		before := b
		before.Recent = slices.Clone(b.Recent)
		if b.Record(now, rule, r) || b.State != before.State || b.Holder != before.Holder || b.Generation != before.Generation || !slices.Equal(b.Recent, before.Recent) {
			t.Errorf("Record(%+v) changed %+v to %+v", r, before, b)
		}
	}
	if !b.Record(now, rule, budget.Result{Generation: late.Generation, Nonce: 2}) || b.State != budget.BreakerClosed {
		t.Errorf("the holder's success leaves it %v, want closed", b.State)
	}
}

// A time that no rule produces keeps nobody out for good.
func TestBreakerIsNeverStuck(t *testing.T) {
	b, now := open(t)
	b.Until = math.MaxInt64
	p := b.Ask(now, rule, 1)
	if p.Granted || p.Retry > 6*time.Minute {
		t.Errorf("Ask() of a breaker open for ever = %+v, want a refusal of at most 6m", p)
	}
	if p := b.Ask(now+int64(p.Retry), rule, 1); !p.Granted {
		t.Errorf("Ask() after that = %+v, want the lease", p)
	}
	b.LeaseEnd = math.MaxInt64
	if p := b.Ask(now+int64(6*time.Minute), rule, 2); !p.Granted {
		t.Errorf("Ask() during an endless lease = %+v, want the lease", p)
	}
}

// A cooldown without reason does not overflow into the past.
func TestBreakerLongestCooldown(t *testing.T) {
	endless := budget.BreakerRule{Threshold: 1, Cooldown: math.MaxInt64, Lease: math.MaxInt64}
	b, now := run(t, endless, "F")
	year := 365 * 24 * time.Hour
	if got := b.Wait(now); b.State != budget.BreakerIsOpen || got < year*9/10 || got > year*12/10 {
		t.Errorf("Wait() = %v, want about a year", got)
	}
	if p := b.Ask(now, endless, 1); p.Granted {
		t.Errorf("Ask() during it = %+v, want a refusal", p)
	}
	if p := b.Ask(b.Until, endless, 1); !p.Granted || b.LeaseEnd < b.Until {
		t.Errorf("Ask() after it = %+v with a lease until %d, want a lease that ends later", p, b.LeaseEnd)
	}
}

// Property 43 across a reboot and a wall clock that steps: the rest of the
// cooldown is what wall time says, within a boot what the boot clock says.
func TestBreakerAcrossBoots(t *testing.T) {
	r := budget.NewRecord(budget.Defaults(), budget.Stamp{Domain: 1, Boot: 1000 * second, Wall: epoch})
	for range 5 {
		r.Breaker.Record(r.Clock.Boot, rule, budget.Result{Failed: true, Generation: r.Breaker.Generation, Dice: 0.5})
	}
	for _, tt := range []struct {
		now  budget.Stamp
		want time.Duration
	}{
		{budget.Stamp{Domain: 1, Boot: 1010 * second, Wall: epoch + 1000*hour}, 20 * time.Second},
		{budget.Stamp{Domain: 1, Boot: 1010 * second, Wall: epoch - 1000*hour}, 20 * time.Second},
		{budget.Stamp{Domain: 2, Boot: 5 * second, Wall: epoch + 10*second}, 20 * time.Second},
		{budget.Stamp{Domain: 2, Boot: 5 * second, Wall: epoch - 10*second}, 30 * time.Second},
		{budget.Stamp{Domain: 2, Boot: 5 * second, Wall: epoch + 31*second}, 0},
	} {
		c := r
		c.Breaker.Recent = slices.Clone(r.Breaker.Recent)
		c.Advance(tt.now)
		if got := c.Breaker.Wait(c.Clock.Boot); got != tt.want {
			t.Errorf("Wait() at %+v = %v, want %v", tt.now, got, tt.want)
		}
	}
}

// The fast path leaves out a success only if it would teach nothing.
func TestBreakerClean(t *testing.T) {
	var clean budget.Breaker
	if clean.Clean(0) {
		t.Error("Clean() of a new breaker = true, want false: a success would count")
	}
	b, now := run(t, rule, "SSSSSSSSSS")
	if !b.Clean(now) {
		t.Error("Clean() after ten successes = false, want true")
	}
	if b.Clean(now + int64(time.Minute)) {
		t.Error("Clean() a minute later = true, want false: the successes grow old")
	}
	b, now = run(t, rule, "SSSSFSSSSS")
	if b.Clean(now) {
		t.Error("Clean() with a failure among the last ten = true, want false")
	}
}

// reference decides by the contract's words from the whole history.
type reference struct {
	outcomes []budget.Past
}

func (m *reference) opens(now int64, threshold int) bool {
	row := 0
	for _, o := range slices.Backward(m.outcomes) {
		if !o.Failed {
			break
		}
		row++
	}
	young, failed := 0, 0
	for _, o := range m.outcomes[max(0, len(m.outcomes)-10):] {
		if now-o.At < int64(10*time.Minute) {
			young++
			if o.Failed {
				failed++
			}
		}
	}
	last := m.outcomes[len(m.outcomes)-1]
	return last.Failed && (row >= threshold || young >= threshold && failed*2 >= young)
}

// Properties 40 to 44 against a model, over random histories of many callers.
func TestBreakerAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := budget.BreakerRule{Threshold: rapid.IntRange(1, 12).Draw(t, "threshold"), Cooldown: 30 * time.Second, Lease: 60 * time.Second}
		var b budget.Breaker
		m := &reference{}
		permits := make(map[uint64]budget.Permit)
		now, openedAt := int64(0), int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += rapid.OneOf(rapid.Int64Range(0, 5*second), rapid.Int64Range(0, 5*int64(time.Minute))).Draw(t, "elapsed")
			nonce := rapid.Uint64Range(1, 4).Draw(t, "caller")
			permit, asked := permits[nonce]
			if !asked || rapid.Bool().Draw(t, "ask again") {
				before := b
				p := b.Ask(now, rule, nonce)
				delete(permits, nonce)
				if p.Granted {
					permits[nonce] = p
				}
				if before.State == budget.BreakerIsOpen && p.Granted && now < openedAt+int64(24*time.Second) {
					t.Fatalf("probe %d ns after opening, want at least 24s", now-openedAt)
				}
				if before.State == budget.BreakerHalfOpen && before.Holder != 0 && before.Holder != nonce && now < before.LeaseEnd && p.Granted {
					t.Fatalf("second probe by %d during the lease of %d", nonce, before.Holder)
				}
				if p.Granted != (b.State == budget.BreakerClosed || b.Holder == nonce) {
					t.Fatalf("Ask() = %+v but the breaker is %+v", p, b)
				}
				continue
			}
			delete(permits, nonce)
			failed := rapid.Bool().Draw(t, "failed")
			before := b.State
			counted := b.Record(now, rule, budget.Result{Failed: failed, Generation: permit.Generation, Nonce: nonce, Dice: rapid.Float64Range(0, 0.999).Draw(t, "dice")})
			switch {
			case !counted && b.State != before:
				t.Fatalf("an ignored result moved it from %v to %v", before, b.State)
			case counted && before == budget.BreakerClosed:
				m.outcomes = append(m.outcomes, budget.Past{Failed: failed, At: now})
				if got, want := b.State == budget.BreakerIsOpen, m.opens(now, rule.Threshold); got != want {
					t.Fatalf("after %+v open = %v, want %v", m.outcomes, got, want)
				}
			case counted && before == budget.BreakerHalfOpen && !failed:
				m.outcomes = nil
			}
			if b.State == budget.BreakerIsOpen && before != budget.BreakerIsOpen {
				openedAt = now
			}
			if r := (budget.Record{Breaker: b}); r.Validate() != nil {
				t.Fatalf("Validate() = %v, want nil for %+v", r.Validate(), b)
			}
		}
	})
}
