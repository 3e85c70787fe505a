package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"time"
)

// The bound, as the contract states it, over any window of length T and all
// processes:
//
//	retries granted - refunded <= C + R*T + b*successes
//
// audit holds a scenario to it three times: with the counters of the store over
// the whole run, with the times in the outcomes over every window between two
// grants, and with what the service itself counted.

// An outcome is what audit needs of retryx.outcome/v1.
type outcome struct {
	Outcome  string    `json:"outcome"`
	Depth    int       `json:"depth"`
	EndedAt  time.Time `json:"ended_at"`
	Attempts []struct {
		StartedAt time.Time `json:"started_at"`
		ElapsedMS int64     `json:"elapsed_ms"`
	} `json:"attempts"`
	Budgets []struct {
		Granted  int64 `json:"granted"`
		Refunded int64 `json:"refunded"`
	} `json:"budgets"`
}

// An account is what the store says: retryx budget show --format json.
type account struct {
	Capacity int64   `json:"capacity"`
	PerHour  float64 `json:"refill_per_hour"`
	Bonus    float64 `json:"bonus"`
	Counters struct {
		Granted   int64 `json:"granted"`
		Denied    int64 `json:"denied"`
		Refunded  int64 `json:"refunded"`
		Successes int64 `json:"successes"`
	} `json:"counters"`
}

// most returns the bound in thousandths of a token, which are exact for every
// rate and bonus that the flags take with three decimals an hour.
func (a account) most(window time.Duration, successes int64) int64 {
	perHour, bonus := int64(a.PerHour*1000+0.5), int64(a.Bonus*1000+0.5)
	refill := perHour * int64(window/time.Microsecond) / int64(time.Hour/time.Microsecond)
	return a.Capacity*1000 + refill + bonus*successes
}

// An audit is what the bound allowed and what was done.
type audit struct {
	Granted, Refunded int64
	Most              float64 // what the bound allows for the whole run
	Successes         int64   // those that brought a bonus
	Windows           int     // how many windows were looked at
	Tightest          float64 // of all windows the least that was left, in tokens
	Span              time.Duration
}

// slack is what the times in an outcome, which are in milliseconds and are read
// beside the store's lock and not under it, may be off.
const slack = 50 * time.Millisecond

// check holds what was measured to the bound and to itself.
func check(a account, all []outcome, calls []call, attempts int) (audit, error) {
	result := audit{Granted: a.Counters.Granted, Refunded: a.Counters.Refunded, Successes: a.Counters.Successes}
	from, until := span(calls)
	result.Span = until - from
	most := a.most(result.Span, result.Successes)
	result.Most = float64(most) / 1000
	net := result.Granted - result.Refunded

	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if net*1000 > most {
		complain("the bound is broken: %d retries, at most %.3f", net, result.Most)
	}
	var granted, refunded int64
	for _, o := range all {
		for _, b := range o.Budgets {
			granted, refunded = granted+b.Granted, refunded+b.Refunded
		}
	}
	if granted != result.Granted || refunded != result.Refunded {
		complain("outcomes tell of %d grants and %d refunds, the store of %d and %d", granted, refunded, result.Granted, result.Refunded)
	}
	good, killed := ended(calls)
	if result.Successes > int64(good) {
		complain("%d bonuses for %d successes", result.Successes, good)
	}
	switch want := len(calls) + int(net); {
	case attempts > want:
		complain("the service saw %d attempts, calls and retries are %d", attempts, want)
	case attempts < want && killed == 0:
		complain("the service saw %d attempts, calls and retries are %d", attempts, want)
	}
	result.Windows, result.Tightest = windows(a, all)
	if result.Tightest < 0 {
		complain("the bound is broken in a window by %.3f", -result.Tightest)
	}
	return result, errors.Join(errs...)
}

func span(calls []call) (from, until time.Duration) {
	for i, c := range calls {
		if i == 0 || c.Start < from {
			from = c.Start
		}
		until = max(until, c.End)
	}
	return from, until
}

func ended(calls []call) (good, killed int) {
	for _, c := range calls {
		if c.OK {
			good++
		}
		if c.Killed {
			killed++
		}
	}
	return good, killed
}

// windows looks at every window from one grant to another and returns how many
// there are and the least that the bound left over in one.
func windows(a account, all []outcome) (n int, least float64) {
	grants, deposits := times(all)
	least = float64(a.Capacity)
	for i, from := range grants {
		for j, to := range grants[i:] {
			n++
			first := sort.Search(len(deposits), func(k int) bool { return !deposits[k].Before(from.Add(-slack)) })
			last := sort.Search(len(deposits), func(k int) bool { return deposits[k].After(to.Add(slack)) })
			most := a.most(to.Sub(from)+2*slack, int64(last-first))
			least = min(least, float64(most)/1000-float64(j+1))
		}
	}
	return n, least
}

// times returns when retries were granted, which is when the attempt before them
// ended, and when successes came: those of the innermost layer, as the layers
// around it bring no bonus.
func times(all []outcome) (grants, deposits []time.Time) {
	depth := 0
	for _, o := range all {
		depth = max(depth, o.Depth)
	}
	for _, o := range all {
		left := int64(0)
		for _, b := range o.Budgets {
			left += b.Granted
		}
		for _, at := range o.Attempts {
			if left--; left < 0 {
				break
			}
			grants = append(grants, at.StartedAt.Add(time.Duration(at.ElapsedMS)*time.Millisecond))
		}
		if o.Outcome == "success" && o.Depth == depth {
			deposits = append(deposits, o.EndedAt)
		}
	}
	sort.Slice(grants, func(i, j int) bool { return grants[i].Before(grants[j]) })
	sort.Slice(deposits, func(i, j int) bool { return deposits[i].Before(deposits[j]) })
	return grants, deposits
}

// readOutcomes reads a file that --outcome wrote.
func readOutcomes(path string) ([]outcome, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read outcomes: %w", err)
	}
	defer file.Close()
	var all []outcome
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return nil, fmt.Errorf("read outcomes: %w", err)
		}
		all = append(all, o)
	}
	return all, lines.Err()
}
