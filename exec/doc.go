// Package exec is the retry engine: it runs a command until it succeeds, or
// until the decision table says that another attempt is not worth it.
//
// One run goes through four steps, again and again:
//
//	start an attempt -> judge how it ended -> Decide -> wait
//
// Decide (decide.go) is the decision table, a pure function; backoff.go holds
// the delays, also pure; outcome.go holds what a run leaves behind, data only, and
// delivery.go what becomes of it when kept output cannot be passed on.
// Engine.Run (engine.go) is the only part with a clock: one goroutine and one
// select (await.go) over the process, signals, timers, the cancel token and the
// caller; the user's hooks (hook.go) are awaited in the same one. Only a question
// to the budget has a goroutine of its own, so that a signal ends its wait for a
// lock or for the network.
//
// The invariants that tests hold it to:
//
//   - an attempt never starts while another one lives, after a cancel, or
//     past a ceiling;
//   - a token is paid only for a retry that will follow; one whose retry never
//     started is refunded once;
//   - a signal ends a wait at that very instant;
//   - what came during an attempt decides over its result, what came after a
//     success was seen does not;
//   - every path ends in exactly one Outcome, and settles with the budget once.
//
// The package starts no process, opens no file and knows no flag: processes,
// budgets and judgement come in through the interfaces that it declares.
package exec
