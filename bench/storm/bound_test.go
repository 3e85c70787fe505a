package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// honest is a scenario that keeps to its bound exactly: a bucket of two without a
// refill, three calls of which two failed twice, one of them a second later.
func honest(t *testing.T) (account, []outcome, []call) {
	t.Helper()
	a := account{Capacity: 2}
	a.Counters.Granted, a.Counters.Denied, a.Counters.Successes = 2, 2, 1
	all := []outcome{
		read(t, "success", 0, 0, 0),
		read(t, "retryable_failure", 1, 0, 10),
		read(t, "retryable_failure", 1, 1000, 1010),
	}
	calls := []call{{OK: true, End: time.Second}, {End: time.Second}, {End: 2 * time.Second}}
	return a, all, calls
}

// read is an outcome with one grant or none, and attempts at these milliseconds.
func read(t *testing.T, label string, granted int, at ...int) outcome {
	t.Helper()
	var attempts []string
	for _, ms := range at {
		attempts = append(attempts, fmt.Sprintf(`{"started_at":"2026-01-02T03:04:%02d.%03dZ","elapsed_ms":1}`, ms/1000, ms%1000))
	}
	text := fmt.Sprintf(`{"outcome":%q,"ended_at":"2026-01-02T03:04:09Z","attempts":[%s],"budgets":[{"granted":%d}]}`, label, strings.Join(attempts, ","), granted)
	var o outcome
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAuditTakesWhatKeepsToTheBound(t *testing.T) {
	a, all, calls := honest(t)
	got, err := check(a, all, calls, len(calls)+2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Granted != 2 || got.Windows != 3 || got.Tightest != 0 {
		t.Errorf("check = %+v, want 2 grants, 3 windows and nothing left", got)
	}
}

func TestAuditRefusesEveryBreach(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*account, []outcome)
		attempts int
		want     string
	}{
		"more than the bucket holds": {func(a *account, _ []outcome) { a.Capacity = 1 }, 5, "the bound is broken: 2 retries, at most 1.000"},
		"a window with too much": {
			func(a *account, all []outcome) {
				// Over the whole run the refill pays for both, in the second between them it does not.
				a.Capacity, a.PerHour = 1, 3600/2
			}, 5, "the bound is broken in a window",
		},
		"grants that no outcome tells of": {func(a *account, _ []outcome) { a.Counters.Granted = 1 }, 4, "outcomes tell of 2 grants"},
		"attempts that nobody paid":       {func(*account, []outcome) {}, 6, "the service saw 6 attempts, calls and retries are 5"},
		"attempts that never came":        {func(*account, []outcome) {}, 4, "the service saw 4 attempts, calls and retries are 5"},
		"bonuses for failures":            {func(a *account, _ []outcome) { a.Counters.Successes = 2 }, 5, "2 bonuses for 1 successes"},
	} {
		t.Run(name, func(t *testing.T) {
			a, all, calls := honest(t)
			c.change(&a, all)
			_, err := check(a, all, calls, c.attempts)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("check = %v, want %q", err, c.want)
			}
		})
	}
}

func TestBoundIsExact(t *testing.T) {
	a := account{Capacity: 20, PerHour: 360, Bonus: 0.1}
	for _, c := range []struct {
		window    time.Duration
		successes int64
		want      int64
	}{
		{0, 0, 20000},
		{10 * time.Second, 0, 21000},
		{9999 * time.Millisecond, 0, 20999},
		{time.Hour, 3, 380300},
	} {
		if got := a.most(c.window, c.successes); got != c.want {
			t.Errorf("most(%v, %d) = %d thousandths, want %d", c.window, c.successes, got, c.want)
		}
	}
}
