package exec_test

import (
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// BenchmarkDecide asks the table for the shortest and the longest ways through it.
func BenchmarkDecide(b *testing.B) {
	policy := exec.Policy{
		MaxAttempts: 4, MaxRetryAfter: 5 * time.Minute, MaxCorrections: 5,
		RetryOn: []classify.Class{classify.Transient, classify.Unknown},
	}
	success := exec.Snapshot{
		Point: exec.AfterAttempt, Attempts: 1,
		LeftElapsed: exec.NoCeiling, LeftDeadline: exec.NoCeiling, Wait: time.Second,
	}
	success.Verdict.Succeeded = true
	failure := success
	failure.Verdict.Succeeded, failure.Verdict.Class, failure.Code = false, classify.Unknown, 1
	granted, denied := failure, failure
	granted.Grant = &budget.Decision{Granted: true}
	denied.Grant = &budget.Decision{Refusal: budget.Denied}
	for _, bench := range []struct {
		name string
		s    exec.Snapshot
		want exec.Action
	}{
		{"success", success, exec.StopNow},
		{"ask", failure, exec.Ask},
		{"retry", granted, exec.Retry},
		{"denied", denied, exec.StopNow},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var got exec.Action
			for b.Loop() {
				got = exec.Decide(policy, bench.s).Action
			}
			if got != bench.want {
				b.Errorf("Decide = action %d, want %d", got, bench.want)
			}
		})
	}
}

func BenchmarkBackoff(b *testing.B) {
	for _, jitter := range []exec.Jitter{exec.JitterNone, exec.JitterEqual, exec.JitterDecorrelated} {
		b.Run(string(jitter), func(b *testing.B) {
			backoff := exec.Backoff{Delay: time.Second, Max: 20 * time.Second, Multiplier: 2, Jitter: jitter}
			var got time.Duration
			for b.Loop() {
				got = backoff.Wait(5, 0.5, got, 0)
			}
			if got <= 0 || got > backoff.Max {
				b.Errorf("Wait = %v, want up to %v", got, backoff.Max)
			}
		})
	}
}
