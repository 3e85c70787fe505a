package filestore_test

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
)

// BenchmarkWithdraw is one decision without contention; it reports the median and
// the 99th percentile.
func BenchmarkWithdraw(b *testing.B) {
	s, a := store(stateDir(b)), standard("a")
	a.Params.Capacity = budget.MaxCapacity
	benchmark(b, func() error { _, err := s.Withdraw(b.Context(), a, 0); return err })
}

// BenchmarkSettleFull is what a successful invocation pays: one read.
func BenchmarkSettleFull(b *testing.B) {
	s, a := store(stateDir(b)), standard("a")
	if _, err := s.Withdraw(b.Context(), a, 0); err != nil {
		b.Fatal(err)
	}
	if err := s.Reset(b.Context(), a); err != nil {
		b.Fatal(err)
	}
	benchmark(b, func() error { _, err := s.Settle(b.Context(), a, budget.Settling{Bonus: true}, 0); return err })
}

func benchmark(b *testing.B, operation func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := operation(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	report(b, took)
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
	b.ReportMetric(float64(took[len(took)-1].Nanoseconds()), "max-ns")
}

// BenchmarkHerd is property 18: 100 processes that wait together and then withdraw
// at the same moment from one record, again and again.
func BenchmarkHerd(b *testing.B) {
	const processes = 100
	dir := stateDir(b)
	var helpers []*helper
	for range processes {
		helpers = append(helpers, start(b, "herd", dir, budget.MaxCapacity))
	}
	begin(b, helpers...)
	var took []time.Duration
	answer := make([]byte, 10)
	for b.Loop() {
		for _, h := range helpers {
			if _, err := io.ReadFull(h.out, answer); err != nil {
				b.Fatal(err)
			}
			n, err := strconv.ParseInt(string(answer), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Duration(n))
		}
		for _, h := range helpers {
			_, _ = io.WriteString(h.in, "\n")
		}
	}
	report(b, took)
	for _, h := range helpers {
		h.finish(b)
	}
}

// BenchmarkContention has 100 processes withdraw as fast as they can, which keeps
// 50 of them waiting for each processor: the tail is theirs, not the lock's.
func BenchmarkContention(b *testing.B) {
	const processes, tokens = 100, 20_000
	for b.Loop() {
		var took []time.Duration
		begun := time.Now()
		for _, output := range many(b, processes, "drain", stateDir(b), tokens) {
			took = append(took, durations(b, output)...)
		}
		report(b, took)
		b.ReportMetric(float64(len(took))/time.Since(begun).Seconds(), "ops/s")
	}
}

func durations(b *testing.B, output string) []time.Duration {
	b.Helper()
	var took []time.Duration
	for line := range strings.Lines(output) {
		var begin, end, left int64
		if _, err := fmt.Sscan(line, &begin, &end, &left); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Duration(end-begin))
	}
	return took
}
