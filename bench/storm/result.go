package main

import (
	"fmt"
	"io"
	"time"
)

// A result is what one scenario did.
type result struct {
	scenario scenario
	plan     plan
	load     load
	calls    []call
	requests []request
	audit    *audit // nil without a budget
}

// requestsIn returns how many requests came in [from, to).
func (r result) requestsIn(from, to time.Duration) int {
	n := 0
	for _, q := range r.requests {
		if q.At >= from && q.At < to {
			n++
		}
	}
	return n
}

// callsIn returns how many calls arrived in [from, to), and how many of them
// ended well.
func (r result) callsIn(from, to time.Duration) (n, good int) {
	for _, c := range r.calls {
		if c.Start < from || c.Start >= to {
			continue
		}
		n++
		if c.OK {
			good++
		}
	}
	return n, good
}

// peak returns the most requests in any second.
func (r result) peak() int {
	most, first := 0, 0
	for i, q := range r.requests {
		for r.requests[first].At <= q.At-time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// A call is served again when 95 of 100 that arrive within recoverySpan end well.
const recoverySpan = 10 * time.Second

// recovery returns how long after the service was back calls were served again;
// false if that did not happen while they arrived.
func (r result) recovery() (time.Duration, bool) {
	const step = time.Second / 2
	for t := r.plan.Up; t+recoverySpan <= r.load.Until; t += step {
		if n, good := r.callsIn(t, t+recoverySpan); n > 0 && 100*good >= 95*n {
			return t - r.plan.Up, true
		}
	}
	return 0, false
}

func (r result) end() time.Duration { return r.load.Until }

// share is a part in per cent; "-" of nothing.
func share(good, n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(good)/float64(n))
}

// heading and line are the table of all scenarios.
func heading(w io.Writer) {
	fmt.Fprintf(w, "%-24s %6s %6s %8s %9s %9s %7s %10s  %s\n", "", "layers", "calls", "attempts", "per call", "in outage", "peak/s", "recovered", "success before, in, after the outage, in all")
}

func (r result) line(w io.Writer) {
	n, good := len(r.calls), 0
	for _, c := range r.calls {
		if c.OK {
			good++
		}
	}
	during, goodDuring := r.callsIn(r.plan.Down, r.plan.Up)
	before, goodBefore := r.callsIn(0, r.plan.Down)
	after, goodAfter := r.callsIn(r.plan.Up, r.end())
	recovered := "never"
	if d, ok := r.recovery(); ok {
		recovered = fmt.Sprintf("%.1fs", d.Seconds())
	}
	fmt.Fprintf(w, "%-24s %6d %6d %8d %9.2f %9.2f %7d %10s  %5s %5s %5s %5s\n",
		r.scenario.Title, r.scenario.Layers, n, len(r.requests), per(len(r.requests), n),
		per(r.requestsIn(r.plan.Down, r.plan.Up), during), r.peak(), recovered,
		share(goodBefore, before), share(goodDuring, during), share(goodAfter, after), share(good, n))
}

func per(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// bins is how many columns the attempts over time are printed in.
const bins = 13

// overTime prints requests for each call that arrives, along the run.
func (r result) overTime(w io.Writer) {
	width := r.end() / bins
	fmt.Fprintf(w, "%-24s %6d", r.scenario.Title, r.scenario.Layers)
	for i := range time.Duration(bins) {
		n, _ := r.callsIn(i*width, (i+1)*width)
		fmt.Fprintf(w, " %6.1f", per(r.requestsIn(i*width, (i+1)*width), n))
	}
	fmt.Fprintln(w)
}

// bound prints what the audit found.
func (r result) bound(w io.Writer) {
	a := r.audit
	fmt.Fprintf(w, "%-24s %6d  %d calls, %d attempts; retries %d granted, %d refunded <= %.3f = C + R*%.3fs + b*%d; least left in any of %d windows: %.3f\n",
		r.scenario.Title, r.scenario.Layers, len(r.calls), len(r.requests), a.Granted, a.Refunded, a.Most, a.Span.Seconds(), a.Successes, a.Windows, a.Tightest)
}
