package storetest

import (
	"testing"

	"github.com/retryx/retryx/budget"
)

// Crowd is property 13, 14, 15 and 20: clients of one place that begin at once,
// without a record, get exactly the tokens there are, each with a balance of its
// own. Every store must lead to the same records; busy says which errors mean that
// nothing has happened and that the client may come again.
func Crowd(t *testing.T, clients []budget.Store, busy func(error) bool) {
	t.Helper()
	const capacity = 500
	a := fixed("crowd", capacity)
	granted, failures := drain(t, clients, a, busy)
	for _, err := range failures {
		t.Errorf("Withdraw() = %v, want nil", err)
	}
	seen := make([]bool, capacity)
	for _, left := range granted {
		if seen[left] {
			t.Errorf("two grants left %d tokens", left)
		}
		seen[left] = true
	}
	if len(granted) != capacity {
		t.Errorf("%d clients got %d tokens, want %d", len(clients), len(granted), capacity)
	}
	r, found, err := clients[0].Peek(t.Context(), a)
	if err != nil || !found || r.Counters.Granted != capacity || r.Counters.Denied != uint64(len(clients)) || r.Bucket.Tokens != 0 {
		t.Errorf("Peek() = %+v, %v, %v, want %d granted, %d denied, none left", r, found, err, capacity, len(clients))
	}
}

// drain lets every client withdraw until it is refused. It returns what each
// grant left, in tokens.
func drain(t *testing.T, clients []budget.Store, a budget.Account, busy func(error) bool) (granted []int, failures []error) {
	t.Helper()
	type result struct {
		left []int
		err  error
	}
	start, results := make(chan struct{}), make(chan result)
	for i, s := range clients {
		go func() {
			<-start
			var r result
			for op := uint64(i) << 32; ; {
				op++
				answer, err := s.Withdraw(t.Context(), a, op)
				if busy(err) {
					continue
				}
				if err != nil || !answer.Granted {
					r.err = err
					break
				}
				r.left = append(r.left, int(answer.Balance.Tokens/budget.Token))
			}
			results <- r
		}()
	}
	close(start)
	for range clients {
		r := <-results
		granted = append(granted, r.left...)
		if r.err != nil {
			failures = append(failures, r.err)
		}
	}
	return granted, failures
}
