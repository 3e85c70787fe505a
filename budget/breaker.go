package budget

import "time"

// The breaker obeys these rules:
//
//   - It counts how invocations ended, not attempts, and looks at the last ten
//     of them, not at a span of time: callers that come once a minute would
//     never fill a span.
//   - Closed: it opens after Threshold failures in a row, however far apart, or
//     when at least half of the last ten outcomes younger than ten minutes are
//     failures and at least Threshold outcomes are that young. Only a failure
//     opens it.
//   - Open: nothing runs for the cooldown, spread by a fifth either way.
//   - Half-open: one caller holds a lease to probe. The lease expires, so a
//     caller that was killed blocks nobody for good. Its success closes the
//     breaker and forgets the past; its failure opens it for twice as long, up
//     to five minutes; giving the lease back leaves it half-open.
//   - Each change of state starts a generation. A result that was begun in an
//     earlier generation changes nothing.
//
// Times are boot times of the record's clock; the caller brings the dice.

// BreakerWindow is how many outcomes a breaker remembers.
const BreakerWindow = 10

// The limits of the breaker.
const (
	breakerAge     = 10 * time.Minute
	breakerLongest = 5 * time.Minute
	breakerSpread  = 0.2
	longestLease   = 24 * time.Hour
	longestRest    = 365 * 24 * time.Hour // whatever cooldown is asked for
	// breakerFresh is how old the oldest of ten successes may be for one more to
	// be left out; it bounds by how much a success may seem older than it is.
	breakerFresh = time.Minute
)

// DefaultThreshold and DefaultCooldown are what a breaker uses unless told
// otherwise; DefaultLease is a probe's time when attempts have no limit.
const (
	DefaultThreshold = 5
	DefaultCooldown  = 30 * time.Second
	DefaultLease     = 60 * time.Second
)

// BreakerRule is what an invocation asks of a breaker.
type BreakerRule struct {
	Threshold int           // failures in a row, and the least outcomes for a ratio; at least 1
	Cooldown  time.Duration // how long it opens the first time, at most a year
	Lease     time.Duration // how long a probe may take, at most a day: attempt timeout + 5 s, or DefaultLease
}

// BreakerState is where a breaker stands.
type BreakerState uint8

// The states of a breaker.
const (
	BreakerClosed BreakerState = iota
	BreakerIsOpen
	BreakerHalfOpen
)

// String returns "closed", "open" or "half_open".
func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerIsOpen:
		return "open"
	case BreakerHalfOpen:
		return "half_open"
	}
	return "unknown"
}

// Breaker is the memory of a breaker. The zero value is closed and clean.
type Breaker struct {
	State      BreakerState
	Generation uint64
	Failures   int           // failures in a row
	OpenFor    time.Duration // the last cooldown, before the dice
	Until      int64         // open: when probes may begin
	Holder     uint64        // half-open: who holds the lease, 0 nobody
	LeaseEnd   int64         // half-open: when the lease expires
	Recent     []Past        // at most the last ten, oldest first
}

// Past is how an invocation ended, and when.
type Past struct {
	Failed bool
	At     int64
}

// Permit answers whether a caller may run.
type Permit struct {
	Granted    bool
	Generation uint64        // hand it back with the result
	Leased     bool          // the caller holds the lease now and did not before
	Retry      time.Duration // refused: when asking again makes sense
}

// Ask decides whether the caller who goes by nonce may run now. It takes the
// lease when the breaker is ready for a probe, and renews the caller's own.
func (b *Breaker) Ask(now int64, rule BreakerRule, nonce uint64) Permit {
	b.unstick(now, rule)
	switch b.State {
	case BreakerClosed:
		return Permit{Granted: true, Generation: b.Generation}
	case BreakerIsOpen:
		if now < b.Until {
			return Permit{Retry: time.Duration(b.Until - now)}
		}
	case BreakerHalfOpen:
		mine := b.Holder == nonce
		if b.Holder != 0 && !mine && now < b.LeaseEnd {
			return Permit{Retry: time.Duration(b.LeaseEnd - now)}
		}
		if mine {
			b.LeaseEnd = now + rule.lease()
			return Permit{Granted: true, Generation: b.Generation}
		}
	}
	b.State = BreakerHalfOpen
	b.Generation++
	b.Holder, b.LeaseEnd = nonce, now+rule.lease()
	return Permit{Granted: true, Generation: b.Generation, Leased: true}
}

// Release gives the lease back if nonce holds it: the probe never ran or says
// nothing about the target.
func (b *Breaker) Release(nonce uint64) {
	if b.State == BreakerHalfOpen && b.Holder == nonce {
		b.Holder, b.LeaseEnd = 0, 0
	}
}

// Result is how an invocation ended, for a breaker.
type Result struct {
	Failed     bool
	Generation uint64  // as the Permit said
	Nonce      uint64  // as in Ask
	Dice       float64 // 0 <= dice < 1, spreads the cooldown
}

// Record counts a result. It reports whether the result was of the current
// generation; one that was not changes nothing.
func (b *Breaker) Record(now int64, rule BreakerRule, r Result) bool {
	if r.Generation != b.Generation {
		return false
	}
	switch b.State {
	case BreakerIsOpen:
		return false
	case BreakerHalfOpen:
		if b.Holder != r.Nonce {
			return false
		}
		if !r.Failed {
			*b = Breaker{Generation: b.Generation + 1}
			return true
		}
		b.Failures++
		b.remember(now, true)
		b.open(now, min(2*b.OpenFor, max(breakerLongest, rule.Cooldown)), r.Dice)
	case BreakerClosed:
		b.remember(now, r.Failed)
		if !r.Failed {
			b.Failures = 0
			return true
		}
		b.Failures++
		if b.tripped(now, rule) {
			b.open(now, rule.Cooldown, r.Dice)
		}
	}
	return true
}

// Clean reports whether one more success would teach the breaker nothing: it is
// closed, and its last ten outcomes are successes of the last minute.
func (b *Breaker) Clean(now int64) bool {
	if b.State != BreakerClosed || b.Failures > 0 || len(b.Recent) < BreakerWindow {
		return false
	}
	for _, past := range b.Recent {
		if past.Failed || now-past.At > int64(breakerFresh) {
			return false
		}
	}
	return true
}

// Wait returns how long callers will still be refused, 0 if they are not.
func (b *Breaker) Wait(now int64) time.Duration {
	switch {
	case b.State == BreakerIsOpen && now < b.Until:
		return time.Duration(b.Until - now)
	case b.State == BreakerHalfOpen && b.Holder != 0 && now < b.LeaseEnd:
		return time.Duration(b.LeaseEnd - now)
	}
	return 0
}

// Reset closes the breaker and forgets the past. Runs under way count no more.
func (b *Breaker) Reset() { *b = Breaker{Generation: b.Generation + 1} }

// shift moves every time after the record's clock was changed.
func (b *Breaker) shift(by int64) {
	b.Until += by
	b.LeaseEnd += by
	for i := range b.Recent {
		b.Recent[i].At += by
	}
}

func (b *Breaker) open(now int64, cooldown time.Duration, dice float64) {
	cooldown = min(cooldown, longestRest)
	spread := 1 - breakerSpread + 2*breakerSpread*dice
	b.State, b.Holder, b.LeaseEnd = BreakerIsOpen, 0, 0
	b.Generation++
	b.OpenFor = cooldown
	b.Until = now + int64(float64(cooldown)*spread)
}

func (b *Breaker) remember(now int64, failed bool) {
	if len(b.Recent) >= BreakerWindow {
		b.Recent = append(b.Recent[:0], b.Recent[len(b.Recent)-BreakerWindow+1:]...)
	}
	b.Recent = append(b.Recent, Past{Failed: failed, At: now})
}

func (b *Breaker) tripped(now int64, rule BreakerRule) bool {
	if b.Failures >= rule.Threshold {
		return true
	}
	young, failed := 0, 0
	for _, past := range b.Recent {
		if now-past.At >= int64(breakerAge) {
			continue
		}
		young++
		if past.Failed {
			failed++
		}
	}
	return young >= rule.Threshold && 2*failed >= young
}

// unstick bounds times that no rule can have produced, so that a damaged record
// never keeps a breaker shut for good.
func (b *Breaker) unstick(now int64, rule BreakerRule) {
	longest := int64(float64(min(max(b.OpenFor, rule.Cooldown, breakerLongest), longestRest)) * (1 + breakerSpread))
	if b.State == BreakerIsOpen && b.Until-now > longest {
		b.Until = now + longest
	}
	if b.State == BreakerHalfOpen && b.LeaseEnd-now > int64(longestLease) {
		b.LeaseEnd = now
	}
}

func (r BreakerRule) lease() int64 { return int64(min(r.Lease, longestLease)) }
