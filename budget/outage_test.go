package budget_test

import (
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
)

// Property 12: in an outage of everything, however many calls a second there are,
// retries are what the bucket held and what came in, to the token: attempts per
// call are at most 1 + (C/T + R)/calls per second.
func TestSteadyStateOfAnOutage(t *testing.T) {
	const lasts, attempts = 10 * time.Minute, 4
	for _, perSecond := range []int{1, 10, 100} {
		m := newMemStore()
		calls, retries := 0, 0
		for at := time.Duration(0); at < lasts; at += time.Second / time.Duration(perSecond) {
			m.now = budget.Stamp{Domain: 1, Boot: second + int64(at), Wall: epoch + int64(at)}
			l := budget.Ledger{Store: m, Members: members("a")}
			l.Admit(t.Context())
			calls++
			for n := 1; n < attempts && l.Withdraw(t.Context()).Granted; n++ {
				retries++
			}
			l.Settle(t.Context(), budget.Failed)
		}
		if want := int(lasts.Seconds()) * perSecond; calls != want {
			t.Fatalf("there were %d calls, want %d", calls, want)
		}
		// 20 in the bucket, a tenth of a token a second; the last tenth of the last
		// token comes in after the last call.
		if most := 20 + int(lasts.Seconds())/10; retries > most || retries < most-1 {
			t.Errorf("%d calls a second for %v made %d retries, want %d, or one less", perSecond, lasts, retries, most)
		}
	}
}
