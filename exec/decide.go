package exec

// The decision table. Order is the meaning: the first row that matches wins.
//
//	 1  cancelled                                  stop  cancelled: signal, cancel_token
//	 2  succeeded, caller gone                     stop  abandoned: orphaned_success
//	 3  succeeded                                  stop  success: succeeded
//	 4  caller gone, or child died of SIGPIPE      stop  abandoned: caller_gone, output_closed
//	 5  child alone died of SIGINT or exited 130   stop  cancelled: child_interrupted
//	 6  could not be started, for good             stop  hard_failure: start_failed
//	 7  the child said stop, or its class is not   stop, correct or reconcile
//	    in the retry set                                 hard_failure: the class's name
//	 8  attempts = max                             stop  retryable_failure: attempts_exhausted
//	 9  stdin is used up                           stop  hard_failure: stdin_consumed
//	10  a ceiling has passed                       stop  retryable_failure: deadline_exceeded, elapsed_exhausted
//	11  the stated wait is too long                stop  retryable_failure: retry_after_too_long
//	12  the wait would pass a ceiling              stop  as 10
//	13  breaker open                               stop  retryable_failure: circuit_open
//	14  budget refused or unavailable              stop  retryable_failure: budget_denied, budget_unavailable
//	15  otherwise                                  pay, wait, check 1, 4, 10 and 13 again, retry
//
// Before the first attempt only rows 1, 10 and 13 apply: a vanished caller
// never refuses a first attempt. Rows 1-12 come before the budget is asked, so
// a token is paid only for a retry that will follow.

import (
	"slices"
	"syscall"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
)

// Policy is what the user asked for. It is immutable during a run.
type Policy struct {
	MaxAttempts    int // at least 1, the first included
	Backoff        Backoff
	MaxRetryAfter  time.Duration // a stated wait longer than this is not waited
	MaxElapsed     time.Duration // 0: no ceiling; counts from the invocation's start
	Deadline       time.Time     // zero: none
	Timeout        time.Duration // of one attempt; 0: none
	KillAfter      time.Duration // between TERM and KILL
	MinAttempt     time.Duration // a retry with less time left is not started
	RetryOn        []classify.Class
	MaxCorrections int
	Reconcile      bool // a reconcile command is there to be asked
	Correct        bool // a corrector is there to be asked
	Orphan         OrphanMode
	EscalateAfter  time.Duration // between a repeated signal and KILL
}

// OrphanMode is what happens when the caller is gone.
type OrphanMode string

// The orphan modes.
const (
	OrphanStop   OrphanMode = "stop"   // no further attempt
	OrphanKill   OrphanMode = "kill"   // also end the running one
	OrphanIgnore OrphanMode = "ignore" // go on as if nothing had happened
)

// Point is where in a run a decision is taken.
type Point int

// The points.
const (
	BeforeFirst  Point = iota // nothing has run yet
	AfterAttempt              // an attempt has ended and was judged
	BeforeRetry               // the wait is over and the retry is paid
)

// CancelCause is what cancelled a run.
type CancelCause int

// The causes. NotCancelled is the zero value.
const (
	NotCancelled CancelCause = iota
	CancelledBySignal
	CancelledByToken
)

// Snapshot is everything that a decision depends on.
type Snapshot struct {
	Point       Point
	Cancelled   CancelCause
	CallerGone  bool
	Attempts    int // how many were started or tried
	Corrections int // how many of them followed a correction

	// The last attempt.
	Verdict       Verdict
	Signal        syscall.Signal
	Code          int
	StartErr      *StartError
	StdinConsumed bool

	// The clock, as read once for this decision. Without a ceiling the field
	// is NoCeiling.
	LeftElapsed  time.Duration
	LeftDeadline time.Duration
	Wait         time.Duration // what a retry would wait, jitter included

	Answer Answer           // of the reconcile command
	Grant  *budget.Decision // nil: not asked yet
}

// NoCeiling stands for the time left when there is no ceiling.
const NoCeiling = time.Duration(1<<63 - 1)

// Action is what to do next.
type Action int

// The actions.
const (
	StopNow   Action = iota // end with the decision's label and reason
	Start                   // run the first attempt, or the retry that was waited for
	Ask                     // ask the budget, then decide again
	Retry                   // wait, then decide again at BeforeRetry
	Reconcile               // ask the reconcile command, then decide again
	Correct                 // paid: ask the corrector, then run what it says
)

// Decision is one answer of the table.
type Decision struct {
	Action Action
	Row    int
	Label  Label
	Reason Reason
}

// Decide returns what the table says about s. It is pure: the same policy and
// snapshot always give the same decision.
func Decide(p Policy, s Snapshot) Decision {
	if d, ok := cancelled(s); ok {
		return d
	}
	if s.Point != AfterAttempt {
		return starting(s)
	}
	if d, ok := settled(s); ok {
		return d
	}
	correcting, d, ok := judged(p, s)
	if ok {
		return d
	}
	if d, ok := limited(p, s, correcting); ok {
		return d
	}
	if s.Grant == nil {
		return Decision{Action: Ask, Row: 15}
	}
	if d, ok := refused(*s.Grant); ok {
		return d
	}
	if correcting {
		return Decision{Action: Correct, Row: 15}
	}
	return Decision{Action: Retry, Row: 15}
}

func stop(row int, l Label, r Reason) (Decision, bool) {
	return Decision{Action: StopNow, Row: row, Label: l, Reason: r}, true
}

// cancelled is row 1.
func cancelled(s Snapshot) (Decision, bool) {
	switch s.Cancelled {
	case CancelledBySignal:
		return stop(1, Cancelled, BySignal)
	case CancelledByToken:
		return stop(1, Cancelled, ByCancelToken)
	case NotCancelled:
	}
	return Decision{}, false
}

// starting is what is looked at right before an attempt: rows 10 and 13, and
// row 4 as well when it is a retry.
func starting(s Snapshot) Decision {
	if s.Point == BeforeRetry && s.CallerGone {
		d, _ := stop(4, Abandoned, CallerGone)
		return d
	}
	if d, ok := passed(s); ok {
		return d
	}
	if s.Grant != nil && s.Grant.Refusal == budget.BreakerOpen {
		d, _ := stop(13, RetryableFailure, CircuitOpen)
		return d
	}
	return Decision{Action: Start, Row: 15}
}

// settled is rows 2 to 6: endings that no judgement of the failure can change.
func settled(s Snapshot) (Decision, bool) {
	switch {
	case s.Verdict.Succeeded && s.CallerGone:
		return stop(2, Abandoned, OrphanedSuccess)
	case s.Verdict.Succeeded:
		return stop(3, Success, Succeeded)
	case s.CallerGone:
		return stop(4, Abandoned, CallerGone)
	case s.Signal == syscall.SIGPIPE:
		return stop(4, Abandoned, OutputClosed)
	case s.Signal == syscall.SIGINT || s.Code == 128+int(syscall.SIGINT):
		return stop(5, Cancelled, ChildInterrupted)
	case s.StartErr != nil && !s.StartErr.Transient:
		return stop(6, HardFailure, StartFailed)
	}
	return Decision{}, false
}

// judged is row 7. correcting is true when the failure goes on to rows 9-15 as
// a correction, which has its own limit instead of row 8's. Nobody is asked to
// reconcile past a ceiling: then the retry set alone decides.
func judged(p Policy, s Snapshot) (correcting bool, d Decision, ok bool) {
	class := s.Verdict.Class
	ask := class == classify.Ambiguous && p.Reconcile
	_, late := passed(s)
	switch st := s.Verdict.Stop; {
	case st != nil:
		d, ok = stop(7, st.Label, st.Reason)
	case ask && s.Answer == NotAsked && !late:
		d, ok = Decision{Action: Reconcile, Row: 7}, true
	case ask && s.Answer == Happened:
		d, ok = stop(7, Success, Reconciled)
	case ask && s.Answer == DidNotTake:
	case ask && s.Answer == Unclear:
		d, ok = stop(7, HardFailure, AmbiguousReason)
	case class == classify.Correctable && p.Correct && s.Corrections < p.MaxCorrections:
		correcting = true
	case !slices.Contains(p.RetryOn, class):
		d, ok = stop(7, HardFailure, Reason(class))
	}
	return correcting, d, ok
}

// limited is rows 8 to 12.
func limited(p Policy, s Snapshot, correcting bool) (Decision, bool) {
	if !correcting && s.Attempts-s.Corrections >= p.MaxAttempts {
		return stop(8, RetryableFailure, AttemptsExhausted)
	}
	if s.StdinConsumed {
		return stop(9, HardFailure, StdinConsumed)
	}
	if d, ok := passed(s); ok {
		return d, true
	}
	left := min(s.LeftElapsed, s.LeftDeadline)
	if stated := s.Verdict.RetryAfter; !correcting && stated > 0 && (stated > p.MaxRetryAfter || stated > left) {
		return stop(11, RetryableFailure, RetryAfterTooLong)
	}
	wait := s.Wait
	if correcting {
		wait = 0
	}
	return beyond(12, s, wait, p.MinAttempt)
}

// passed is row 10.
func passed(s Snapshot) (Decision, bool) { return beyond(10, s, 0, 0) }

// beyond is rows 10 and 12: a ceiling has no room for a wait and an attempt. Of
// two such ceilings the deadline names the reason.
func beyond(row int, s Snapshot, wait, attempt time.Duration) (Decision, bool) {
	switch {
	case exceeds(s.LeftDeadline, wait, attempt):
		return stop(row, RetryableFailure, DeadlineExceeded)
	case exceeds(s.LeftElapsed, wait, attempt):
		return stop(row, RetryableFailure, ElapsedExhausted)
	}
	return Decision{}, false
}

// exceeds counts a wait that ends exactly at the ceiling: it leaves no time for
// an attempt. A wait of centuries is no reason to stop where nothing is a limit.
func exceeds(left, wait, attempt time.Duration) bool {
	return left != NoCeiling && (wait >= left || add(wait, attempt) > left)
}

// refused is rows 13 and 14. An answer that neither grants nor refuses is no
// grant: the question was cut short.
func refused(g budget.Decision) (Decision, bool) {
	switch g.Refusal {
	case budget.BreakerOpen:
		return stop(13, RetryableFailure, CircuitOpen)
	case budget.Denied:
		return stop(14, RetryableFailure, BudgetDenied)
	case budget.Unavailable:
		return stop(14, RetryableFailure, BudgetUnavailable)
	case budget.NotRefused:
	}
	if !g.Granted {
		return stop(14, RetryableFailure, BudgetUnavailable)
	}
	return Decision{}, false
}
