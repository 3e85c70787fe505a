// Package storetest holds a store to what budget.Store promises. Every store
// runs the same tests: decisions one by one, random histories against
// budget.Record, and many clients at once.
package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/budget"
)

// Bench is an empty store whose clock the test moves.
type Bench struct {
	Store budget.Store
	// Set sets the store's clock, in microseconds since 1970.
	Set func(us int64)

	t  *testing.T
	at int64
	op uint64
}

// epoch is when tests begin, in microseconds.
const epoch = int64(1_700_000_000_000_000)

// begin sets the clock for the first time.
func begin(t *testing.T, b Bench) *Bench {
	t.Helper()
	b.t = t
	b.pass(time.Duration(epoch) * time.Microsecond)
	return &b
}

func (b *Bench) pass(d time.Duration) {
	b.at += d.Microseconds()
	b.Set(b.at)
}

// next names an operation.
func (b *Bench) next() uint64 {
	b.op++
	return b.op
}

// withdrawn returns how many of n withdrawals were granted.
func (b *Bench) withdrawn(t *testing.T, a budget.Account, n int) int {
	t.Helper()
	granted := 0
	for range n {
		answer, err := b.Store.Withdraw(t.Context(), a, b.next())
		if err != nil {
			t.Fatalf("Withdraw(%s) = %v, want nil", a.Name, err)
		}
		if answer.Granted {
			granted++
		}
	}
	return granted
}

func (b *Bench) settle(t *testing.T, a budget.Account, how budget.Settling) budget.Answer {
	t.Helper()
	answer, err := b.Store.Settle(t.Context(), a, how, b.next())
	if err != nil {
		t.Fatalf("Settle(%+v) = %v, want nil", how, err)
	}
	return answer
}

func (b *Bench) peek(t *testing.T, a budget.Account) budget.Record {
	t.Helper()
	r, found, err := b.Store.Peek(t.Context(), a)
	if err != nil || !found {
		t.Fatalf("Peek(%s) = %v, %v, want a record", a.Name, found, err)
	}
	return r
}

func standard(name string) budget.Account {
	return budget.Account{Name: name, Params: budget.Defaults()}
}

func fixed(name string, capacity int) budget.Account {
	return budget.Account{Name: name, Params: budget.Params{Capacity: capacity}}
}

// trigger is a breaker that opens at once.
func trigger() budget.BreakerRule {
	return budget.BreakerRule{Threshold: 1, Cooldown: time.Minute, Lease: time.Minute}
}

// Run runs every test of one client. open returns a store of its own each time.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*Bench)
	}{
		{"withdraw refund refill", withdrawRefundRefill},
		{"refund without a record", refundWithoutARecord},
		{"ten bonuses make a token", tenBonusesMakeAToken},
		{"denial takes nothing", denialTakesNothing},
		{"a full bucket stays full", fullStaysFull},
		{"configure", configure},
		{"reset", reset},
		{"peek and list", peekAndList},
		{"runs", runs},
		{"fallbacks", fallbacks},
		{"dead prober", deadProber},
		{"release", release},
		{"clean breaker", cleanBreaker},
		{"outcomes age", outcomesAge},
		{"property 59: clock back and forth", clockBackAndForth},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(begin(t, open(t))) })
	}
	t.Run("histories", func(t *testing.T) { histories(begin(t, open(t)), lives()) })
	t.Run("breaker histories", func(t *testing.T) { histories(begin(t, open(t)), breakerLives()) })
}

func withdrawRefundRefill(b *Bench) {
	t := b.t
	a := standard("a")
	if got := b.withdrawn(t, a, 25); got != 20 {
		t.Errorf("a new budget paid %d of 25, want 20", got)
	}
	if answer, err := b.Store.Refund(t.Context(), a, b.next()); err != nil || answer.Balance.Tokens != budget.Token {
		t.Errorf("Refund() = %+v, %v, want one token", answer, err)
	}
	b.pass(30 * time.Second)
	if got := b.withdrawn(t, a, 25); got != 4 {
		t.Errorf("after a refund and 30 s at 0.1/s it paid %d, want 4", got)
	}
	answer, err := b.Store.Withdraw(t.Context(), a, b.next())
	if err != nil || answer.Granted || answer.Balance.Next != 10*time.Second {
		t.Errorf("Withdraw() = %+v, %v, want a refusal with 10s to go", answer, err)
	}
}

// A record that is gone is full: a refund has nothing to write.
func refundWithoutARecord(b *Bench) {
	t := b.t
	a := standard("a")
	if answer, err := b.Store.Refund(t.Context(), a, b.next()); err != nil || answer.Balance.Tokens != 20*budget.Token {
		t.Errorf("Refund() = %+v, %v, want a full bucket", answer, err)
	}
	if _, found, err := b.Store.Peek(t.Context(), a); found || err != nil {
		t.Errorf("Peek() = %v, %v, want no record", found, err)
	}
}

// Property 5.
func tenBonusesMakeAToken(b *Bench) {
	t := b.t
	a := budget.Account{Name: "a", Params: budget.Params{Capacity: 1, Bonus: budget.Token / 10}}
	b.withdrawn(t, a, 1)
	for i := range 10 {
		if got := b.withdrawn(t, a, 1); got != 0 {
			t.Fatalf("after %d bonuses of 0.1 it paid", i)
		}
		b.settle(t, a, budget.Settling{Bonus: true})
	}
	if got := b.withdrawn(t, a, 2); got != 1 {
		t.Errorf("after ten bonuses of 0.1 it paid %d, want 1", got)
	}
}

// Property 6: refusals take nothing, however many.
func denialTakesNothing(b *Bench) {
	t := b.t
	a := standard("a")
	b.withdrawn(t, a, 20)
	for range 9 {
		b.pass(time.Second)
		if got := b.withdrawn(t, a, 3); got != 0 {
			t.Fatalf("with less than a token it paid %d, want 0", got)
		}
	}
	b.pass(time.Second)
	if got := b.withdrawn(t, a, 3); got != 1 {
		t.Errorf("after 10 s of refusals at 0.1/s it paid %d, want 1", got)
	}
}

// Property 7: a bonus does nothing to a full bucket, and makes no record.
func fullStaysFull(b *Bench) {
	t := b.t
	a := standard("a")
	if answer := b.settle(t, a, budget.Settling{Bonus: true}); answer.Balance.Tokens != 20*budget.Token {
		t.Errorf("Settle() = %+v, want 20 tokens", answer)
	}
	if _, found, _ := b.Store.Peek(t.Context(), a); found {
		t.Error("a success without a record made one")
	}
	b.withdrawn(t, a, 2)
	b.pass(time.Minute)
	b.settle(t, a, budget.Settling{Bonus: true})
	if r := b.peek(t, a); r.Counters.Deposits != 0 || r.Bucket.Tokens != 20*budget.Token {
		t.Errorf("record = %+v, want 20 tokens and no deposit written", r)
	}
}

// Property 9.
func configure(b *Bench) {
	t := b.t
	a := standard("a")
	capacity, refill := 50, budget.Rate(0)
	answer, err := b.Store.Configure(t.Context(), a, budget.Change{Capacity: &capacity})
	want := budget.Params{Capacity: 50, Refill: a.Params.Refill, Bonus: a.Params.Bonus}
	if err != nil || answer.Balance.Params != want || answer.Balance.Tokens != 50*budget.Token {
		t.Errorf("Configure() of nothing = %+v, %v, want full with %+v", answer, err, want)
	}
	b.withdrawn(t, a, 40)
	b.pass(30 * time.Second)
	capacity = 100
	if _, err := b.Store.Configure(t.Context(), a, budget.Change{Capacity: &capacity, Refill: &refill}); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Hour)
	if r := b.peek(t, a); r.Bucket.Tokens != 13*budget.Token || r.Bucket.Params.Capacity != 100 {
		t.Errorf("record = %+v, want 10 tokens, 3 for the time at the old rate, and none since", r.Bucket)
	}
	capacity = 5
	if answer, err := b.Store.Configure(t.Context(), a, budget.Change{Capacity: &capacity}); err != nil || answer.Balance.Tokens != 5*budget.Token {
		t.Errorf("Configure(5) = %+v, %v, want 5 tokens", answer, err)
	}
}

func reset(b *Bench) {
	t := b.t
	a := fixed("a", 7)
	if err := b.Store.Reset(t.Context(), a); err != nil {
		t.Errorf("Reset() of nothing = %v, want nil", err)
	}
	b.withdrawn(t, a, 5)
	b.settle(t, a, budget.Settling{Breaker: true, Rule: trigger(), Result: budget.Result{Failed: true}})
	if err := b.Store.Reset(t.Context(), fixed("a", 99)); err != nil {
		t.Fatal(err)
	}
	r := b.peek(t, a)
	if r.Bucket.Tokens != 7*budget.Token || r.Bucket.Params.Capacity != 7 || r.Breaker.State != budget.BreakerClosed || r.Counters.Granted != 5 {
		t.Errorf("after Reset() it is %+v, want full, closed, parameters and counters kept", r)
	}
}

// Property 63: looking sees the time that has passed, and writes nothing.
func peekAndList(b *Bench) {
	t := b.t
	a := standard("b-1_x.y")
	if r, found, err := b.Store.Peek(t.Context(), a); found || err != nil || r.Bucket.Tokens != 20*budget.Token {
		t.Errorf("Peek() of nothing = %+v, %v, %v, want a full bucket, not found", r, found, err)
	}
	if names, err := b.Store.List(t.Context(), budget.Named); err != nil || len(names) != 0 {
		t.Errorf("List() of nothing = %q, %v, want none", names, err)
	}
	b.withdrawn(t, a, 3)
	b.withdrawn(t, standard("a"), 1)
	b.pass(10 * time.Second)
	for range 2 {
		if r := b.peek(t, a); r.Bucket.Tokens != 18*budget.Token || r.Counters.Granted != 3 {
			t.Errorf("Peek() = %+v, want 18 tokens by now and 3 granted", r)
		}
	}
	if names, err := b.Store.List(t.Context(), budget.Named); err != nil || !cmp.Equal(names, []string{"a", a.Name}) {
		t.Errorf("List() = %q, %v, want a and %s", names, err, a.Name)
	}
	if answer, err := b.Store.Ask(t.Context(), standard("c"), trigger(), 1); err != nil || !answer.Granted {
		t.Errorf("Ask() of nothing = %+v, %v, want a permit", answer, err)
	}
	if _, found, _ := b.Store.Peek(t.Context(), standard("c")); found {
		t.Error("Ask() made a record")
	}
}

// Records of runs are apart from those of budgets, whatever the run is called.
func runs(b *Bench) {
	t := b.t
	ids := []string{"01J9ZZZZZZZZZZZZZZZZZZZZZZ", "nightly", "../../etc/passwd", "a:b", "Ünïcode", "{x}y", "}", "A", "a"}
	for i, id := range ids {
		a := budget.Account{Space: budget.Runs, Name: id, Params: budget.Params{Capacity: i + 1}}
		if _, err := b.Store.Configure(t.Context(), a, budget.Change{}); err != nil {
			t.Fatalf("Configure(%q) = %v, want nil", id, err)
		}
	}
	for i, id := range ids {
		a := budget.Account{Space: budget.Runs, Name: id}
		if got := b.withdrawn(t, a, 10); got != i+1 {
			t.Errorf("run %q paid %d, want %d", id, got, i+1)
		}
	}
	if names, err := b.Store.List(t.Context(), budget.Runs); err != nil || len(names) != len(ids) {
		t.Errorf("List(Runs) = %q, %v, want %d", names, err, len(ids))
	}
	if names, err := b.Store.List(t.Context(), budget.Named); err != nil || len(names) != 0 {
		t.Errorf("List(Named) = %q, %v, want no runs among them", names, err)
	}
}

func fallbacks(b *Bench) {
	t := b.t
	b.withdrawn(t, budget.Account{Space: budget.Fallbacks, Name: "a", Params: budget.Params{Capacity: 3}}, 3)
	if got := b.withdrawn(t, standard("a"), 25); got != 20 {
		t.Errorf("the budget of the same name paid %d, want 20", got)
	}
}

// Property 41: a prober that dies is replaced when its lease ends. Property 43:
// until then, and before the cooldown is over, nobody else runs.
func deadProber(b *Bench) {
	t := b.t
	a := standard("a")
	b.settle(t, a, budget.Settling{Breaker: true, Rule: trigger(), Result: budget.Result{Failed: true, Dice: 0.5}})
	var got []bool
	for _, step := range []struct {
		pass  time.Duration
		nonce uint64
	}{{0, 1}, {time.Minute - time.Microsecond, 1}, {time.Microsecond, 1}, {0, 2}, {time.Minute - time.Microsecond, 2}, {time.Microsecond, 2}, {0, 1}} {
		b.pass(step.pass)
		answer, err := b.Store.Ask(t.Context(), a, trigger(), step.nonce)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, answer.Granted)
	}
	if want := []bool{false, false, true, false, false, true, false}; !cmp.Equal(got, want) {
		t.Errorf("permits = %v, want %v", got, want)
	}
}

// A lease is given back only by its holder. Holders are 64-bit numbers.
func release(b *Bench) {
	t := b.t
	const holder = 1<<63 + 5
	a := standard("a")
	b.settle(t, a, budget.Settling{Breaker: true, Rule: trigger(), Result: budget.Result{Failed: true}})
	b.pass(time.Hour)
	if answer, err := b.Store.Ask(t.Context(), a, trigger(), holder); err != nil || !answer.Permit.Leased || answer.Permit.Generation != 2 {
		t.Fatalf("Ask() = %+v, %v, want the lease of generation 2", answer, err)
	}
	give := func(nonce uint64) budget.Breaker {
		b.settle(t, a, budget.Settling{Breaker: true, Release: true, Rule: trigger(), Result: budget.Result{Nonce: nonce}})
		return b.peek(t, a).Breaker
	}
	if k := give(holder - 1); k.Holder != holder {
		t.Errorf("a stranger's release left %+v, want the holder in place", k)
	}
	if k := give(holder); k.Holder != 0 || k.State != budget.BreakerHalfOpen {
		t.Errorf("the holder's release left %+v, want half-open and free", k)
	}
}

// Ten successes stand there, and no more are written for a minute.
func cleanBreaker(b *Bench) {
	t := b.t
	a := standard("a")
	success := budget.Settling{Bonus: true, Breaker: true, Rule: trigger()}
	for range 10 {
		b.pass(time.Second)
		b.settle(t, a, success)
	}
	before := b.peek(t, a)
	b.settle(t, a, success)
	if after := b.peek(t, a); len(after.Breaker.Recent) != 10 || !cmp.Equal(before, after) {
		t.Errorf("the eleventh success changed the record to %+v", after)
	}
	b.pass(51 * time.Second)
	b.settle(t, a, success)
	if after := b.peek(t, a); after.Counters.Deposits != before.Counters.Deposits {
		t.Errorf("a success a minute after the first left %+v, want it not counted", after)
	}
	b.pass(time.Microsecond)
	b.settle(t, a, success)
	if after := b.peek(t, a); after.Counters.Deposits != before.Counters.Deposits+1 {
		t.Errorf("a success after more than a minute left %+v, want it counted", after)
	}
}

// Property 44: outcomes count for just under ten minutes.
func outcomesAge(b *Bench) {
	t := b.t
	rule := budget.BreakerRule{Threshold: 2, Cooldown: time.Minute, Lease: time.Minute}
	for name, c := range map[string]struct {
		later time.Duration
		want  budget.BreakerState
	}{
		"young": {10*time.Minute - time.Microsecond, budget.BreakerIsOpen},
		"old":   {10 * time.Minute, budget.BreakerClosed},
	} {
		a := standard(name)
		for _, failed := range []bool{true, false} {
			b.settle(t, a, budget.Settling{Breaker: true, Rule: rule, Result: budget.Result{Failed: failed}})
		}
		b.pass(c.later)
		b.settle(t, a, budget.Settling{Breaker: true, Rule: rule, Result: budget.Result{Failed: true}})
		if k := b.peek(t, a).Breaker; k.State != c.want {
			t.Errorf("two of three failed, the others %v ago: breaker is %v, want %v", c.later, k.State, c.want)
		}
	}
}

// Properties 30 to 32, 35, 59: a clock that is set mints at most one bucket,
// however often, and never stops the refill for longer than an hour.
func clockBackAndForth(b *Bench) {
	t := b.t
	a := standard("a")
	b.withdrawn(t, a, 20)
	b.pass(-30 * time.Minute)
	if got := b.withdrawn(t, a, 1); got != 0 {
		t.Error("a clock set back paid")
	}
	b.pass(30 * time.Minute)
	if got := b.withdrawn(t, a, 1); got != 0 {
		t.Error("a clock set back and forward again paid twice for the same time")
	}
	b.pass(10 * time.Second)
	if got := b.withdrawn(t, a, 2); got != 1 {
		t.Errorf("10 s later it paid %d, want 1", got)
	}
	b.pass(-100 * time.Hour)
	if got := b.withdrawn(t, a, 1); got != 0 {
		t.Error("a clock set back by days paid")
	}
	b.pass(10 * time.Second)
	if got := b.withdrawn(t, a, 2); got != 1 {
		t.Errorf("10 s after it was set back by days it paid %d, want 1: the refill goes on", got)
	}
	b.pass(1000 * time.Hour)
	if got := b.withdrawn(t, a, 50); got != 20 {
		t.Errorf("a clock set forward by weeks paid %d, want one bucket", got)
	}
	if r := b.peek(t, a); r.Counters.Anomalies != 1 {
		t.Errorf("counters = %+v, want one anomaly", r.Counters)
	}
}
