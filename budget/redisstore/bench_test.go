package redisstore_test

import (
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/redisstore"
)

// BenchmarkWithdraw is one decision: by 1, 50 and 100 clients, on a connection that
// stays and on a new one each. It reports decisions a second, and how long the
// median and the slowest hundredth took.
func BenchmarkWithdraw(b *testing.B) {
	for _, clients := range []int{1, 50, 100} {
		for _, fresh := range []bool{false, true} {
			for _, budgets := range []int{1, 50} {
				if budgets > clients {
					continue
				}
				name := fmt.Sprintf("clients=%d/budgets=%d/fresh=%v", clients, budgets, fresh)
				b.Run(name, func(b *testing.B) { decisions(b, clients, budgets, fresh) })
			}
		}
	}
}

func decisions(b *testing.B, clients, budgets int, fresh bool) {
	b.Helper()
	if _, err := exec.LookPath(programs()[0]); err != nil {
		b.Skipf("%s is not installed", programs()[0])
	}
	s := startServer(b)
	took := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	var late atomic.Int64
	begun := time.Now()
	for i := range clients {
		wg.Go(func() {
			store, err := redisstore.Open(s.url(), redisstore.Credentials{})
			if err != nil {
				b.Error(err)
				return
			}
			defer func() { store.Close() }()
			a := fixed(fmt.Sprintf("b%d", i%budgets), budget.MaxCapacity)
			for range max(b.N/clients, 1) {
				at := time.Now()
				if _, err := store.Withdraw(b.Context(), a, 0); err != nil {
					late.Add(1) // the machine is too busy for its limits; the store is used up
					store.Close()
					if store, err = redisstore.Open(s.url(), redisstore.Credentials{}); err != nil {
						b.Error(err)
						return
					}
					continue
				}
				took[i] = append(took[i], time.Since(at))
				if fresh {
					store.Close()
				}
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begun)
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) == 0 {
		b.Fatal("no decision was taken in time")
	}
	b.ReportMetric(float64(late.Load()), "late")
	b.ReportMetric(float64(len(all))/elapsed.Seconds(), "decisions/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}
