package exec_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/exec"
)

const longest = time.Duration(math.MaxInt64)

func TestComputed(t *testing.T) {
	second := exec.Backoff{Delay: time.Second, Max: 20 * time.Second, Multiplier: 2}
	for _, c := range []struct {
		backoff exec.Backoff
		n       int
		want    time.Duration
	}{
		{second, 1, time.Second},
		{second, 2, 2 * time.Second},
		{second, 5, 16 * time.Second},
		{second, 6, 20 * time.Second},
		{second, 30, 20 * time.Second},
		{second, 64, 20 * time.Second},
		{second, 1_000_000, 20 * time.Second},
		{second, 0, time.Second},
		{exec.Backoff{Delay: 100 * time.Millisecond, Max: time.Hour, Multiplier: 3}, 5, 8100 * time.Millisecond},
		{exec.Backoff{Delay: 500 * time.Millisecond, Max: time.Minute, Multiplier: 1.5}, 3, 1125 * time.Millisecond},
		{exec.Backoff{Delay: time.Second, Max: time.Minute, Multiplier: 1}, 1_000_000, time.Second},
		{exec.Backoff{Delay: time.Minute, Max: time.Second, Multiplier: 2}, 1, time.Second},
		{exec.Backoff{Delay: 1, Max: longest, Multiplier: 2}, 62, 1 << 61},
		{exec.Backoff{Delay: 1, Max: longest, Multiplier: 2}, 64, longest},
		{exec.Backoff{Delay: longest, Max: longest, Multiplier: math.MaxFloat64}, 1_000_000, longest},
		{exec.Backoff{Delay: 0, Max: time.Minute, Multiplier: 2}, 1_000_000, 0},
		{exec.Backoff{}, 3, 0},
	} {
		if got := c.backoff.Computed(c.n); got != c.want {
			t.Errorf("%+v.Computed(%d) = %v, want %v", c.backoff, c.n, got, c.want)
		}
	}
}

func TestWait(t *testing.T) {
	base := exec.Backoff{Delay: time.Second, Max: 20 * time.Second, Multiplier: 2}
	for _, c := range []struct {
		jitter           exec.Jitter
		n                int
		u                float64
		previous, stated time.Duration
		want             time.Duration
	}{
		{exec.JitterNone, 3, 0.5, 0, 0, 4 * time.Second},
		{"", 3, 0.5, 0, 0, 4 * time.Second},
		{exec.JitterFull, 3, 0.25, 0, 0, time.Second},
		{exec.JitterFull, 3, 0, 0, 0, 0},
		{exec.JitterEqual, 3, 0, 0, 0, 2 * time.Second},
		{exec.JitterEqual, 3, 0.5, 0, 0, 3 * time.Second},
		// Capped before jitter: at the cap the draw is still spread.
		{exec.JitterFull, 50, 0.75, 0, 0, 15 * time.Second},
		{exec.JitterEqual, 50, 0.5, 0, 0, 15 * time.Second},
		{exec.JitterDecorrelated, 1, 0.5, 0, 0, 2 * time.Second},
		{exec.JitterDecorrelated, 9, 0.5, 4 * time.Second, 0, 6500 * time.Millisecond},
		{exec.JitterDecorrelated, 2, 0.5, 19 * time.Second, 0, 10500 * time.Millisecond},
		{exec.JitterDecorrelated, 2, 0.5, longest, 0, 10500 * time.Millisecond},
		// A stated wait is the least there is.
		{exec.JitterNone, 1, 0.5, 0, 30 * time.Second, 30 * time.Second},
		{exec.JitterEqual, 1, 0.5, 0, 30 * time.Second, 30500 * time.Millisecond},
		{exec.JitterFull, 3, 0.5, 0, 30 * time.Second, 32 * time.Second},
		{exec.JitterDecorrelated, 1, 0.5, 0, 30 * time.Second, 30500 * time.Millisecond},
		{exec.JitterFull, 3, 0.1, 0, 3 * time.Second, 3 * time.Second},
		{exec.JitterNone, 3, 0.1, 0, 3 * time.Second, 4 * time.Second},
		{exec.JitterFull, 3, 0.9, 0, longest, longest},
	} {
		b := base
		b.Jitter = c.jitter
		if got := b.Wait(c.n, c.u, c.previous, c.stated); got != c.want {
			t.Errorf("%+v.Wait(%d, %v, %v, %v) = %v, want %v", b, c.n, c.u, c.previous, c.stated, got, c.want)
		}
	}
}

func drawBackoff(t *rapid.T) exec.Backoff {
	jitters := []exec.Jitter{exec.JitterNone, exec.JitterFull, exec.JitterEqual, exec.JitterDecorrelated}
	highest := rapid.Int64Range(0, math.MaxInt64).Draw(t, "max")
	return exec.Backoff{
		Delay:      time.Duration(rapid.Int64Range(0, highest).Draw(t, "delay")),
		Max:        time.Duration(highest),
		Multiplier: rapid.Float64Range(1, 1e300).Draw(t, "multiplier"),
		Jitter:     rapid.SampledFrom(jitters).Draw(t, "jitter"),
	}
}

func drawDie(t *rapid.T) float64 {
	return rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.5, math.Nextafter(1, 0)})).
		Filter(func(u float64) bool { return u < 1 }).Draw(t, "u")
}

func TestComputedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBackoff(t)
		n := rapid.IntRange(1, 1_000_000).Draw(t, "n")
		d := b.Computed(n)
		if d < 0 || d > b.Max {
			t.Fatalf("Computed(%d) = %v, want it within [0, %v]", n, d, b.Max)
		}
		if next := b.Computed(n + 1); next < d {
			t.Fatalf("Computed(%d) = %v after %v, want it not to decrease", n+1, next, d)
		}
		if b.Delay > 0 && d == 0 {
			t.Fatalf("Computed(%d) = 0 for a delay of %v", n, b.Delay)
		}
	})
}

func TestWaitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, u := drawBackoff(t), drawDie(t)
		n := rapid.IntRange(1, 1_000_000).Draw(t, "n")
		previous := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "previous"))
		d, w := b.Computed(n), b.Wait(n, u, previous, 0)
		low, high := bounds(b, d, previous)
		if w < low || w > high {
			t.Fatalf("Wait(%d, %v, %v, 0) = %v, want it within [%v, %v]", n, u, previous, w, low, high)
		}
		stated := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "stated"))
		w = b.Wait(n, u, previous, stated)
		if w < stated {
			t.Fatalf("Wait(%d, %v, %v, %v) = %v, undercuts the stated wait", n, u, previous, stated, w)
		}
		if over := w - stated; stated > d && over > d {
			t.Fatalf("Wait(%d, %v, %v, %v) = stated + %v, want at most %v more", n, u, previous, stated, over, d)
		}
	})
}

func bounds(b exec.Backoff, d, previous time.Duration) (low, high time.Duration) {
	switch b.Jitter {
	case exec.JitterFull:
		return 0, d
	case exec.JitterEqual:
		return d / 2, d
	case exec.JitterDecorrelated:
		return b.Delay, b.Max
	case exec.JitterNone:
	}
	return d, d
}

// The draws below a duration that a float64 holds exactly never reach it.
func TestJitterIsHalfOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, 1<<52).Draw(t, "d"))
		for _, j := range []exec.Jitter{exec.JitterFull, exec.JitterEqual} {
			b := exec.Backoff{Delay: d, Max: d, Multiplier: 1, Jitter: j}
			if w := b.Wait(1, drawDie(t), 0, 0); w >= d {
				t.Fatalf("%s: Wait() = %v, want less than %v", j, w, d)
			}
		}
	})
}

func TestDecorrelatedDoesNotPileUp(t *testing.T) {
	const draws = 100_000
	for _, most := range []time.Duration{2 * time.Second, 20 * time.Second, 10 * time.Minute} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			b := exec.Backoff{Delay: time.Second, Max: most, Multiplier: 2, Jitter: exec.JitterDecorrelated}
			dice := rand.New(rand.NewPCG(1, 2))
			atoms := map[time.Duration]int{}
			var wait, longest time.Duration
			for n := range draws {
				wait = b.Wait(n+1, dice.Float64(), wait, 0)
				atoms[wait.Round(time.Microsecond)]++
				longest = max(longest, wait)
			}
			for at, n := range atoms {
				if n > draws/100 {
					t.Errorf("%d of %d waits are %v, want no value above 1 %%", n, draws, at)
				}
			}
			if longest < most*9/10 {
				t.Errorf("longest wait = %v, want the range up to %v to be used", longest, most)
			}
		})
	}
}
