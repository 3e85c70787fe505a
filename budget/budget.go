// Package budget says what a retry costs and who pays.
//
// A budget is a token bucket that every invocation of retryx on a machine (or,
// with a shared store, in a fleet) draws from. First attempts are free; a retry
// costs one whole token from every budget that the invocation is subject to.
// Nobody ever waits for a token: a decision is immediate.
//
// Over any window T and over all processes, for decisions taken in the store:
//
//	retries granted - refunded <= C + R*T + b*successes
//
// The arithmetic (bucket.go, breaker.go) is pure: the caller brings the time.
package budget

import "time"

// Refusal is why a retry, or a first attempt, was not allowed.
type Refusal int

// The refusals. NotRefused is the zero value.
const (
	NotRefused  Refusal = iota
	Denied              // a bucket holds less than one whole token
	Unavailable         // a store failed and the policy in force is closed
	BreakerOpen         // the breaker is open, or half-open with its probe taken
)

// Decision answers one question: may this retry (or first attempt) run?
type Decision struct {
	Granted bool
	Refusal Refusal
	Budget  string        // the budget that refused, or on a grant the emptiest one
	Tokens  float64       // its balance in tokens, after the decision
	Cap     float64       // its capacity in tokens
	Next    time.Duration // until its next whole token; negative when it never comes
	Policy  string        // "", "closed", "local", "open" or "fallback": the policy that acted
	Detail  string        // one phrase on why a store was unavailable, for people
}

// Settlement says how an invocation ended, as far as budgets care.
type Settlement int

// The settlements. Ignored (cancelled, abandoned, hard failure, nothing ran, or a
// nested retryx has told the same breaker already) is the zero value.
const (
	Ignored   Settlement = iota // no bonus, the breaker does not count it
	Succeeded                   // deposits the bonus once, a success for the breaker
	Unpaid                      // a success that deposits nothing (a nested retryx already did)
	Failed                      // a failure for the breaker
)

// Status is one entry of an outcome's "budgets".
type Status struct {
	Name     string
	Store    string // "file", "redis"; "memory" while policy local acts
	Granted  int
	Denied   int
	Refunded int
	Tokens   float64
	Cap      float64
	Next     time.Duration // until the next whole token; 0 when one is there, negative when none ever comes
	Policy   string
	Known    bool // Tokens was read; otherwise it is the capacity, as of an untouched budget
}

// BreakerStatus is the breaker as an outcome shows it.
type BreakerStatus struct {
	Budget   string
	State    string // "closed", "open", "half_open"
	Failures int    // consecutive failures
	Retry    time.Duration
}
