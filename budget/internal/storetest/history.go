package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
)

// A history is one account's life at random. budget.Record is the model: after
// every step the store must have said what the model says, and hold what the
// model holds. A store may count in whole microseconds; then an end of a
// cooldown is rounded up, which nobody can tell who asks at whole microseconds.

// histories checks properties 1, 2, 6, 8, 9, 42 to 44, 59.
func histories(b *Bench, verbs []string) {
	n := 0
	rapid.Check(b.t, func(rt *rapid.T) {
		n++
		h := &history{
			t: rt, b: b, verbs: verbs, rule: rules().Draw(rt, "rule"),
			account: budget.Account{Name: fmt.Sprintf("h%d", n), Params: params().Draw(rt, "params")},
		}
		h.most = h.account.Params
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			h.step()
			h.compare()
		}
		h.bound()
	})
}

type history struct {
	t          *rapid.T
	b          *Bench
	account    budget.Account
	rule       budget.BreakerRule
	record     *budget.Record
	generation uint64 // of the last permit
	nonce      uint64 // who got it
	verbs      []string

	// for the bound
	most    budget.Params // the largest parameters that were in force
	elapsed time.Duration // forward
	resets  int           // fillings by Reset
}

func (h *history) now() budget.Stamp {
	return budget.Stamp{Domain: 1, Boot: h.b.at * 1000, Wall: h.b.at * 1000}
}

// on applies a decision to the model, which is kept if keep says so.
func (h *history) on(decide func(r *budget.Record, missing bool) (keep bool)) budget.Record {
	r, missing := budget.NewRecord(h.account.Params, h.now()), h.record == nil
	if !missing {
		r = *h.record
		r.Breaker.Recent = append([]budget.Past(nil), r.Breaker.Recent...)
		r.Advance(h.now())
	}
	if decide(&r, missing) {
		kept := r
		h.record = &kept
	}
	return r
}

func (h *history) step() {
	verbs := map[string]func(){
		"pass": h.pass, "withdraw": h.withdraw, "refund": h.refund, "configure": h.configure,
		"ask": h.ask, "settle": h.settle, "reset": h.reset, "aim": h.aim, "fail": h.fail, "succeed": h.succeed,
	}
	verbs[rapid.SampledFrom(h.verbs).Draw(h.t, "verb")]()
}

// lives are the verbs of a history, as often as they should come.
func lives() []string {
	return []string{"pass", "pass", "pass", "aim", "withdraw", "withdraw", "withdraw", "refund", "configure", "ask", "ask", "settle", "settle", "reset"}
}

// breakerLives are those of one that is about the breaker.
func breakerLives() []string {
	return []string{"pass", "aim", "aim", "aim", "ask", "ask", "fail", "fail", "fail", "succeed", "settle", "withdraw"}
}

// aim sets the clock to where something ends, or a microsecond beside it.
func (h *history) aim() {
	if h.record == nil {
		return
	}
	k := &h.record.Breaker
	ends := []int64{k.Until, k.LeaseEnd}
	for _, past := range k.Recent {
		ends = append(ends, past.At+int64(10*time.Minute), past.At+int64(time.Minute))
	}
	// Where a stored time is just not, or just, absurdly far ahead.
	ends = append(ends, h.record.Clock.Boot-int64(max(min(h.record.Bucket.UntilFull(), 5000*time.Hour), time.Hour)))
	end := rapid.SampledFrom(ends).Draw(h.t, "end")
	if end == 0 {
		return
	}
	d := time.Duration(end) - time.Duration(h.b.at)*time.Microsecond
	h.travel(whole(d) + time.Duration(rapid.IntRange(-1, 1).Draw(h.t, "beside"))*time.Microsecond)
}

func (h *history) fail()    { h.tell(true) }
func (h *history) succeed() { h.tell(false) }

// tell settles as one who asked before mostly does.
func (h *history) tell(failed bool) {
	r := budget.Result{Failed: failed, Generation: h.generation, Nonce: h.nonce, Dice: rapid.Float64Range(0, 1).Draw(h.t, "dice")}
	if h.record != nil && rapid.Bool().Draw(h.t, "current") {
		r.Generation, r.Nonce = h.record.Breaker.Generation, rapid.Uint64Range(1, 3).Draw(h.t, "nonce")
	}
	h.conclude(budget.Settling{Breaker: true, Rule: h.rule, Result: r})
}

func (h *history) pass() {
	d := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, time.Microsecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}),
		rapid.Map(rapid.Int64Range(0, 1000), func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }),
		rapid.Map(rapid.Int64Range(0, int64(time.Hour)), func(n int64) time.Duration { return time.Duration(n) }),
		rapid.Map(rapid.Int64Range(0, int64(5000*time.Hour)), func(n int64) time.Duration { return time.Duration(n) }),
		rapid.Map(rapid.Int64Range(0, int64(2*time.Hour)), func(n int64) time.Duration { return -time.Duration(n) }),
		rapid.Map(rapid.Int64Range(0, int64(500*time.Hour)), func(n int64) time.Duration { return -time.Duration(n) }),
	).Draw(h.t, "pass").Truncate(time.Microsecond)
	h.travel(d)
}

func (h *history) travel(d time.Duration) {
	if h.b.at+d.Microseconds() <= epoch/2 {
		return
	}
	h.b.pass(d)
	h.elapsed += max(d, 0)
}

func (h *history) withdraw() {
	granted := false
	r := h.on(func(r *budget.Record, _ bool) bool { granted = r.Withdraw(); return true })
	got, err := h.b.Store.Withdraw(h.t.Context(), h.account, h.b.next())
	h.answer("Withdraw", got, err, r, granted, budget.Permit{})
}

func (h *history) refund() {
	r := h.on(func(r *budget.Record, missing bool) bool { r.Refund(); return !missing })
	got, err := h.b.Store.Refund(h.t.Context(), h.account, h.b.next())
	h.answer("Refund", got, err, r, false, budget.Permit{})
}

func (h *history) configure() {
	c := budget.Change{}
	p := params().Draw(h.t, "change")
	if rapid.Bool().Draw(h.t, "capacity given") {
		c.Capacity = &p.Capacity
	}
	if rapid.Bool().Draw(h.t, "refill given") {
		c.Refill = &p.Refill
	}
	if rapid.Bool().Draw(h.t, "bonus given") {
		c.Bonus = &p.Bonus
	}
	account := h.account
	if h.record == nil {
		h.account.Params = c.Apply(h.account.Params)
	}
	r := h.on(func(r *budget.Record, missing bool) bool { return r.Configure(c) || missing })
	h.account = account
	got, err := h.b.Store.Configure(h.t.Context(), h.account, c)
	h.answer("Configure", got, err, r, false, budget.Permit{})
	now := r.Bucket.Params
	h.most = budget.Params{
		Capacity: max(h.most.Capacity, now.Capacity), Refill: max(h.most.Refill, now.Refill), Bonus: max(h.most.Bonus, now.Bonus),
	}
}

func (h *history) ask() {
	nonce := rapid.Uint64Range(1, 3).Draw(h.t, "nonce")
	var permit budget.Permit
	r := h.on(func(r *budget.Record, missing bool) bool {
		permit = r.Breaker.Ask(r.Clock.Boot, h.rule, nonce)
		return !missing && r.Breaker.State != budget.BreakerClosed
	})
	if permit.Granted {
		h.generation, h.nonce = permit.Generation, nonce
	}
	got, err := h.b.Store.Ask(h.t.Context(), h.account, h.rule, nonce)
	h.answer("Ask", got, err, r, permit.Granted, permit)
}

func (h *history) settle() {
	how := budget.Settling{
		Bonus: rapid.Bool().Draw(h.t, "bonus"), Breaker: rapid.Bool().Draw(h.t, "breaker"),
		Release: rapid.IntRange(0, 4).Draw(h.t, "release") == 0, Rule: h.rule,
	}
	how.Result = budget.Result{
		Failed: rapid.IntRange(0, 2).Draw(h.t, "failed") > 0, Nonce: rapid.Uint64Range(1, 3).Draw(h.t, "nonce"),
		Generation: h.generation, Dice: rapid.Float64Range(0, 1).Draw(h.t, "dice"),
	}
	if rapid.IntRange(0, 9).Draw(h.t, "stale") == 0 {
		how.Result.Generation++
	}
	h.conclude(how)
}

func (h *history) conclude(how budget.Settling) {
	r := h.on(func(r *budget.Record, missing bool) bool {
		if !worthWriting(r, !missing, how) {
			return false
		}
		settle(r, how)
		return true
	})
	got, err := h.b.Store.Settle(h.t.Context(), h.account, how, h.b.next())
	h.answer("Settle", got, err, r, false, budget.Permit{})
}

func (h *history) reset() {
	h.on(func(r *budget.Record, missing bool) bool { r.Refill(); return !missing })
	if err := h.b.Store.Reset(h.t.Context(), h.account); err != nil {
		h.t.Fatalf("Reset() = %v, want nil", err)
	}
	h.resets++
}

// answer compares what the store said.
func (h *history) answer(verb string, got budget.Answer, err error, r budget.Record, granted bool, permit budget.Permit) {
	want := budget.Answer{Granted: granted, Balance: r.Balance(), Permit: permit, Breaker: r.BreakerView()}
	for _, a := range []*budget.Answer{&got, &want} {
		a.Permit.Retry, a.Breaker.Retry = whole(a.Permit.Retry), whole(a.Breaker.Retry)
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		h.t.Fatalf("%s() = %v, (-want +got):\n%s", verb, err, diff)
	}
}

// compare compares what the store holds.
func (h *history) compare() {
	want := h.on(func(*budget.Record, bool) bool { return false })
	got, found, err := h.b.Store.Peek(h.t.Context(), h.account)
	for _, r := range []*budget.Record{&got, &want} {
		r.Clock = budget.Stamp{Boot: r.Clock.Boot}
		r.Breaker.Until = int64(whole(time.Duration(r.Breaker.Until)))
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil || found != (h.record != nil) {
		h.t.Fatalf("Peek() = found %v, %v, want found %v; (-want +got):\n%s", found, err, h.record != nil, diff)
	}
}

// bound is property 1 over the whole history. What Reset fills in is extra; time
// that was set back pays again after a reset of the clock, at most once.
func (h *history) bound() {
	if h.record == nil {
		return
	}
	c := h.record.Counters
	yielded := budget.Bucket{Params: budget.Params{Capacity: budget.MaxCapacity, Refill: h.most.Refill}}
	yielded.Credit(h.elapsed)
	most := budget.Micro(h.most.Capacity)*budget.Token*budget.Micro(1+h.resets) + yielded.Tokens + h.most.Bonus*budget.Micro(c.Deposits)
	if yielded.Full() {
		return
	}
	if net := budget.Micro(c.Granted)*budget.Token - budget.Micro(c.Refunded)*budget.Token; net > most {
		h.t.Fatalf("%s tokens were granted, want at most %s", net, most)
	}
}

// whole rounds up to a microsecond.
func whole(d time.Duration) time.Duration {
	if rest := d % time.Microsecond; rest > 0 {
		return d - rest + time.Microsecond
	}
	return d
}

// worthWriting is when a settling changes what anybody can tell.
func worthWriting(r *budget.Record, found bool, how budget.Settling) bool {
	k := &r.Breaker
	switch {
	case how.Bonus && found && !r.Bucket.Full():
		return true
	case !how.Breaker:
		return false
	case how.Release:
		return k.State == budget.BreakerHalfOpen && k.Holder == how.Result.Nonce
	}
	return how.Result.Failed || !k.Clean(r.Clock.Boot)
}

func settle(r *budget.Record, how budget.Settling) {
	if how.Bonus {
		r.Deposit()
	}
	switch {
	case how.Breaker && how.Release:
		r.Breaker.Release(how.Result.Nonce)
	case how.Breaker:
		r.Breaker.Record(r.Clock.Boot, how.Rule, how.Result)
	}
}

func params() *rapid.Generator[budget.Params] {
	return rapid.Custom(func(t *rapid.T) budget.Params {
		return budget.Params{
			Capacity: rapid.OneOf(
				rapid.SampledFrom([]int{0, 1, 2, 20, budget.MaxCapacity}), rapid.IntRange(0, 30), rapid.IntRange(0, budget.MaxCapacity),
			).Draw(t, "capacity"),
			Refill: budget.Rate(rapid.OneOf(
				rapid.SampledFrom([]int64{0, 1, 3600, 360_000_000, int64(budget.MaxRefill) - 1, int64(budget.MaxRefill)}),
				rapid.Int64Range(0, 10_000_000_000), rapid.Int64Range(0, int64(budget.MaxRefill)),
			).Draw(t, "refill")),
			Bonus: budget.Micro(rapid.OneOf(
				rapid.SampledFrom([]int64{0, 1, 100_000, int64(budget.MaxBonus)}), rapid.Int64Range(0, int64(budget.MaxBonus)),
			).Draw(t, "bonus")),
		}
	})
}

func rules() *rapid.Generator[budget.BreakerRule] {
	times := func(longest time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.Int64Range(0, longest.Microseconds()), func(n int64) time.Duration { return time.Duration(n) * time.Microsecond })
	}
	return rapid.Custom(func(t *rapid.T) budget.BreakerRule {
		return budget.BreakerRule{
			Threshold: rapid.IntRange(1, 6).Draw(t, "threshold"),
			Cooldown:  rapid.OneOf(times(time.Minute), times(10*time.Hour), times(math.MaxInt64)).Draw(t, "cooldown"),
			Lease:     rapid.OneOf(times(time.Minute), times(30*time.Hour)).Draw(t, "lease"),
		}
	})
}
