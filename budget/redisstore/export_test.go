package redisstore

import (
	"strings"

	"github.com/retryx/retryx/budget"
)

// ClockKey is the hash whose fields s and us are the time for a store under
// UseClock.
const ClockKey = "test:clock"

// UseClock makes the store's script take the time from ClockKey.
func (s *Store) UseClock() {
	s.connection.script = strings.Replace(decide, "redis.call('TIME')", "redis.call('HMGET', '"+ClockKey+"', 's', 'us')", 1)
}

// RunKept is how long a run's record is kept.
const RunKept = runKept

// KeyOf is the key of an account.
func KeyOf(a budget.Account) string { return keyOf(a) }

// HasConnection reports whether anything was dialled, or was about to be.
func (s *Store) HasConnection() bool { return s.connection.client != nil }

// Patient makes the limits longer, for tests that are not about time: the
// machine may be busy.
func (s *Store) Patient() { s.connection.stretch = 30 }
