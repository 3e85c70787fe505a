package budget

import (
	"context"
	"errors"
)

// The kinds of store, as outcomes name them.
const (
	KindFile   = "file"
	KindRedis  = "redis"
	KindMemory = "memory"
)

// ErrUnusable marks errors of a place that cannot be used at all: no home, no
// permission, read-only, remote without leave, not ours. Every other error of a
// store is a failure in use: a lock that took too long, a full disk, a network.
var ErrUnusable = errors.New("store cannot be used")

// Space keeps accounts of different sorts apart; names never collide across
// spaces.
type Space int

// The spaces.
const (
	Named     Space = iota // budgets that have a name, explicit or a tool's
	Runs                   // one account per run, named by the run's id
	Fallbacks              // what stands in for a shared store that cannot be reached
)

// Account is one budget in a store.
type Account struct {
	Space  Space
	Name   string // a budget's name, or in Runs any run id
	Params Params // what a record is made with if there is none; a stored record's own parameters win
}

// Answer is what a store says after an operation.
type Answer struct {
	Granted bool        // Withdraw, Ask: yes
	Balance Balance     // after the operation
	Permit  Permit      // Ask
	Breaker BreakerView // after the operation
	Damaged string      // not empty: the record was damaged and restarted at 0 tokens; says where the copy is
}

// Settling is what an invocation leaves behind when it has ended.
type Settling struct {
	Bonus   bool        // deposit the bonus once
	Breaker bool        // Result counts; otherwise Rule and Result are ignored
	Release bool        // give the lease of Result.Nonce back instead of counting Result
	Rule    BreakerRule // the breaker's rule
	Result  Result
}

// A Store keeps accounts for many processes at once.
//
// Each call is one decision: it reads, credits the time since the last write by
// the store's own clock, applies one method of Record, and writes, and nobody
// sees the middle. Calls return at once when the decision can be taken; they
// wait for other processes only briefly and never after ctx has ended. An
// operation that returned an error may or may not have happened, so the caller
// never repeats it: a token that was lost is the safe side.
//
// A missing record is a full bucket with a closed, clean breaker, made when
// there is something to write.
//
// op is a random number that names one call. A store whose transport may repeat
// a request remembers the last ones and answers a repeated op as before; others
// ignore it.
type Store interface {
	// Kind is KindFile or KindRedis.
	Kind() string
	// Withdraw takes one token, or changes nothing but the refill and a counter.
	Withdraw(ctx context.Context, a Account, op uint64) (Answer, error)
	// Refund puts one token back.
	Refund(ctx context.Context, a Account, op uint64) (Answer, error)
	// Configure writes the given parameters if they differ, settling the time
	// until now at the old rate and never adding tokens. A missing record is
	// made, with the given parameters and full.
	Configure(ctx context.Context, a Account, c Change) (Answer, error)
	// Ask asks the breaker; Answer.Granted repeats Permit.Granted.
	Ask(ctx context.Context, a Account, rule BreakerRule, nonce uint64) (Answer, error)
	// Settle deposits the bonus and tells the breaker. Where that would change
	// nothing worth keeping (full bucket, clean breaker) nothing is written.
	Settle(ctx context.Context, a Account, s Settling, op uint64) (Answer, error)
	// Peek reads an account as it stands now and writes nothing; found is false
	// when there is no record.
	Peek(ctx context.Context, a Account) (r Record, found bool, err error)
	// List returns the names in a space, sorted.
	List(ctx context.Context, s Space) ([]string, error)
	// Reset fills the bucket and closes the breaker; parameters stay.
	Reset(ctx context.Context, a Account) error
}

// MarkUnusable returns err, marked so that errors.Is finds ErrUnusable. The
// text stays as it is.
func MarkUnusable(err error) error { return unusableError{err} }

type unusableError struct{ err error }

func (e unusableError) Error() string   { return e.err.Error() }
func (e unusableError) Unwrap() []error { return []error{e.err, ErrUnusable} }

// Unusable returns a store of the given kind whose every call fails with err,
// marked ErrUnusable: the state directory has no place, the address is malformed.
func Unusable(kind string, err error) Store {
	return unusable{kind: kind, err: MarkUnusable(err)}
}

type unusable struct {
	kind string
	err  error
}

func (u unusable) Kind() string { return u.kind }

func (u unusable) Withdraw(context.Context, Account, uint64) (Answer, error) {
	return Answer{}, u.err
}

func (u unusable) Refund(context.Context, Account, uint64) (Answer, error) { return Answer{}, u.err }

func (u unusable) Configure(context.Context, Account, Change) (Answer, error) {
	return Answer{}, u.err
}

func (u unusable) Ask(context.Context, Account, BreakerRule, uint64) (Answer, error) {
	return Answer{}, u.err
}

func (u unusable) Settle(context.Context, Account, Settling, uint64) (Answer, error) {
	return Answer{}, u.err
}

func (u unusable) Peek(context.Context, Account) (Record, bool, error) {
	return Record{}, false, u.err
}

func (u unusable) List(context.Context, Space) ([]string, error) { return nil, u.err }

func (u unusable) Reset(context.Context, Account) error { return u.err }
