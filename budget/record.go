package budget

import (
	"errors"
	"time"
)

// Counters count what happened to a record since it was made.
type Counters struct {
	Granted, Denied, Refunded uint64
	Deposits                  uint64 // successes that brought a bonus
	Resets                    uint64 // times the record was damaged and restarted at 0 tokens
	Anomalies                 uint64 // impossible times that were reset
}

// Record is what a store keeps of one budget. Its methods are the decisions;
// the store brings the time and sees to it that they happen one after another.
type Record struct {
	Clock    Stamp // up to which the refill is credited
	Bucket   Bucket
	Breaker  Breaker
	Counters Counters
}

// NewRecord returns a full bucket with a clean breaker.
func NewRecord(p Params, now Stamp) Record {
	return Record{Clock: now, Bucket: NewBucket(p)}
}

// EmptyRecord returns what takes the place of a damaged record: no tokens, so
// that damage never pays for a retry.
func EmptyRecord(p Params, now Stamp) Record {
	return Record{Clock: now, Bucket: Bucket{Params: p}, Counters: Counters{Resets: 1}}
}

// Advance credits the time until now. Every other method but Answer assumes that
// it was called first.
func (r *Record) Advance(now Stamp) {
	p := r.Clock.advance(now, r.Bucket.UntilFull())
	r.Bucket.Credit(p.Elapsed)
	if p.Shift != 0 {
		r.Breaker.shift(p.Shift)
	}
	if p.Odd {
		r.Counters.Anomalies++
	}
}

// Withdraw takes one token if there is one, and counts either way.
func (r *Record) Withdraw() bool {
	if r.Bucket.Withdraw() {
		r.Counters.Granted++
		return true
	}
	r.Counters.Denied++
	return false
}

// Refund puts a withdrawn token back.
func (r *Record) Refund() {
	r.Bucket.Refund()
	r.Counters.Refunded++
}

// Deposit adds the bonus of a successful invocation.
func (r *Record) Deposit() {
	r.Bucket.Deposit()
	r.Counters.Deposits++
}

// Configure puts the given parameters into force and reports whether they
// differed.
func (r *Record) Configure(c Change) bool {
	p := c.Apply(r.Bucket.Params)
	if p == r.Bucket.Params {
		return false
	}
	r.Bucket.Configure(p)
	return true
}

// Refill fills the bucket and closes the breaker; parameters and counters stay.
func (r *Record) Refill() {
	r.Bucket = NewBucket(r.Bucket.Params)
	r.Breaker.Reset()
}

// Balance returns the record's account.
func (r *Record) Balance() Balance {
	return Balance{Params: r.Bucket.Params, Tokens: r.Bucket.Tokens, Next: r.Bucket.Next()}
}

// BreakerView returns the breaker as people see it.
func (r *Record) BreakerView() BreakerView {
	b := &r.Breaker
	return BreakerView{State: b.State, Failures: b.Failures, Generation: b.Generation, Retry: b.Wait(r.Clock.Boot)}
}

// Balance is what an account holds.
type Balance struct {
	Params Params
	Tokens Micro
	Next   time.Duration // until the next whole token; 0 when one is there, negative when none ever comes
}

// BreakerView is where a breaker stands.
type BreakerView struct {
	State      BreakerState
	Failures   int // in a row
	Generation uint64
	Retry      time.Duration // how long callers will still be refused
}

// Validate reports a record that no sequence of decisions can have produced.
func (r *Record) Validate() error {
	b, k := &r.Bucket, &r.Breaker
	if err := b.Params.Validate(); err != nil {
		return err
	}
	switch {
	case b.Tokens < 0 || b.Tokens > capacity(b.Params):
		return errors.New("tokens are out of range")
	case b.Fraction < 0 || b.Fraction >= fractionUnit:
		return errors.New("fraction is out of range")
	case k.State > BreakerHalfOpen || k.Failures < 0 || k.OpenFor < 0 || k.OpenFor > longestRest || len(k.Recent) > BreakerWindow:
		return errors.New("breaker is out of range")
	}
	return nil
}
