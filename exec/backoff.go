package exec

// The rules of this file:
//
//   - the computed delay after failure n is min(max, delay*multiplier^(n-1)):
//     capped before jitter, never overflowing, never negative;
//   - jitter none is that delay, full draws from [0,d), equal from [d/2,d);
//   - decorrelated draws from [delay, min(max, 3*previous)): the cap bounds the
//     range and not the draw, so that delays do not pile up at the cap (the
//     clamp of the original leaves 41 % of them there);
//   - a wait that the failing side stated, or that its rule knows, is never
//     undercut: one larger than d is waited in full plus jitter from [0,d).

import (
	"math"
	"time"
)

// Jitter is how a delay is spread.
type Jitter string

// The jitters.
const (
	JitterNone         Jitter = "none"
	JitterFull         Jitter = "full"
	JitterEqual        Jitter = "equal"
	JitterDecorrelated Jitter = "decorrelated"
)

// Backoff says how long to wait between attempts. The zero value never waits.
type Backoff struct {
	Delay      time.Duration // after the first failure
	Max        time.Duration // no computed delay is longer
	Multiplier float64       // at least 1
	Jitter     Jitter
}

// Computed returns the delay after failure n (1 for the first) before jitter.
func (b Backoff) Computed(n int) time.Duration {
	if b.Delay <= 0 {
		return 0 // and not 0 * +Inf
	}
	d := float64(b.Delay) * math.Pow(b.Multiplier, float64(max(n, 1)-1))
	// Compared as floats: a product beyond int64 must not wrap to a negative delay.
	if d >= float64(b.Max) {
		return b.Max
	}
	return time.Duration(d)
}

// Wait returns how long to wait after failure n. u is the caller's die in
// [0,1); previous is the wait before this one, 0 for none; stated is the least
// wait that the failure asks for, 0 for none.
func (b Backoff) Wait(n int, u float64, previous, stated time.Duration) time.Duration {
	d := b.Computed(n)
	if stated > d {
		if b.Jitter == JitterNone {
			return stated
		}
		return add(stated, scale(d, u))
	}
	return max(b.jittered(d, u, previous), stated)
}

func (b Backoff) jittered(d time.Duration, u float64, previous time.Duration) time.Duration {
	switch b.Jitter {
	case JitterFull:
		return scale(d, u)
	case JitterEqual:
		return d/2 + scale(d-d/2, u)
	case JitterDecorrelated:
		low := min(b.Delay, b.Max)
		if previous < low {
			previous = low
		}
		high := b.Max
		if previous < b.Max/3 {
			high = 3 * previous
		}
		return low + scale(high-low, u)
	case JitterNone:
		return d
	default:
		return d
	}
}

// scale stays within d also where a float64 no longer holds every nanosecond.
func scale(d time.Duration, u float64) time.Duration {
	return min(d, time.Duration(float64(d)*u))
}

// add saturates: a wait of centuries must not become a negative one.
func add(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
