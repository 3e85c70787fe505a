package cmd

// What a policy comes to before anything has run. The rules of this file:
//
//   - it is pure: no clock, no store; it brings no dice but the ends and the
//     middle of the jitter;
//   - waits, decisions and budgets are asked of the code that a run asks;
//   - it looks ahead a bounded number of attempts and says so when that is not
//     enough;
//   - what is too long to hold saturates.

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// foreseen is how many attempts a forecast looks ahead.
const foreseen = 1 << 20

// wait is one wait of a plan: as computed, and the least, the middle and the
// most that jitter makes of it.
type wait struct{ computed, least, middle, most time.Duration }

func (w wait) plus(other wait, n int) wait {
	return wait{
		plus(w.computed, times(other.computed, n)), plus(w.least, times(other.least, n)),
		plus(w.middle, times(other.middle, n)), plus(w.most, times(other.most, n)),
	}
}

// waiting yields one wait after the other.
type waiting struct {
	backoff exec.Backoff
	n       int
	last    wait
	steady  bool // all further waits are like the last one
}

func (w *waiting) next() wait {
	if w.steady {
		return w.last
	}
	w.n++
	b, before := w.backoff, w.last
	w.last = wait{
		computed: b.Computed(w.n),
		least:    b.Wait(w.n, 0, before.least, 0),
		middle:   b.Wait(w.n, 0.5, before.middle, 0),
		most:     b.Wait(w.n, 1, before.most, 0),
	}
	grown := w.last.computed == b.Max || b.Multiplier == 1 || b.Delay <= 0
	w.steady = grown && w.n > 1 && w.last == before // also where jitter looks at the wait before
	return w.last
}

// firstWaits returns at most limit waits of a run with so many retries.
func firstWaits(b exec.Backoff, retries, limit int) []wait {
	w := waiting{backoff: b}
	all := make([]wait, min(retries, limit))
	for i := range all {
		all[i] = w.next()
	}
	return all
}

// allWaits is what all waits of a run come to.
func allWaits(b exec.Backoff, retries int) wait {
	w := waiting{backoff: b}
	var sum wait
	for i := range min(retries, foreseen) {
		sum = sum.plus(w.next(), 1)
		if w.steady {
			return sum.plus(w.last, retries-i-1)
		}
	}
	return sum.plus(wait{b.Max, w.last.least, b.Max, b.Max}, max(0, retries-foreseen))
}

func plus(a, b time.Duration) time.Duration { return min(longest, min(a, longest)+min(b, longest)) }

func times(d time.Duration, n int) time.Duration {
	if d > 0 && n > int(longest/d) {
		return longest
	}
	return d * time.Duration(n)
}

// unbounded stands for a time without limit.
const unbounded = exec.NoCeiling

// worstCase is how long a run may take at most: every attempt uses its limit
// and has to be killed, every wait is its longest, plus stated for each. left
// is what the ceilings allow, exec.NoCeiling for none. Hooks are not counted.
func worstCase(p exec.Policy, left, stated time.Duration) time.Duration {
	attempts := p.MaxAttempts
	if p.Correct {
		attempts += p.MaxCorrections
	}
	total := unbounded
	if p.Timeout > 0 {
		total = plus(times(plus(p.Timeout, p.KillAfter), attempts), allWaits(p.Backoff, p.MaxAttempts-1).most)
		total = plus(total, times(stated, p.MaxAttempts-1))
	}
	if left != exec.NoCeiling {
		total = min(total, plus(max(0, left), p.KillAfter))
	}
	return total
}

// payer is a budget in a forecast.
type payer struct {
	label  string
	record budget.Record
	policy string // not empty: its store fails, and this is what acts
}

// ended is where a run ends when every attempt fails at once in the same
// transient way and nobody else pays from its budgets.
type ended struct {
	exec.Decision
	attempts int
	refused  string        // the budget that refused
	elapsed  time.Duration // with waits in the middle of their jitter
	beyond   bool          // it was still going on where the forecast stops
}

// ceilings is the time left, exec.NoCeiling for none.
type ceilings struct{ elapsed, deadline time.Duration }

func (c ceilings) least() time.Duration { return min(c.elapsed, c.deadline) }

func (c ceilings) after(d time.Duration) ceilings {
	return ceilings{left(c.elapsed, d), left(c.deadline, d)}
}

func left(ceiling, passed time.Duration) time.Duration {
	if ceiling == exec.NoCeiling {
		return ceiling
	}
	return ceiling - passed
}

// foresee runs the decision table. It changes the payers' records.
func foresee(p exec.Policy, at ceilings, payers []payer) ended {
	w := waiting{backoff: p.Backoff}
	var elapsed time.Duration
	first := 1
	if len(payers) == 0 && at.least() == exec.NoCeiling && p.MaxAttempts > foreseen {
		first = p.MaxAttempts // nothing else ends it
	}
	for n := first; n < first+foreseen; n++ {
		now := at.after(elapsed)
		s := exec.Snapshot{
			Point: exec.AfterAttempt, Attempts: n, Code: 1,
			Verdict:     exec.Verdict{Verdict: classify.Verdict{Class: classify.Transient}},
			LeftElapsed: now.elapsed, LeftDeadline: now.deadline,
			Wait: w.next().middle,
		}
		d := exec.Decide(p, s)
		if d.Action == exec.Ask {
			grant := pay(payers)
			s.Grant = &grant
			d = exec.Decide(p, s)
		}
		if d.Action != exec.Retry {
			e := ended{Decision: d, attempts: n, elapsed: elapsed}
			if s.Grant != nil {
				e.refused = s.Grant.Budget
			}
			return e
		}
		elapsed = plus(elapsed, s.Wait)
		for i := range payers {
			payers[i].record.Bucket.Credit(s.Wait)
		}
	}
	return ended{attempts: foreseen, elapsed: elapsed, beyond: true}
}

// pay takes one token from each. A refusal ends the run, so that nobody has to
// be refunded.
func pay(payers []payer) budget.Decision {
	for i := range payers {
		p := &payers[i]
		switch {
		case p.policy == budget.PolicyOpen:
		case p.policy == budget.PolicyClosed:
			return budget.Decision{Refusal: budget.Unavailable, Budget: p.label}
		case !p.record.Bucket.Withdraw():
			return budget.Decision{Refusal: budget.Denied, Budget: p.label}
		}
	}
	return budget.Decision{Granted: true}
}

// unpayable says what to tell somebody who asks for more retries than a budget
// that holds so many tokens can pay in the planned time, that of the waits when
// attempts fail at once; nothing if it can. It is meant for a full bucket: one
// that others have emptied is no reason for advice. Of the ceilings it knows
// p.MaxElapsed only.
func unpayable(p exec.Policy, params budget.Params, tokens float64) string {
	bucket := budget.Bucket{Params: params, Tokens: budget.Micro(math.Floor(tokens * float64(budget.Token)))}
	w := waiting{backoff: p.Backoff}
	var elapsed time.Duration
	for paid := range min(p.MaxAttempts-1, foreseen) {
		elapsed = plus(elapsed, w.next().middle)
		if p.MaxElapsed > 0 && elapsed >= p.MaxElapsed {
			return ""
		}
		if !bucket.Withdraw() {
			return unpayableText(p, params, tokens, paid)
		}
		if bucket.Credit(w.last.middle) >= budget.Token && w.steady {
			return ""
		}
	}
	return ""
}

func unpayableText(p exec.Policy, params budget.Params, tokens float64, paid int) string {
	who := "a full budget"
	if tokens < float64(params.Capacity) {
		who = "a budget of " + shortNumber(tokens) + " tokens"
	}
	pays := "only " + strconv.Itoa(paid)
	if paid == 0 {
		pays = "none"
	}
	asked := "retries are"
	if p.MaxAttempts == 2 {
		asked = "retry is"
	}
	return fmt.Sprintf("%d %s asked for, but %s pays for %s when attempts fail at once; to wait for a service to come up, use --no-budget",
		p.MaxAttempts-1, asked, who, pays)
}
