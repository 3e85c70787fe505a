package cmd

// The table of exit statuses over its whole domain. The rows below restate what
// the manual promises, each by itself: every end of a run must fit exactly one
// of them, in whatever order they are read, and every row must be met.

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// finish is one end of a run.
type finish struct {
	label     exec.Label
	reason    exec.Reason
	last      *exec.Attempt // nil: none ran
	signal    syscall.Signal
	inAttempt bool // cancelled while an attempt ran
	killed    bool
	pid1      bool
	success   []int
}

func (f finish) String() string {
	last := "no attempt"
	if a := f.last; a != nil {
		last = fmt.Sprintf("code %d signal %d timed out %t start error %v", a.Result.Code, a.Result.Signal, a.TimedOut, a.Result.StartErr)
	}
	return fmt.Sprintf("%s/%s, %s, cancelled by %d in attempt %t, killed %t, pid1 %t, success %v",
		f.label, f.reason, last, f.signal, f.inAttempt, f.killed, f.pid1, f.success)
}

func (f finish) ending() ending {
	o := &exec.Outcome{
		Label: f.label, Reason: f.reason, CancelSignal: f.signal, CancelledInAttempt: f.inAttempt, Killed: f.killed,
	}
	if f.last != nil {
		o.Attempts, o.AttemptCount = []exec.Attempt{*f.last}, 1
	}
	ranges := make([]classify.Range, len(f.success))
	for i, n := range f.success {
		ranges[i] = classify.Range{Lo: n, Hi: n}
	}
	return endingOf(o, ranges, f.pid1)
}

// How the last attempt may have ended.
func (f finish) exited() bool    { return f.last != nil && !f.unstarted() && f.last.Result.Signal == 0 }
func (f finish) died() bool      { return f.last != nil && f.last.Result.Signal != 0 }
func (f finish) unstarted() bool { return f.last != nil && f.last.Result.StartErr != nil }
func (f finish) failed() bool {
	return f.label == exec.HardFailure || f.label == exec.RetryableFailure
}
func (f finish) byUser() bool { return f.label == exec.Cancelled && f.signal != 0 }

// stopped are the ends after an attempt that are nobody's failure and no
// signal's of ours: by token, by an abandoning caller, by a nested cancel.
func (f finish) stopped() bool {
	return f.last != nil && f.signal == 0 && f.reason != exec.OrphanedSuccess && f.reason != exec.ChildInterrupted &&
		(f.label == exec.Cancelled || f.label == exec.Abandoned)
}

// endedByUs is whether retryx had to end the last attempt because nobody wanted
// it any more: not because of a limit of its own, which is 124.
func (f finish) endedByUs() bool {
	if f.label == exec.Cancelled {
		return f.died() && f.inAttempt
	}
	return f.died() && f.killed && !f.last.TimedOut
}

// dies is death by a signal, where that can be shown.
func (f finish) dies(s syscall.Signal) ending {
	e := ending{status: 128 + int(s)}
	if s != syscall.SIGQUIT && !f.pid1 {
		e.die = s
	}
	return e
}

func status(n int) ending { return ending{status: n} }

// failing is the status n of a failure, which never looks like a success.
func (f finish) failing(n int) ending {
	if n == 0 || slices.Contains(f.success, n) {
		return status(1)
	}
	return status(n)
}

// promise is one row of the contract's table.
type promise struct {
	name string
	when func(f finish) bool
	want func(f finish) ending
}

func promises() []promise {
	code := func(f finish) ending { return status(f.last.Result.Code) }
	signalled := func(f finish) ending { return status(128 + int(f.last.Result.Signal)) }
	constant := func(n int) func(finish) ending { return func(finish) ending { return status(n) } }
	failure := func(n int) func(finish) ending { return func(f finish) ending { return f.failing(n) } }
	started := func(f finish) bool {
		return f.failed() && f.reason != exec.InternalError && !f.unstarted() && f.last != nil
	}
	return []promise{
		{"retryx itself failed", func(f finish) bool { return f.reason == exec.InternalError }, constant(125)},
		{"success", func(f finish) bool { return f.reason == exec.Succeeded }, code},
		{"a success that nobody waits for", func(f finish) bool { return f.reason == exec.OrphanedSuccess }, code},
		{"the write happened", func(f finish) bool { return f.reason == exec.Reconciled }, constant(0)},

		{"a ceiling passed before the first", func(f finish) bool {
			return f.last == nil && (f.reason == exec.DeadlineExceeded || f.reason == exec.ElapsedExhausted)
		}, failure(124)},
		{"refused before the first", func(f finish) bool {
			return f.last == nil && (f.reason == exec.CircuitOpen || f.reason == exec.ByCancelToken)
		}, failure(75)},

		{"not started", func(f finish) bool { return f.failed() && f.unstarted() && f.reason != exec.InternalError }, func(f finish) ending { return f.failing(f.last.Result.StartErr.Status) }},
		{"timed out", func(f finish) bool { return started(f) && f.last.TimedOut }, failure(124)},
		{"failed by a signal", func(f finish) bool { return started(f) && !f.last.TimedOut && f.died() }, func(f finish) ending { return f.failing(128 + int(f.last.Result.Signal)) }},
		{"failed", func(f finish) bool { return started(f) && !f.last.TimedOut && f.exited() }, func(f finish) ending { return f.failing(f.last.Result.Code) }},

		{"cancelled, the child exited", func(f finish) bool { return f.byUser() && f.inAttempt && f.exited() && !f.killed }, code},
		{"cancelled, no child or none that exited", func(f finish) bool {
			return f.byUser() && (!f.inAttempt || !f.exited() || f.killed)
		}, func(f finish) ending { return f.dies(f.signal) }},

		{"the child's user interrupted it", func(f finish) bool { return f.reason == exec.ChildInterrupted && f.died() }, func(f finish) ending { return f.dies(f.last.Result.Signal) }},
		{"the child says 130", func(f finish) bool { return f.reason == exec.ChildInterrupted && f.exited() }, code},

		{"stopped, had to be ended", func(f finish) bool { return f.stopped() && f.endedByUs() }, constant(143)},
		{"stopped after a timeout", func(f finish) bool { return f.stopped() && !f.endedByUs() && !f.unstarted() && f.last.TimedOut }, constant(124)},
		{"stopped after a signal", func(f finish) bool { return f.stopped() && !f.endedByUs() && f.died() && !f.last.TimedOut }, signalled},
		{"stopped after an exit", func(f finish) bool { return f.stopped() && f.exited() && !f.last.TimedOut }, code},
		{"stopped, never started", func(f finish) bool { return f.stopped() && f.unstarted() }, func(f finish) ending { return status(f.last.Result.StartErr.Status) }},
	}
}

// lasts is every kind of last attempt.
func lasts() []*exec.Attempt {
	all := []*exec.Attempt{nil}
	for _, timedOut := range []bool{false, true} {
		for _, code := range []int{0, 1, 3, 124, 130, 143, 255} {
			all = append(all, &exec.Attempt{TimedOut: timedOut, Result: exec.Result{Code: code}})
		}
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGPIPE, syscall.SIGSEGV} {
			all = append(all, &exec.Attempt{TimedOut: timedOut, Result: exec.Result{Code: -1, Signal: s}})
		}
	}
	for _, n := range []int{126, 127} {
		all = append(all, &exec.Attempt{Result: exec.Result{Code: -1, StartErr: &exec.StartError{Err: syscall.ENOENT, Status: n}}})
	}
	return all
}

// finishes is every end that a run can have.
func finishes() []finish {
	ends := []finish{
		{label: exec.Success, reason: exec.Succeeded},
		{label: exec.Success, reason: exec.Reconciled},
		{label: exec.Abandoned, reason: exec.OrphanedSuccess},
		{label: exec.Abandoned, reason: exec.CallerGone},
		{label: exec.Abandoned, reason: exec.OutputClosed},
		{label: exec.Cancelled, reason: exec.BySignal},
		{label: exec.Cancelled, reason: exec.ByCancelToken},
		{label: exec.Cancelled, reason: exec.ChildInterrupted},
		{label: exec.HardFailure, reason: exec.StartFailed},
		{label: exec.HardFailure, reason: exec.StoppedByChild},
		{label: exec.HardFailure, reason: exec.StdinConsumed},
		{label: exec.HardFailure, reason: exec.AmbiguousReason},
		{label: exec.HardFailure, reason: "permanent"},
		{label: exec.HardFailure, reason: exec.OutputLost},
		{label: exec.HardFailure, reason: exec.InputLost},
		{label: exec.HardFailure, reason: exec.InternalError},
		{label: exec.RetryableFailure, reason: exec.AttemptsExhausted},
		{label: exec.RetryableFailure, reason: exec.DeadlineExceeded},
		{label: exec.RetryableFailure, reason: exec.ElapsedExhausted},
		{label: exec.RetryableFailure, reason: exec.RetryAfterTooLong},
		{label: exec.RetryableFailure, reason: exec.CircuitOpen},
		{label: exec.RetryableFailure, reason: exec.BudgetDenied},
		{label: exec.RetryableFailure, reason: exec.BudgetUnavailable},
	}
	var all []finish
	for _, f := range ends {
		for _, f.last = range lasts() {
			for _, f.signal = range []syscall.Signal{0, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
				for bits := range 8 {
					f.inAttempt, f.killed, f.pid1 = bits&1 != 0, bits&2 != 0, bits&4 != 0
					for _, f.success = range [][]int{{0}, {0, 3}, {3}, {0, 75, 124, 126, 127, 137, 139}} {
						if f.possible() {
							all = append(all, f)
						}
					}
				}
			}
		}
	}
	return all
}

// possible leaves out what no run can bring together.
func (f finish) possible() bool {
	byOwnSignal := f.label == exec.Cancelled && f.reason == exec.BySignal
	beforeFirst := []exec.Reason{exec.BySignal, exec.ByCancelToken, exec.DeadlineExceeded, exec.ElapsedExhausted, exec.CircuitOpen, exec.InternalError}
	switch {
	case f.last == nil && (f.inAttempt || f.killed || !slices.Contains(beforeFirst, f.reason)):
	case f.last == nil && f.reason == exec.BySignal && f.signal == 0: // only a nested one says so without a signal of ours
	case f.signal != 0 && !byOwnSignal: // the first row of the decision table
	case f.inAttempt && f.label != exec.Cancelled:
	case f.inAttempt && f.reason == exec.ChildInterrupted:
	case f.inAttempt && f.reason == exec.BySignal && f.signal == 0:
	case f.inAttempt && f.unstarted():
	case f.killed && !f.died(): // it is said of a death alone
	case (f.reason == exec.Succeeded || f.reason == exec.OrphanedSuccess) && !f.succeeded():
	case f.reason == exec.ChildInterrupted && (f.last.TimedOut || !interruptedItself(f.last)):
	case f.reason == exec.StartFailed && !f.unstarted():
	default:
		return true
	}
	return false
}

// succeeded is whether the last attempt did what makes a run a success.
func (f finish) succeeded() bool {
	return f.exited() && !f.last.TimedOut && slices.Contains(f.success, f.last.Result.Code)
}

func interruptedItself(a *exec.Attempt) bool {
	return a.Result.Signal == syscall.SIGINT || a.Result.Code == 130
}

func TestEveryEndHasOneStatus(t *testing.T) {
	t.Parallel()
	rows := promises()
	met := make([]int, len(rows))
	all := finishes()
	for _, f := range all {
		var fitting []int
		for i, row := range rows {
			if row.when(f) {
				fitting = append(fitting, i)
				met[i]++
			}
		}
		if len(fitting) != 1 {
			t.Fatalf("%v fits the rows %v, want exactly one", f, fitting)
		}
		row := rows[fitting[0]]
		if got, want := f.ending(), row.want(f); got != want {
			t.Errorf("endingOf(%v) = %+v, want %+v: %s", f, got, want, row.name)
		}
		if failure := f.failed() || f.reason == exec.InternalError; failure && f.ending().status == 0 {
			t.Errorf("endingOf(%v) = 0, want that no failure ends so", f)
		}
	}
	for i, n := range met {
		if n == 0 {
			t.Errorf("no end of a run fits the row %q", rows[i].name)
		}
	}
	t.Logf("%d ends", len(all))
}
