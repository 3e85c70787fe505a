package budget_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
)

const (
	hour   = int64(time.Hour)
	second = int64(time.Second)
	epoch  = int64(1_800_000_000) * second // some wall time
)

// drained returns an empty record of 100 tokens at 1/s, last written at the given
// times.
func drained(boot, wall int64) budget.Record {
	r := budget.NewRecord(budget.Params{Capacity: 100, Refill: 3600 * budget.Rate(budget.Token)},
		budget.Stamp{Domain: 1, Boot: boot, Wall: wall})
	r.Bucket.Tokens = 0
	return r
}

func TestClockRules(t *testing.T) {
	tests := []struct {
		name       string
		boot, wall int64        // stored
		now        budget.Stamp // then
		want       int          // tokens credited at 1/s, capacity 100
		odd        bool         // counted as an anomaly
	}{
		{"30: wall steps back within a boot", hour, epoch, budget.Stamp{Domain: 1, Boot: hour + 10*second, Wall: epoch - 1000*hour}, 10, false},
		{"31: wall steps forward within a boot", hour, epoch, budget.Stamp{Domain: 1, Boot: hour + 10*second, Wall: epoch + 1000*hour}, 10, false},
		{"32: reboot, clock right", hour, epoch, budget.Stamp{Domain: 2, Boot: second, Wall: epoch + 30*second}, 30, false},
		{"32: reboot, long ago", hour, epoch, budget.Stamp{Domain: 2, Boot: second, Wall: epoch + 30*hour}, 100, false},
		{"32: reboot, clock a little behind", hour, epoch, budget.Stamp{Domain: 2, Boot: second, Wall: epoch - 30*second}, 0, false},
		{"32: reboot, clock far behind", hour, epoch, budget.Stamp{Domain: 2, Boot: second, Wall: epoch - 30*hour}, 0, true},
		{"32: reboot, clock far ahead", hour, epoch, budget.Stamp{Domain: 2, Boot: second, Wall: math.MaxInt64}, 100, false},
		{"33: suspend", hour, epoch, budget.Stamp{Domain: 1, Boot: hour + 60*second, Wall: epoch + 60*second}, 60, false},
		{"boot clock read a moment early", hour, epoch, budget.Stamp{Domain: 1, Boot: hour - 1, Wall: epoch}, 0, false},
		{"35: boot time far in the future", math.MaxInt64, epoch, budget.Stamp{Domain: 1, Boot: hour, Wall: epoch}, 0, true},
		{"35: wall time far in the future", hour, math.MaxInt64, budget.Stamp{Domain: 2, Boot: hour, Wall: epoch}, 0, true},
		{"36: boot time zero", 0, epoch, budget.Stamp{Domain: 1, Boot: hour, Wall: epoch + hour}, 0, true},
		{"36: boot time negative", math.MinInt64, epoch, budget.Stamp{Domain: 1, Boot: hour, Wall: epoch + hour}, 0, true},
		{"36: wall time zero across boots", hour, 0, budget.Stamp{Domain: 2, Boot: hour, Wall: epoch}, 0, true},
		{"36: wall time negative across boots", hour, -5, budget.Stamp{Domain: 2, Boot: hour, Wall: epoch}, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := drained(tt.boot, tt.wall)
			r.Advance(tt.now)
			if got := r.Bucket.Tokens; got != budget.Micro(tt.want)*budget.Token {
				t.Errorf("Advance(%+v) credited %s, want %d", tt.now, got, tt.want)
			}
			if got := r.Counters.Anomalies > 0; got != tt.odd {
				t.Errorf("Advance(%+v) counted an anomaly = %v, want %v", tt.now, got, tt.odd)
			}
			// Whatever it was, the refill resumes.
			before := r.Bucket.Tokens
			then := tt.now
			then.Boot += 5 * second
			if then.Wall < math.MaxInt64 {
				then.Wall += 5 * second
			}
			r.Advance(then)
			want := min(before+5*budget.Token, 100*budget.Token)
			if tt.now.Boot < tt.boot && !tt.odd && tt.now.Domain == 1 {
				want-- // the stored moment had not come yet: a nanosecond is no micro-token, but it rounds down
			}
			if r.Bucket.Tokens != want {
				t.Errorf("5 s after Advance(%+v) it holds %s, want %s", tt.now, r.Bucket.Tokens, want)
			}
		})
	}
}

// A stored time that lies a little ahead does not move back: going back and
// forth pays once.
func TestStoredTimeNeverMovesBack(t *testing.T) {
	r := drained(hour, epoch)
	at := func(boot int64) budget.Stamp { return budget.Stamp{Domain: 1, Boot: boot, Wall: epoch} }
	for range 10 {
		r.Advance(at(hour + 10*second))
		r.Advance(at(hour))
	}
	if got := r.Bucket.Tokens; got != 10*budget.Token {
		t.Errorf("ten times forth and back by 10 s credited %s, want 10", got)
	}
}

// The wall time that counts across boots does not move back either, or a wall
// clock that goes back and forth would pay for time that never was.
func TestStoredWallTimeNeverMovesBack(t *testing.T) {
	r := drained(hour, epoch)
	r.Advance(budget.Stamp{Domain: 1, Boot: hour, Wall: epoch - 50*second})
	r.Advance(budget.Stamp{Domain: 2, Boot: hour, Wall: epoch})
	if got := r.Bucket.Tokens; got != 0 {
		t.Errorf("a wall clock that went back and forth credited %s, want 0", got)
	}
}

// Property 34: two time namespaces that take turns on one record, with any
// offsets, credit at most what the time was worth.
func TestTimeNamespacesTakingTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rates().Draw(t, "rate")
		r := budget.NewRecord(budget.Params{Capacity: budget.MaxCapacity, Refill: rate}, budget.Stamp{Domain: 1, Boot: 1, Wall: epoch})
		r.Bucket.Tokens = 0
		offsets := []int64{
			rapid.Int64Range(1, 1000*hour).Draw(t, "offset of a"),
			rapid.Int64Range(1, 1000*hour).Draw(t, "offset of b"),
		}
		r.Advance(budget.Stamp{Domain: 10, Boot: offsets[0], Wall: epoch})
		elapsed, turns := int64(0), rapid.IntRange(1, 50).Draw(t, "turns")
		for i := range turns {
			elapsed += rapid.Int64Range(0, 10*second).Draw(t, "elapsed")
			who := i % 2
			r.Advance(budget.Stamp{Domain: 10 + uint64(who), Boot: offsets[who] + elapsed, Wall: epoch + elapsed})
		}
		whole := budget.Bucket{Params: r.Bucket.Params}
		whole.Credit(time.Duration(elapsed))
		if r.Bucket != whole {
			t.Fatalf("%d turns in %v leave %+v, want %+v", turns, time.Duration(elapsed), r.Bucket, whole)
		}
	})
}

// Properties 30 and 31 for any steps of the wall clock: within a boot they change
// nothing at all.
func TestWallClockDoesNotMatterWithinABoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steady, stepping := drained(hour, epoch), drained(hour, epoch)
		boot := hour
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			boot += rapid.Int64Range(0, 10*second).Draw(t, "elapsed")
			wall := rapid.Int64Range(0, math.MaxInt64).Draw(t, "wall")
			steady.Advance(budget.Stamp{Domain: 1, Boot: boot, Wall: epoch + boot})
			stepping.Advance(budget.Stamp{Domain: 1, Boot: boot, Wall: wall})
			if steady.Bucket != stepping.Bucket {
				t.Fatalf("at %d with wall %d: %+v, want %+v", boot, wall, stepping.Bucket, steady.Bucket)
			}
		}
	})
}
