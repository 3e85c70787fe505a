package budget_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
)

// model is the same bucket in exact rational arithmetic, in tokens.
type model struct {
	p   budget.Params
	tok *big.Rat
}

var (
	one  = big.NewRat(1, 1)
	zero = new(big.Rat)
)

func tokensOf(m budget.Micro) *big.Rat { return big.NewRat(int64(m), int64(budget.Token)) }

// yield is what a rate brings in a time.
func yield(r budget.Rate, d time.Duration) *big.Rat {
	perHour := tokensOf(budget.Micro(r))
	return perHour.Mul(perHour, big.NewRat(int64(d), int64(time.Hour)))
}

func newModel(p budget.Params) *model {
	return &model{p: p, tok: big.NewRat(int64(p.Capacity), 1)}
}

func (m *model) add(amount *big.Rat) {
	m.tok.Add(m.tok, amount)
	if full := big.NewRat(int64(m.p.Capacity), 1); m.tok.Cmp(full) > 0 {
		m.tok = full
	}
}

func (m *model) credit(d time.Duration) { m.add(yield(m.p.Refill, d)) }

func (m *model) withdraw() bool {
	if m.tok.Cmp(one) < 0 {
		return false
	}
	m.tok.Sub(m.tok, one)
	return true
}

func (m *model) configure(p budget.Params) {
	m.p = p
	m.add(zero)
}

// content is what the bucket holds, fraction included.
func content(b budget.Bucket) *big.Rat {
	fraction := big.NewRat(b.Fraction, int64(time.Hour))
	return fraction.Mul(fraction, big.NewRat(1, int64(budget.Token))).Add(fraction, tokensOf(b.Tokens))
}

// Properties 2, 3, 4, 6, 8, 9 and 10, over the whole range of parameters: after
// any history the bucket holds exactly what rational arithmetic says, within
// its range.
func TestBucketIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := params().Draw(t, "params")
		b, m := budget.NewBucket(p), newModel(p)
		b.Tokens = budget.Micro(rapid.Int64Range(0, int64(b.Tokens)).Draw(t, "tokens"))
		m.tok = tokensOf(b.Tokens)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				d := spans().Draw(t, "elapsed")
				b.Credit(d)
				m.credit(d)
			case 1:
				before := b
				got, want := b.Withdraw(), m.withdraw()
				if got != want {
					t.Fatalf("Withdraw() of %+v = %v, want %v", before, got, want)
				}
				if !got && b != before {
					t.Fatalf("refused Withdraw() left %+v, want %+v", b, before)
				}
			case 2:
				b.Deposit()
				m.add(tokensOf(p.Bonus))
			case 3:
				b.Refund()
				m.add(one)
			case 4:
				p = params().Draw(t, "new params")
				before := b.Tokens
				b.Configure(p)
				m.configure(p)
				if b.Tokens > before {
					t.Fatalf("Configure(%+v) raised the balance from %s to %s", p, before, b.Tokens)
				}
			}
			if got := content(b); got.Cmp(m.tok) != 0 {
				t.Fatalf("bucket %+v holds %s, want %s", b, got.RatString(), m.tok.RatString())
			}
			if b.Tokens < 0 || b.Tokens > budget.Micro(p.Capacity)*budget.Token {
				t.Fatalf("balance %s is outside 0..%d", b.Tokens, p.Capacity)
			}
			if r := (budget.Record{Bucket: b}); r.Validate() != nil {
				t.Fatalf("Validate(%+v) = %v, want nil", r, r.Validate())
			}
		}
	})
}

// Property 3: any split of a time credits what the whole credits.
func TestCreditIsPathIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := budget.Params{Capacity: budget.MaxCapacity, Refill: rates().Draw(t, "refill")}
		split, whole := budget.Bucket{Params: p}, budget.Bucket{Params: p}
		total := time.Duration(0)
		for range rapid.IntRange(1, 50).Draw(t, "parts") {
			d := time.Duration(rapid.Int64Range(0, 5000).Draw(t, "part"))
			split.Credit(d)
			total += d
		}
		whole.Credit(total)
		if split != whole {
			t.Fatalf("split credit of %v = %+v, want %+v", total, split, whole)
		}
	})
}

// Property 4: a bucket that is looked at every few milliseconds for an hour gets
// what one gets that is looked at once. (Dropping remainders, 0.1/s polled every
// 9 ms yields nothing.)
func TestPollingDoesNotStarve(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 9 * time.Millisecond, 19 * time.Millisecond, 7 * time.Second} {
		p := budget.Params{Capacity: budget.MaxCapacity, Refill: 360_000_001}
		polled, once := budget.Bucket{Params: p}, budget.Bucket{Params: p}
		for at := time.Duration(0); at < time.Hour; at += every {
			polled.Credit(min(every, time.Hour-at))
		}
		once.Credit(time.Hour)
		if polled != once {
			t.Errorf("an hour polled every %v = %+v, want %+v", every, polled, once)
		}
		if once.Tokens != 360_000_001 {
			t.Errorf("an hour at %s = %s tokens, want 360.000001", p.Refill, once.Tokens)
		}
	}
}

// Property 5: ten tenths are one.
func TestTenBonusesBuyOneRetry(t *testing.T) {
	for deposits, want := range map[int]int{9: 0, 10: 1, 19: 1, 20: 2} {
		b := budget.Bucket{Params: budget.Params{Capacity: 20, Bonus: budget.Token / 10}}
		for range deposits {
			b.Deposit()
		}
		got := 0
		for b.Withdraw() {
			got++
		}
		if got != want {
			t.Errorf("%d deposits of 0.1 buy %d retries, want %d", deposits, got, want)
		}
	}
}

// Property 6: refusals cost nothing, however many there are.
func TestRefusalsAreFree(t *testing.T) {
	b := budget.Bucket{Params: budget.Params{Capacity: 5, Refill: 360_000_000}}
	for range 1000 {
		if b.Withdraw() {
			t.Fatal("Withdraw() from an empty bucket = true, want false")
		}
	}
	b.Credit(b.Next())
	if got := []bool{b.Withdraw(), b.Withdraw()}; !got[0] || got[1] {
		t.Errorf("after Next() two Withdraw() = %v, want [true false]", got)
	}
}

// Property 7: a full bucket takes no bonus.
func TestDepositAtFull(t *testing.T) {
	b := budget.NewBucket(budget.Defaults())
	before := b
	if got := b.Deposit(); got != 0 || b != before {
		t.Errorf("Deposit() at full = %s and %+v, want 0 and %+v", got, b, before)
	}
}

// Next and UntilFull are the very nanosecond: one less and the goal is missed.
func TestNextIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := params().Draw(t, "params")
		b := budget.Bucket{Params: p}
		b.Credit(spans().Draw(t, "elapsed"))
		for b.Withdraw() && b.Tokens < 100*budget.Token {
		}
		checkWait(t, b, b.Next(), func(b budget.Bucket) bool { return b.Tokens >= budget.Token })
		if full := b.UntilFull(); full != math.MaxInt64 {
			checkWait(t, b, full, func(b budget.Bucket) bool { return b.Full() })
		}
	})
}

func checkWait(t *rapid.T, b budget.Bucket, wait time.Duration, reached func(budget.Bucket) bool) {
	t.Helper()
	if wait < 0 {
		if b.Params.Capacity > 0 && b.Params.Refill > 0 {
			t.Fatalf("wait of %+v = %v, want an end", b, wait)
		}
		b.Credit(math.MaxInt64)
		if reached(b) {
			t.Fatalf("wait of %+v = never, but it came", b)
		}
		return
	}
	early, late := b, b
	early.Credit(wait - 1)
	late.Credit(wait)
	if !reached(late) || wait > 0 && reached(early) {
		t.Fatalf("wait of %+v = %v, but one less reaches %v and all of it %v", b, wait, reached(early), reached(late))
	}
}

// Property 1: the bound, with no tolerance, over every window of every history.
func TestBoundHoldsInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.step(t)
		}
		h.checkWindows(t)
	})
}

// history is what happened to one record, seen from outside.
type history struct {
	r      budget.Record
	now    budget.Stamp
	unpaid int // grants that can still be refunded
	events []event
	most   budget.Params // each parameter's greatest value so far
}

type event struct {
	at             time.Duration
	granted, bonus int
}

func newHistory(t *rapid.T) *history {
	p := params().Draw(t, "params")
	now := budget.Stamp{Domain: 7, Boot: 1, Wall: 1}
	return &history{r: budget.NewRecord(p, now), now: now, most: p}
}

func (h *history) step(t *rapid.T) {
	e := event{}
	if rapid.Bool().Draw(t, "time passes") {
		d := rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "elapsed")
		h.now.Boot += d
		h.now.Wall += d
	}
	h.r.Advance(h.now)
	switch rapid.SampledFrom([]string{"withdraw", "withdraw", "withdraw", "deposit", "refund", "configure"}).Draw(t, "op") {
	case "withdraw":
		if h.r.Withdraw() {
			e.granted, h.unpaid = 1, h.unpaid+1
		}
	case "deposit":
		h.r.Deposit()
		e.bonus = 1
	case "refund":
		if h.unpaid > 0 {
			h.r.Refund()
			e.granted, h.unpaid = -1, h.unpaid-1
		}
	case "configure":
		p := params().Draw(t, "new params")
		h.r.Configure(budget.Change{Capacity: &p.Capacity, Refill: &p.Refill, Bonus: &p.Bonus})
		h.most.Capacity = max(h.most.Capacity, p.Capacity)
		h.most.Refill = max(h.most.Refill, p.Refill)
		h.most.Bonus = max(h.most.Bonus, p.Bonus)
	}
	e.at = time.Duration(h.now.Boot)
	h.events = append(h.events, e)
}

func (h *history) checkWindows(t *rapid.T) {
	for i := range h.events {
		granted, bonuses := 0, 0
		for j := i; j < len(h.events); j++ {
			granted += h.events[j].granted
			bonuses += h.events[j].bonus
			bound := big.NewRat(int64(h.most.Capacity), 1)
			bound.Add(bound, yield(h.most.Refill, h.events[j].at-h.events[i].at))
			share := tokensOf(h.most.Bonus)
			bound.Add(bound, share.Mul(share, big.NewRat(int64(bonuses), 1)))
			if big.NewRat(int64(granted), 1).Cmp(bound) > 0 {
				t.Fatalf("events %d..%d grant %d, want at most %s", i, j, granted, bound.FloatString(6))
			}
		}
	}
}

// The zero value is a bucket that pays for nothing and does not panic.
func TestZeroBucket(t *testing.T) {
	var b budget.Bucket
	b.Credit(time.Hour)
	b.Deposit()
	b.Refund()
	if b.Withdraw() || b.Next() >= 0 || b.UntilFull() != 0 {
		t.Errorf("zero bucket pays or fills: %+v, next %v, full %v", b, b.Next(), b.UntilFull())
	}
}
