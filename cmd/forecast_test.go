package cmd

import (
	"context"
	"math"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

func usualPolicy() exec.Policy {
	return exec.Policy{
		MaxAttempts:   4,
		Backoff:       exec.Backoff{Delay: time.Second, Max: 20 * time.Second, Multiplier: 2, Jitter: exec.JitterEqual},
		MaxRetryAfter: 5 * time.Minute, KillAfter: 5 * time.Second,
		RetryOn: []classify.Class{classify.Transient, classify.Unknown},
	}
}

func TestUnpayable(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*exec.Policy, *budget.Params)
		tokens float64
		want   string
	}{
		{"defaults", func(*exec.Policy, *budget.Params) {}, 20, ""},
		{"waiting for a service", func(p *exec.Policy, _ *budget.Params) {
			p.MaxAttempts, p.Backoff.Multiplier, p.Backoff.Jitter = 60, 1, exec.JitterNone
		}, 20, "59 retries are asked for, but a full budget pays for only 22 when attempts fail at once; to wait for a service to come up, use --no-budget"},
		{"one more than it holds", func(p *exec.Policy, b *budget.Params) {
			p.MaxAttempts, b.Capacity, b.Refill = 5, 3, 0
		}, 3, "4 retries are asked for, but a full budget pays for only 3 when attempts fail at once; to wait for a service to come up, use --no-budget"},
		{"just what it holds", func(p *exec.Policy, b *budget.Params) {
			p.MaxAttempts, b.Capacity, b.Refill = 4, 3, 0
		}, 3, ""},
		{"capacity 0", func(p *exec.Policy, b *budget.Params) {
			p.MaxAttempts, b.Capacity = 2, 0
		}, 0, "1 retry is asked for, but a full budget pays for none when attempts fail at once; to wait for a service to come up, use --no-budget"},
		{"no retries", func(p *exec.Policy, b *budget.Params) { p.MaxAttempts, b.Capacity = 1, 0 }, 0, ""},
		{"the ceiling comes first", func(p *exec.Policy, _ *budget.Params) {
			p.MaxAttempts, p.Backoff.Multiplier, p.Backoff.Jitter, p.MaxElapsed = 60, 1, exec.JitterNone, 20*time.Second
		}, 20, ""},
		{"refill as fast as the waits", func(p *exec.Policy, b *budget.Params) {
			p.MaxAttempts, p.Backoff.Multiplier, p.Backoff.Jitter, b.Refill = math.MaxInt32, 1, exec.JitterNone, 3600*budget.Rate(budget.Token)
		}, 20, ""},
		{
			"some tokens", func(p *exec.Policy, b *budget.Params) { b.Refill = 0 }, 2.95,
			"3 retries are asked for, but a budget of 2.9 tokens pays for only 2 when attempts fail at once; to wait for a service to come up, use --no-budget",
		},
	} {
		policy, params := usualPolicy(), budget.Defaults()
		test.change(&policy, &params)
		if got := unpayable(policy, params, test.tokens); got != test.want {
			t.Errorf("%s: unpayable(...) = %q, want %q", test.name, got, test.want)
		}
	}
}

func TestFirstWaits(t *testing.T) {
	s := time.Second
	for _, test := range []struct {
		jitter exec.Jitter
		want   []wait
	}{
		{exec.JitterNone, []wait{{s, s, s, s}, {2 * s, 2 * s, 2 * s, 2 * s}, {3 * s, 3 * s, 3 * s, 3 * s}}},
		{exec.JitterFull, []wait{{s, 0, s / 2, s}, {2 * s, 0, s, 2 * s}, {3 * s, 0, 3 * s / 2, 3 * s}}},
		{exec.JitterEqual, []wait{{s, s / 2, 3 * s / 4, s}, {2 * s, s, 3 * s / 2, 2 * s}, {3 * s, 3 * s / 2, 9 * s / 4, 3 * s}}},
		{exec.JitterDecorrelated, []wait{{s, s, 2 * s, 3 * s}, {2 * s, s, 2 * s, 3 * s}, {3 * s, s, 2 * s, 3 * s}}},
	} {
		b := exec.Backoff{Delay: s, Max: 3 * s, Multiplier: 2, Jitter: test.jitter}
		if diff := cmp.Diff(test.want, firstWaits(b, 9, 3), cmp.AllowUnexported(wait{})); diff != "" {
			t.Errorf("firstWaits(%s) differs (-want +got):\n%s", test.jitter, diff)
		}
	}
}

// The short way to all waits is the sum of the waits one by one.
func TestAllWaitsIsTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := exec.Backoff{
			Delay:      time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "delay")),
			Multiplier: rapid.SampledFrom([]float64{1, 1.0000001, 1.5, 2, 10}).Draw(t, "multiplier"),
			Jitter:     rapid.SampledFrom([]exec.Jitter{exec.JitterNone, exec.JitterFull, exec.JitterEqual, exec.JitterDecorrelated}).Draw(t, "jitter"),
		}
		b.Max = b.Delay + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "more"))
		retries := rapid.IntRange(0, 200).Draw(t, "retries")
		var want, last wait
		for n := 1; n <= retries; n++ {
			last = wait{b.Computed(n), b.Wait(n, 0, last.least, 0), b.Wait(n, 0.5, last.middle, 0), b.Wait(n, 1, last.most, 0)}
			want = wait{want.computed + last.computed, want.least + last.least, want.middle + last.middle, want.most + last.most}
		}
		if got := allWaits(b, retries); got != want {
			t.Fatalf("allWaits(%+v, %d) = %+v, want %+v", b, retries, got, want)
		}
	})
}

func TestForecastSaturates(t *testing.T) {
	b := exec.Backoff{Delay: longest, Max: longest, Multiplier: math.MaxFloat64, Jitter: exec.JitterEqual}
	if got := allWaits(b, math.MaxInt32); got.most != longest || got.least != longest {
		t.Errorf("allWaits(of centuries) = %+v, want %s", got, longest)
	}
	p := usualPolicy()
	p.MaxAttempts, p.Timeout, p.Backoff = math.MaxInt32, longest, b
	if got := worstCase(p, exec.NoCeiling, longest); got != longest {
		t.Errorf("worstCase(of centuries) = %s, want %s", got, longest)
	}
}

func TestWorstCase(t *testing.T) {
	for _, test := range []struct {
		name         string
		change       func(*exec.Policy)
		left, stated time.Duration
		want         time.Duration
	}{
		{"no limit", func(*exec.Policy) {}, exec.NoCeiling, 0, unbounded},
		{"a limit of attempts", func(p *exec.Policy) { p.Timeout = 10 * time.Second }, exec.NoCeiling, 0, 4*15*time.Second + 7*time.Second},
		{"stated waits", func(p *exec.Policy) { p.Timeout = 10 * time.Second }, exec.NoCeiling, time.Minute, 4*15*time.Second + 7*time.Second + 3*time.Minute},
		{"corrections", func(p *exec.Policy) { p.Timeout, p.Correct, p.MaxCorrections = 10*time.Second, true, 2 }, exec.NoCeiling, 0, 6*15*time.Second + 7*time.Second},
		{"a ceiling", func(*exec.Policy) {}, time.Minute, time.Hour, 65 * time.Second},
		{"a ceiling that is far", func(p *exec.Policy) { p.Timeout = time.Second }, time.Hour, 0, 4*6*time.Second + 7*time.Second},
		{"a ceiling that has passed", func(*exec.Policy) {}, -time.Hour, 0, 5 * time.Second},
	} {
		p := usualPolicy()
		test.change(&p)
		if got := worstCase(p, test.left, test.stated); got != test.want {
			t.Errorf("%s: worstCase(...) = %s, want %s", test.name, got, test.want)
		}
	}
}

// What the forecast says is what the engine does with the same dice.
func TestForeseeIsWhatTheEngineDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := usualPolicy()
		p.MaxAttempts = rapid.IntRange(1, 40).Draw(rt, "attempts")
		p.Backoff.Delay = time.Duration(rapid.IntRange(0, 3000).Draw(rt, "delay")) * time.Millisecond
		p.Backoff.Jitter = rapid.SampledFrom([]exec.Jitter{exec.JitterNone, exec.JitterEqual, exec.JitterFull, exec.JitterDecorrelated}).Draw(rt, "jitter")
		if rapid.Bool().Draw(rt, "ceiling") {
			p.MaxElapsed = time.Duration(rapid.IntRange(1, 120).Draw(rt, "elapsed")) * time.Second
		}
		if rapid.Bool().Draw(rt, "strange") {
			p.RetryOn = []classify.Class{classify.Unknown}
		}
		params := budget.Params{Capacity: rapid.IntRange(0, 8).Draw(rt, "capacity"), Refill: rapid.SampledFrom([]budget.Rate{0, 0, 360, 1800, 3600, 36_000}).Draw(rt, "refill") * budget.Rate(budget.Token)}
		second := budget.Params{Capacity: rapid.SampledFrom([]int{0, 3, 8, 50}).Draw(rt, "second")}
		at := ceilings{exec.NoCeiling, exec.NoCeiling}
		if p.MaxElapsed > 0 {
			at.elapsed = p.MaxElapsed
		}
		payers := []payer{{label: "a", record: budget.NewRecord(params, budget.Stamp{})}, {label: "b", record: budget.NewRecord(second, budget.Stamp{})}}
		got := foresee(p, at, payers)

		var want *exec.Outcome
		synctest.Test(t, func(*testing.T) {
			want = (&exec.Engine{
				Policy: p, Starter: failing{}, Judge: transient{}, Rand: func() float64 { return 0.5 }, Started: time.Now(),
				Budget: &budget.Ledger{
					OnError: budget.PolicyLocal, Store: budget.Unusable(budget.KindFile, context.Canceled),
					Members: []budget.Member{{Name: "a", Params: params}, {Name: "b", Params: second}},
				},
			}).Run()
		})
		if got.Row != want.Row || got.Label != want.Label || got.Reason != want.Reason || got.attempts != want.AttemptCount || got.elapsed != want.Slept {
			rt.Fatalf("foresee(%+v, %+v) = row %d %s after %d attempts and %s, want row %d %s after %d and %s",
				p, params, got.Row, got.Reason, got.attempts, got.elapsed, want.Row, want.Reason, want.AttemptCount, want.Slept)
		}
		if got.Reason == exec.BudgetDenied && got.refused != want.Refusal.Budget {
			rt.Fatalf("foresee(%+v) is refused by %q, want %q", p, got.refused, want.Refusal.Budget)
		}
	})
}

// failing starts attempts that fail at once.
type failing struct{}

func (failing) Start(exec.Next) (exec.Process, error) {
	p := gone{make(chan struct{})}
	close(p.done)
	return p, nil
}

type transient struct{}

func (transient) Judge(exec.Result, bool) exec.Verdict {
	return exec.Verdict{Verdict: classify.Verdict{Class: classify.Transient}}
}

// gone is a process that has ended with status 1.
type gone struct{ done chan struct{} }

func (p gone) Done() <-chan struct{}     { return p.done }
func (gone) Result() exec.Result         { return exec.Result{Code: 1} }
func (gone) Shared() bool                { return false }
func (gone) Signal(syscall.Signal) error { return nil }
func (gone) Terminate() error            { return nil }
func (gone) Kill() error                 { return nil }
func (gone) EndLeftovers() bool          { return false }
func (gone) KillLeftovers()              {}
