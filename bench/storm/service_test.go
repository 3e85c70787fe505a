package main

import (
	"slices"
	"testing"
	"time"
)

func TestServiceQueuesAndTurnsAway(t *testing.T) {
	s := &service{plan: plan{Down: 10 * time.Second, Up: 20 * time.Second, Healthy: 10, Capacity: 1, Queue: 2 * time.Second}}
	for _, c := range []struct {
		at, ready time.Duration
		ok        bool
	}{
		{at: 0, ready: 100 * time.Millisecond, ok: true},
		{at: 50 * time.Millisecond, ready: 200 * time.Millisecond, ok: true}, // behind the first
		{at: 10 * time.Second},                                                     // down
		{at: 20*time.Second - 1},                                                   // still
		{at: 20 * time.Second, ready: 21 * time.Second, ok: true},                  // back, with an empty queue
		{at: 20 * time.Second, ready: 22 * time.Second, ok: true},                  // nobody is served twice as fast
		{at: 20 * time.Second, ready: 23 * time.Second, ok: true},                  // two seconds in the queue
		{at: 20 * time.Second},                                                     // more than it accepts
		{at: 22*time.Second + time.Millisecond, ready: 24 * time.Second, ok: true}, // room again
	} {
		ready, ok := s.admit(c.at, "x")
		if ready != c.ready || ok != c.ok {
			t.Errorf("admit(%v) = %v, %v, want %v, %v", c.at, ready, ok, c.ready, c.ok)
		}
	}
	if got := len(s.seen()); got != 9 {
		t.Errorf("the service counted %d requests, want all 9", got)
	}
}

func TestArrivalsAreTheSameEveryTime(t *testing.T) {
	l := load{Rate: 2, Until: 100 * time.Second, Seed: 1}
	first := l.arrivals()
	if !slices.Equal(first, l.arrivals()) {
		t.Error("arrivals differ with the same seed")
	}
	if !slices.IsSorted(first) || len(first) < 150 || len(first) > 250 || first[len(first)-1] >= l.Until {
		t.Errorf("%d arrivals, want some 200 in order before %v", len(first), l.Until)
	}
}

func TestRecoveryNeedsLastingSuccess(t *testing.T) {
	r := result{plan: plan{Up: 10 * time.Second}, load: load{Until: 40 * time.Second}}
	for at := time.Duration(0); at < r.load.Until; at += time.Second / 2 {
		r.calls = append(r.calls, call{Start: at, OK: at < 12*time.Second || at >= 16*time.Second})
	}
	if got, ok := r.recovery(); !ok || got != 5500*time.Millisecond {
		t.Errorf("recovery = %v, %v, want 5.5s, as one of twenty may fail", got, ok)
	}
	for i := range r.calls {
		r.calls[i].OK = i%2 == 0
	}
	if got, ok := r.recovery(); ok {
		t.Errorf("recovery = %v of a service that serves every other call, want never", got)
	}
}

func TestPeakIsOfAnySecond(t *testing.T) {
	var r result
	for _, ms := range []int{0, 900, 950, 1100, 1899, 3000} {
		r.requests = append(r.requests, request{At: time.Duration(ms) * time.Millisecond})
	}
	if got := r.peak(); got != 4 {
		t.Errorf("peak = %d, want 4", got)
	}
}
