package exec

import (
	"slices"
	"syscall"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
)

// Label is how an invocation ended: a closed set of five.
type Label string

// The labels.
const (
	Success          Label = "success"
	RetryableFailure Label = "retryable_failure"
	HardFailure      Label = "hard_failure"
	Cancelled        Label = "cancelled"
	Abandoned        Label = "abandoned"
)

// Reason is why it ended so: an open set of snake_case words that are never
// renamed. A failed judgement has its class's name as reason, and a child may
// bring its own through the hint file.
type Reason string

// The reasons that the decision table gives.
const (
	Succeeded         Reason = "succeeded"
	Reconciled        Reason = "reconciled"
	OrphanedSuccess   Reason = "orphaned_success"
	CallerGone        Reason = "caller_gone"
	OutputClosed      Reason = "output_closed"
	BySignal          Reason = "signal"
	ByCancelToken     Reason = "cancel_token"
	ChildInterrupted  Reason = "child_interrupted"
	StartFailed       Reason = "start_failed"
	StoppedByChild    Reason = "stopped_by_child"
	AttemptsExhausted Reason = "attempts_exhausted"
	StdinConsumed     Reason = "stdin_consumed"
	DeadlineExceeded  Reason = "deadline_exceeded"
	ElapsedExhausted  Reason = "elapsed_exhausted"
	RetryAfterTooLong Reason = "retry_after_too_long"
	CircuitOpen       Reason = "circuit_open"
	BudgetDenied      Reason = "budget_denied"
	BudgetUnavailable Reason = "budget_unavailable"
	InputLost         Reason = "input_lost"
	OutputLost        Reason = "output_lost"
	InternalError     Reason = "internal_error"
	AmbiguousReason   Reason = Reason(classify.Ambiguous)
	CorrectableReason Reason = Reason(classify.Correctable)
)

const (
	attemptsKeptAtHead = 10
	attemptsKeptAtTail = 40
)

// Outcome is everything that one invocation leaves behind. Every field is
// meaningful on every path; zero values stand for "did not happen".
type Outcome struct {
	Label  Label
	Reason Reason
	Row    int // the row of the decision table that ended it

	Started, Ended time.Time
	Elapsed        time.Duration // monotonic, includes time inside attempts
	Slept          time.Duration // time spent waiting between attempts

	AttemptCount int
	AttemptLimit int       // attempts that there could be; each correction added one
	Attempts     []Attempt // all up to 50, else the first 10 and the last 40

	CancelSignal       syscall.Signal // the user's first signal, 0 when there was none
	CancelReason       string         // what the cancel token said
	CancelledInAttempt bool           // the cancel came while an attempt ran, not between two
	Killed             bool           // the last attempt had to be ended with KILL
	CutByCeiling       bool           // the deadline or the elapsed ceiling ended the last attempt

	Refusal    budget.Decision // the budget's or the breaker's answer, when that ended it
	StatedWait time.Duration   // the wait that was too long, for RetryAfterTooLong

	Corrections    []Correction
	Reconciliation *Reconciliation
	Warnings       []string
	Fault          error // what failed of retryx's own, for InternalError and where output was lost
}

// Last returns the last attempt, or nil when none ran.
func (o *Outcome) Last() *Attempt {
	if len(o.Attempts) == 0 {
		return nil
	}
	return &o.Attempts[len(o.Attempts)-1]
}

// Retries is how many attempts ran after the first.
func (o *Outcome) Retries() int { return max(0, o.AttemptCount-1) }

// warn adds warnings that are not there yet.
func (o *Outcome) warn(warnings ...string) {
	for _, w := range warnings {
		if !slices.Contains(o.Warnings, w) {
			o.Warnings = append(o.Warnings, w)
		}
	}
}

// Attempt is one run of the child, as it ended and as it was judged.
type Attempt struct {
	N        int
	Started  time.Time
	Elapsed  time.Duration
	Result   Result
	TimedOut bool
	Verdict  Verdict
	Delay    time.Duration // the wait that followed; negative when none did
}

// Result is how an attempt's process ended.
type Result struct {
	Code     int            // exit code; -1 when a signal ended it or it never started
	Signal   syscall.Signal // 0 when it exited
	StartErr *StartError    // non-nil when it could not be started

	Stderr, Stdout []byte // the last 64 KiB of what was captured; dropped once another attempt has ended
	TailTruncated  bool   // more was written than the tails hold
	StdinConsumed  bool   // the next attempt would find its input used up
	StdinErr       error  // why it could not be kept for the next attempt, though that was asked for
	StdoutPartial  bool   // a failed attempt's output stands where the next one's will follow
	Warnings       []string
}

// StartError is a command that could not be started.
type StartError struct {
	Err       error
	Status    int  // 127 not found, 126 anything else
	Transient bool // the system was short of something: worth another attempt
}

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// Verdict is the judgement over one attempt.
type Verdict struct {
	classify.Verdict

	Succeeded bool
	Nested    bool  // a nested retryx reported its own outcome
	Counted   bool  // and told the breaker of it that this run would tell
	Stop      *Stop // the child itself said that nobody should go on
}

// Stop is an order of the child not to retry: stop=true in its hint file, or
// the outcome of a nested retryx that was refused or failed for good.
type Stop struct {
	Label  Label
	Reason Reason
}

// Final reports whether a nested retryx that ended so is not to be run again:
// another attempt would meet the same refusal, or was ruled out where more was
// known.
func (s Stop) Final() bool {
	switch s.Label {
	case HardFailure, Cancelled, Abandoned:
		return true
	case RetryableFailure:
		return s.Reason == BudgetDenied || s.Reason == BudgetUnavailable || s.Reason == CircuitOpen
	case Success:
	}
	return false
}

// Correction is one answer of the corrector.
type Correction struct {
	After int // the attempt that it followed
	Argv  []string
	Err   string // why it was not used; empty when it was
}

// Reconciliation is the answer of the reconcile command.
type Reconciliation struct {
	After  int
	Answer Answer
	Exit   int // its exit code, -1 when it had to be ended
}

// Answer is what the reconcile command found out.
type Answer int

// The answers.
const (
	NotAsked   Answer = iota
	Happened          // exit 0: the write did happen
	DidNotTake        // exit 1: it did not
	Unclear           // anything else
)

// keep appends a to the list that an outcome holds. So that any number of
// attempts costs bounded memory, it drops from the middle, and holds the tails
// of the last attempt only.
func keep(list []Attempt, a Attempt) []Attempt {
	if n := len(list); n > 0 {
		list[n-1].Result.Stderr, list[n-1].Result.Stdout = nil, nil
	}
	if len(list) < attemptsKeptAtHead+attemptsKeptAtTail {
		return append(list, a)
	}
	copy(list[attemptsKeptAtHead:], list[attemptsKeptAtHead+1:])
	list[len(list)-1] = a
	return list
}
