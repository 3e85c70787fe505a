package redisstore_test

import (
	"os/exec"
	"testing"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/internal/storetest"
	"github.com/retryx/retryx/budget/redisstore"
)

// Properties 1, 2, 5, 6, 8, 9, 41 to 44 and 59, as for files: the suite moves the
// server's time.
func TestSuite(t *testing.T) {
	for _, program := range programs() {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is not installed", program)
			}
			s := startProgram(t, program, 0)
			storetest.Run(t, func(t *testing.T) storetest.Bench {
				t.Helper()
				s.do(t, "FLUSHALL")
				store := s.open(t)
				store.UseClock()
				return storetest.Bench{Store: store, Set: func(us int64) {
					s.do(t, "HSET", redisstore.ClockKey, "s", us/1_000_000, "us", us%1_000_000)
				}}
			})
		})
	}
}

// Property 54 and 13: 60 clients share exactly the tokens there are.
func TestProperty54ManyClients(t *testing.T) {
	for _, program := range programs() {
		t.Run(program, func(t *testing.T) {
			s := startProgram(t, program, 0)
			clients := make([]budget.Store, 60)
			for i := range clients {
				clients[i] = s.open(t)
			}
			storetest.Crowd(t, clients, func(error) bool { return false })
		})
	}
}
