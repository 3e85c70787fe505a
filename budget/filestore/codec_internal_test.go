package filestore

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/statefile"
)

func records() *rapid.Generator[budget.Record] {
	return rapid.Custom(func(t *rapid.T) budget.Record {
		p := budget.Params{
			Capacity: rapid.IntRange(0, budget.MaxCapacity).Draw(t, "capacity"),
			Refill:   budget.Rate(rapid.Int64Range(0, int64(budget.MaxRefill)).Draw(t, "refill")),
			Bonus:    budget.Micro(rapid.Int64Range(0, int64(budget.MaxBonus)).Draw(t, "bonus")),
		}
		r := budget.NewRecord(p, budget.Stamp{Domain: rapid.Uint64().Draw(t, "domain"), Boot: rapid.Int64().Draw(t, "boot"), Wall: rapid.Int64().Draw(t, "wall")})
		r.Bucket.Tokens = budget.Micro(rapid.Int64Range(0, int64(r.Bucket.Tokens)).Draw(t, "tokens"))
		r.Bucket.Fraction = rapid.Int64Range(0, int64(time.Hour)-1).Draw(t, "fraction")
		for _, n := range []*uint64{&r.Counters.Granted, &r.Counters.Denied, &r.Counters.Refunded, &r.Counters.Deposits, &r.Counters.Resets, &r.Counters.Anomalies} {
			*n = rapid.Uint64().Draw(t, "counter")
		}
		k := &r.Breaker
		k.State = budget.BreakerState(rapid.IntRange(0, 2).Draw(t, "state"))
		k.Failures = rapid.IntRange(0, 1<<40).Draw(t, "failures")
		k.Generation, k.Holder = rapid.Uint64().Draw(t, "generation"), rapid.Uint64().Draw(t, "holder")
		k.OpenFor = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "open for"))
		k.Until, k.LeaseEnd = rapid.Int64().Draw(t, "until"), rapid.Int64().Draw(t, "lease end")
		for range rapid.IntRange(0, budget.BreakerWindow).Draw(t, "recent") {
			k.Recent = append(k.Recent, budget.Past{Failed: rapid.Bool().Draw(t, "failed"), At: rapid.Int64().Draw(t, "at")})
		}
		return r
	})
}

// Every record comes back as it was, and the largest fits a slot.
func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := records().Draw(t, "record")
		name := strings.Repeat("n", rapid.IntRange(1, budget.MaxName).Draw(t, "length"))
		data := encode(name, want, 1<<22)
		if len(data) > statefile.MaxPayload {
			t.Fatalf("encode() = %d bytes, want at most %d", len(data), statefile.MaxPayload)
		}
		got, err := decode(name, data)
		if err != nil {
			t.Fatalf("decode() = %v, want nil", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("decode(encode()) (-want +got):\n%s", diff)
		}
		if _, err := decode(name+"x", data); err == nil {
			t.Fatal("decode() under another name = nil, want an error")
		}
		if cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut"); cut < len(data) {
			if _, err := decode(name, data[:cut]); err == nil {
				t.Fatalf("decode() of %d of %d bytes = nil, want an error", cut, len(data))
			}
		}
		if _, err := decode(name, append(data, 0)); err == nil {
			t.Fatal("decode() with a byte too many = nil, want an error")
		}
	})
}

// What no sequence of decisions can have produced is refused, checksum or not.
func TestDecodeRefusesNonsense(t *testing.T) {
	for name, spoil := range map[string]func(*budget.Record){
		"negative tokens": func(r *budget.Record) { r.Bucket.Tokens = -1 },
		"too many tokens": func(r *budget.Record) { r.Bucket.Tokens++ },
		"capacity":        func(r *budget.Record) { r.Bucket.Params.Capacity = budget.MaxCapacity + 1 },
		"refill":          func(r *budget.Record) { r.Bucket.Params.Refill = -1 },
		"bonus":           func(r *budget.Record) { r.Bucket.Params.Bonus = budget.MaxBonus + 1 },
		"fraction":        func(r *budget.Record) { r.Bucket.Fraction = int64(time.Hour) },
		"state":           func(r *budget.Record) { r.Breaker.State = 3 },
		"cooldown":        func(r *budget.Record) { r.Breaker.OpenFor = math.MaxInt64 },
		"failures":        func(r *budget.Record) { r.Breaker.Failures = -1 },
	} {
		r := budget.NewRecord(budget.Defaults(), budget.Stamp{Domain: 1, Boot: 1, Wall: 1})
		spoil(&r)
		if _, err := decode("a", encode("a", r, 1)); err == nil {
			t.Errorf("decode() of a record with wrong %s = nil, want an error", name)
		}
	}
}

// Any bytes: decode does not panic, and what it accepts is a record within its
// ranges that survives any decision and the way back.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	full := budget.NewRecord(budget.Defaults(), budget.Stamp{Domain: 1, Boot: 1, Wall: 1})
	f.Add(encode("a", full, 1))
	full.Breaker.Recent = []budget.Past{{Failed: true, At: 5}}
	f.Add(encode("a", full, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode("a", data)
		if err != nil {
			return
		}
		again := encode("a", r, 0)
		if !bytes.Equal(again[:len(again)-4], data[:len(data)-4]) {
			t.Fatalf("encode(decode()) = %x, want %x", again, data)
		}
		rule := budget.BreakerRule{Threshold: 5, Cooldown: time.Second, Lease: time.Second}
		r.Advance(budget.Stamp{Domain: 2, Boot: int64(time.Hour), Wall: int64(1e18)})
		r.Withdraw()
		r.Deposit()
		r.Refund()
		r.Breaker.Ask(r.Clock.Boot, rule, 1)
		r.Breaker.Record(r.Clock.Boot, rule, budget.Result{Failed: true, Generation: r.Breaker.Generation, Nonce: 1})
		if err := r.Validate(); err != nil {
			t.Fatalf("after decisions Validate() = %v, want nil for %+v", err, r)
		}
	})
}
