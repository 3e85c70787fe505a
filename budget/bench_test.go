package budget_test

import (
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
)

// What one decision costs under the lock of its record, but for the record's
// bytes: the time since the last one is credited, then a token is asked for.

func BenchmarkBucket(b *testing.B) {
	params := budget.Defaults()
	for _, bench := range []struct {
		name string
		step time.Duration // between two decisions
	}{{"granted", 20 * time.Second}, {"denied", time.Microsecond}} {
		b.Run(bench.name, func(b *testing.B) {
			now := budget.Stamp{Domain: 1, Boot: int64(time.Hour), Wall: int64(time.Hour)}
			r := budget.NewRecord(params, now)
			for b.Loop() {
				now.Boot += int64(bench.step)
				now.Wall += int64(bench.step)
				r.Advance(now)
				r.Withdraw()
			}
			if err := r.Validate(); err != nil {
				b.Error(err)
			}
		})
	}
}

func BenchmarkBreaker(b *testing.B) {
	rule := budget.BreakerRule{Threshold: budget.DefaultThreshold, Cooldown: budget.DefaultCooldown, Lease: budget.DefaultLease}
	for _, failing := range []bool{false, true} {
		name := map[bool]string{false: "succeeding", true: "failing"}[failing]
		b.Run(name, func(b *testing.B) {
			var k budget.Breaker
			now := int64(0)
			for b.Loop() {
				now += int64(time.Second)
				p := k.Ask(now, rule, 7)
				k.Record(now, rule, budget.Result{Failed: failing, Generation: p.Generation, Nonce: 7, Dice: 0.5})
			}
		})
	}
}
