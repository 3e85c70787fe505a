package budget

import "time"

// Time obeys these rules:
//
//   - Within one domain (one boot of one machine, one time namespace) only the
//     boot clock counts. It runs through suspend and nobody can set it, so a
//     wall clock that is set forwards or back mints and blocks nothing.
//   - Across domains the wall clock counts, and it never counts backwards.
//   - A stored time never moves back, or the same interval would pay twice. The
//     exception is a time so far ahead that waiting for it would stop the
//     refill for good: it is reset, and the reset itself credits nothing.
//   - A record without a time was never refilled, which is not the same as not
//     refilled since 1970.

// Stamp is a point in time on two clocks.
type Stamp struct {
	Domain uint64 // where Boot has a meaning
	Boot   int64  // nanoseconds since the domain began
	Wall   int64  // nanoseconds since 1970
}

// aheadSlack is how far a stored time may lie ahead before it counts as wrong.
const aheadSlack = time.Hour

// passage is what lies between two stamps.
type passage struct {
	Elapsed time.Duration // never negative
	Shift   int64         // what other boot times of the record move by
	Odd     bool          // a stored time was impossible and has been reset
}

// advance moves s to now. slack is how far ahead of now a time may lie and
// still be waited for.
func (s *Stamp) advance(now Stamp, slack time.Duration) passage {
	slack = max(slack, aheadSlack)
	if s.Domain == now.Domain && s.Boot > 0 {
		return s.advanceBoot(now, slack)
	}
	p := passage{}
	switch {
	case s.Boot <= 0 || s.Wall <= 0:
		p.Odd = *s != Stamp{}
		s.Wall = now.Wall
	case s.Wall-now.Wall > int64(slack):
		p.Odd = true
		s.Wall = now.Wall
	case now.Wall > s.Wall:
		p.Elapsed = time.Duration(now.Wall - s.Wall)
		s.Wall = now.Wall
	}
	p.Shift = now.Boot - s.Boot - int64(p.Elapsed)
	s.Domain, s.Boot = now.Domain, now.Boot
	return p
}

func (s *Stamp) advanceBoot(now Stamp, slack time.Duration) passage {
	s.Wall = max(s.Wall, now.Wall)
	if now.Boot >= s.Boot {
		elapsed := now.Boot - s.Boot
		s.Boot = now.Boot
		return passage{Elapsed: time.Duration(elapsed)}
	}
	if s.Boot-now.Boot <= int64(slack) {
		return passage{}
	}
	shift := now.Boot - s.Boot
	s.Boot = now.Boot
	return passage{Shift: shift, Odd: true}
}
