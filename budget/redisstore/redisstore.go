// Package redisstore keeps budgets in Redis or Valkey, so that a fleet of
// machines shares them. A record is one hash, a decision is one script.
//
// Nothing is read, resolved or dialled before the first operation.
package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
)

// The store obeys these rules:
//
//   - A decision ends within Limit whatever the server does, a bonus alone
//     within BonusLimit: dialling, logging in and the script together.
//   - A failure of the server is sticky. After one, every call fails at once with the same
//     error, so that a server that answers nobody is waited for once.
//   - An operation whose reply was lost with its connection is sent once more
//     under the same name; the script remembers names, so nothing is decided
//     twice. One that timed out is not, and its outcome is not known.

// How long an operation may take.
const (
	Limit      = 300 * time.Millisecond
	BonusLimit = 100 * time.Millisecond
	ListLimit  = 2 * time.Second
)

// runKept is how long a run's record is kept after its last use.
const runKept = 7 * 24 * time.Hour

// Store is a budget.Store on a server. Make one with Open. It is not safe for
// concurrent use.
type Store struct {
	address     address
	credentials Credentials
	connection  connection
	failed      error // sticky
}

// Open returns a store on the server at the given address:
//
//	redis://[user[:password]@]host[:port][/db]
//	rediss://…                        the same over TLS
//	unix://[user[:password]@]/path[?db=N]
//
// Nothing but the address is looked at yet. The error does not repeat secrets.
func Open(where string, c Credentials) (*Store, error) {
	a, err := parse(where)
	if err != nil {
		return nil, err
	}
	return &Store{address: a, credentials: c, connection: connection{script: decide, stretch: 1}}, nil
}

// Kind returns budget.KindRedis.
func (*Store) Kind() string { return budget.KindRedis }

// Close closes the connection, if there is one. The next operation dials again.
func (s *Store) Close() { s.connection.close() }

// Withdraw implements budget.Store.
func (s *Store) Withdraw(ctx context.Context, a budget.Account, op uint64) (budget.Answer, error) {
	return s.decide(ctx, Limit, a, op, "withdraw")
}

// Refund implements budget.Store. A record that is gone is full, and stays gone.
func (s *Store) Refund(ctx context.Context, a budget.Account, op uint64) (budget.Answer, error) {
	return s.decide(ctx, Limit, a, op, "refund")
}

// Configure implements budget.Store. A record whose parameters are not the
// defaults is kept until somebody removes it.
func (s *Store) Configure(ctx context.Context, a budget.Account, c budget.Change) (budget.Answer, error) {
	a.Params = c.Apply(a.Params)
	return s.decide(ctx, Limit, a, 0, "configure", given(c.Capacity), given(c.Refill), given(c.Bonus))
}

// Ask implements budget.Store.
func (s *Store) Ask(ctx context.Context, a budget.Account, rule budget.BreakerRule, nonce uint64) (budget.Answer, error) {
	return s.decide(ctx, Limit, a, 0, "ask", breaker(rule, nonce)...)
}

// Settle implements budget.Store.
func (s *Store) Settle(ctx context.Context, a budget.Account, how budget.Settling, op uint64) (budget.Answer, error) {
	limit, result := BonusLimit, ""
	if how.Breaker {
		limit = Limit
		result = map[bool]string{true: "failed", false: "succeeded"}[how.Result.Failed]
		if how.Release {
			result = "release"
		}
	}
	bonus := 0
	if how.Bonus {
		bonus = 1
	}
	return s.decide(ctx, limit, a, op, "settle", append(breaker(how.Rule, how.Result.Nonce),
		how.Result.Generation, strconv.FormatFloat(how.Result.Dice, 'g', -1, 64), bonus, result)...)
}

// Peek implements budget.Store. Without a record it returns the one that would
// be made.
func (s *Store) Peek(ctx context.Context, a budget.Account) (budget.Record, bool, error) {
	r, err := s.ask(ctx, Limit, a, 0, "peek")
	if err != nil {
		return budget.Record{}, false, err
	}
	if r.damaged {
		return r.record, true, errDamaged
	}
	return r.record, !r.missing, nil
}

// Reset implements budget.Store. Without a record there is nothing to reset.
func (s *Store) Reset(ctx context.Context, a budget.Account) error {
	_, err := s.decide(ctx, Limit, a, 0, "reset")
	return err
}

// List implements budget.Store. It looks through the keys of the server, for at
// most ListLimit. Runs whose id does not fit a key are listed by its hash.
func (s *Store) List(ctx context.Context, space budget.Space) ([]string, error) {
	var names []string
	prefix := prefixOf(space) + "{"
	err := s.attempt(ctx, ListLimit, func(ctx context.Context) error {
		names = nil
		return s.connection.scan(ctx, s.address, s.credentials, prefix+"*}", func(key string) {
			name := strings.TrimSuffix(strings.TrimPrefix(key, prefix), "}")
			if fits(name) {
				names = append(names, name)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// decide takes a decision and turns the reply into an answer.
func (s *Store) decide(ctx context.Context, limit time.Duration, a budget.Account, op uint64, verb string, more ...any) (budget.Answer, error) {
	r, err := s.ask(ctx, limit, a, op, verb, more...)
	if err != nil {
		return budget.Answer{}, err
	}
	got := budget.Answer{Granted: r.granted, Balance: r.record.Balance(), Breaker: r.record.BreakerView()}
	if verb == "ask" {
		got.Permit = budget.Permit{Granted: r.granted}
		if r.granted {
			got.Permit.Generation, got.Permit.Leased = r.record.Breaker.Generation, r.leased
		} else {
			got.Permit.Retry = r.record.Breaker.Wait(r.record.Clock.Boot)
		}
	}
	if r.damaged {
		got.Damaged = "its fields are kept in the field \"damaged\" of the key " + keyOf(a)
	}
	return got, nil
}

// ask runs the script.
func (s *Store) ask(ctx context.Context, limit time.Duration, a budget.Account, op uint64, verb string, more ...any) (reply, error) {
	if op == 0 {
		op = rand.Uint64()
	}
	keep, defaults := int64(0), budget.Defaults()
	if a.Space == budget.Runs {
		keep = runKept.Milliseconds()
	}
	args := append([]any{
		verb, fmt.Sprintf("%016x", op), a.Params.Capacity, int64(a.Params.Refill), int64(a.Params.Bonus),
		defaults.Capacity, int64(defaults.Refill), int64(defaults.Bonus), keep,
	}, more...)
	var r reply
	err := s.attempt(ctx, limit, func(ctx context.Context) error {
		raw, err := s.connection.run(ctx, s.address, s.credentials, keyOf(a), args)
		if err != nil {
			return err
		}
		r, err = read(raw)
		return err
	})
	return r, err
}

// attempt does something with the server within the limit.
func (s *Store) attempt(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if s.failed != nil {
		return s.failed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.connection.stretched(limit))
	defer cancel()
	err := do(limited)
	if err == nil {
		return nil
	}
	s.connection.close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = explain(s.address, limit, err)
	if !errors.Is(err, errRecord) && !says(err, "WRONGTYPE") {
		s.failed = err
	}
	return err
}

func given[T ~int | ~int64](p *T) any {
	if p == nil {
		return ""
	}
	return int64(*p)
}

func breaker(rule budget.BreakerRule, nonce uint64) []any {
	return []any{rule.Threshold, micros(rule.Cooldown), micros(rule.Lease), strconv.FormatUint(nonce, 10)}
}

// micros rounds up: nothing ends early. What is beyond 2^53 the script cuts off.
func micros(d time.Duration) int64 {
	us := d.Microseconds()
	if d%time.Microsecond > 0 {
		us++
	}
	return us
}

func prefixOf(s budget.Space) string {
	switch s {
	case budget.Runs:
		return "retryx:v1:run:"
	case budget.Fallbacks:
		return "retryx:v1:fallback:"
	case budget.Named:
	}
	return "retryx:v1:"
}

// keyOf names an account's record. The name in braces is what a cluster picks
// the node by.
func keyOf(a budget.Account) string {
	name := a.Name
	if !fits(name) {
		sum := sha256.Sum256([]byte(name))
		name = "id-" + hex.EncodeToString(sum[:16])
	}
	return prefixOf(a.Space) + "{" + name + "}"
}

// fits reports whether a name can stand in a key as it is.
func fits(name string) bool {
	const longest = 128
	return name != "" && len(name) <= longest && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") == ""
}
