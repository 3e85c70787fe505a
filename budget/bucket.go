package budget

import (
	"math"
	"math/bits"
	"time"
)

// The bucket obeys these rules:
//
//   - 0 <= tokens <= capacity, always. A refusal takes nothing.
//   - Integers only. What a refill leaves over of a micro-token is kept as a
//     fraction, so a bucket that is looked at every nanosecond holds exactly
//     what one looked at once a day holds.
//   - A full bucket keeps no fraction.
//   - New parameters never add tokens.

// fractionUnit is how many parts a micro-token has: one part is what a rate of
// one micro-token an hour yields in a nanosecond.
const fractionUnit = int64(time.Hour)

// Bucket is a token bucket. The zero value has capacity 0 and pays for nothing.
type Bucket struct {
	Params   Params
	Tokens   Micro // the balance
	Fraction int64 // what refills left over, in 1/3.6e12 of a micro-token
}

// NewBucket returns a full bucket.
func NewBucket(p Params) Bucket {
	return Bucket{Params: p, Tokens: capacity(p)}
}

// Credit adds what the rate yields in the elapsed time and returns how many
// micro-tokens the balance grew. A negative time counts as none.
func (b *Bucket) Credit(elapsed time.Duration) Micro {
	if elapsed <= 0 || b.Params.Refill <= 0 || b.Full() {
		return 0
	}
	hi, lo := bits.Mul64(uint64(elapsed), uint64(b.Params.Refill))
	lo, carry := bits.Add64(lo, uint64(b.Fraction), 0)
	// MaxRefill is one micro-token a nanosecond, so the quotient fits.
	whole, part := bits.Div64(hi+carry, lo, uint64(fractionUnit))
	missing := capacity(b.Params) - b.Tokens
	if whole >= uint64(missing) {
		b.Tokens, b.Fraction = b.Tokens+missing, 0
		return missing
	}
	b.Tokens, b.Fraction = b.Tokens+Micro(whole), int64(part)
	return Micro(whole)
}

// Withdraw takes one token if there is one.
func (b *Bucket) Withdraw() bool {
	if b.Tokens < Token {
		return false
	}
	b.Tokens -= Token
	return true
}

// Deposit adds the bonus of one success and returns what fitted in.
func (b *Bucket) Deposit() Micro { return b.add(b.Params.Bonus) }

// Refund puts one token back and returns what fitted in. The caller sees to it
// that a withdrawal is refunded at most once.
func (b *Bucket) Refund() Micro { return b.add(Token) }

// Configure puts new parameters into force. The time until now must have been
// credited before, at the old rate.
func (b *Bucket) Configure(p Params) {
	b.Params = p
	b.add(0)
}

// Full reports whether nothing more fits in.
func (b *Bucket) Full() bool { return b.Tokens >= capacity(b.Params) }

// Next returns the time until a whole token is there: 0 when one is, negative
// when refill alone never brings one.
func (b *Bucket) Next() time.Duration {
	switch {
	case b.Tokens >= Token:
		return 0
	case b.Params.Capacity < 1 || b.Params.Refill <= 0:
		return -1
	}
	return b.until(Token)
}

// UntilFull returns the time that refill alone needs to fill the bucket, the
// longest duration there is if it never does.
func (b *Bucket) UntilFull() time.Duration {
	switch {
	case b.Full():
		return 0
	case b.Params.Refill <= 0:
		return math.MaxInt64
	}
	return b.until(capacity(b.Params))
}

// until rounds up: when it is over, the goal is reached.
func (b *Bucket) until(goal Micro) time.Duration {
	hi, lo := bits.Mul64(uint64(goal-b.Tokens), uint64(fractionUnit))
	lo, borrow := bits.Sub64(lo, uint64(b.Fraction), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(b.Params.Refill)-1, 0)
	hi += carry
	if hi >= uint64(b.Params.Refill) {
		return math.MaxInt64
	}
	wait, _ := bits.Div64(hi, lo, uint64(b.Params.Refill))
	return time.Duration(min(wait, math.MaxInt64))
}

// add keeps the balance within the capacity.
func (b *Bucket) add(amount Micro) Micro {
	before := b.Tokens
	b.Tokens = min(b.Tokens+amount, capacity(b.Params))
	if b.Full() {
		b.Fraction = 0
	}
	return b.Tokens - before
}

func capacity(p Params) Micro { return Micro(p.Capacity) * Token }
