package budget_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
)

// The generators cover the whole range of every parameter and prefer its ends.

func capacities() *rapid.Generator[int] {
	return rapid.OneOf(
		rapid.SampledFrom([]int{0, 1, 2, 20, budget.MaxCapacity}),
		rapid.IntRange(0, 30),
		rapid.IntRange(0, budget.MaxCapacity),
	)
}

func rates() *rapid.Generator[budget.Rate] {
	return rapid.OneOf(
		rapid.SampledFrom([]budget.Rate{0, 1, 3600, 360_000_000, budget.MaxRefill - 1, budget.MaxRefill}),
		rapid.Map(rapid.Int64Range(0, 10_000_000_000), func(n int64) budget.Rate { return budget.Rate(n) }),
		rapid.Map(rapid.Int64Range(0, int64(budget.MaxRefill)), func(n int64) budget.Rate { return budget.Rate(n) }),
	)
}

func bonuses() *rapid.Generator[budget.Micro] {
	return rapid.OneOf(
		rapid.SampledFrom([]budget.Micro{0, 1, 100_000, budget.MaxBonus}),
		rapid.Map(rapid.Int64Range(0, int64(budget.MaxBonus)), func(n int64) budget.Micro { return budget.Micro(n) }),
	)
}

func params() *rapid.Generator[budget.Params] {
	return rapid.Custom(func(t *rapid.T) budget.Params {
		return budget.Params{
			Capacity: capacities().Draw(t, "capacity"),
			Refill:   rates().Draw(t, "refill"),
			Bonus:    bonuses().Draw(t, "bonus"),
		}
	})
}

// spans are elapsed times from a nanosecond to the longest there is.
func spans() *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, 9 * time.Millisecond, time.Second, time.Hour, math.MaxInt64}),
		rapid.Map(rapid.Int64Range(0, 1000), func(n int64) time.Duration { return time.Duration(n) }),
		rapid.Map(rapid.Int64Range(0, int64(time.Minute)), func(n int64) time.Duration { return time.Duration(n) }),
		rapid.Map(rapid.Int64Range(0, int64(1000*time.Hour)), func(n int64) time.Duration { return time.Duration(n) }),
	)
}
