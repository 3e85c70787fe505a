package cmd

// Exit statuses. The last child's status passes through; codes of our own
// stand only where there is none, or where it would mislead:
//
//	0      success; also the --success-exit code that the child gave
//	75     refused before the first attempt: breaker open, cancel token set
//	124    retryx timed the last attempt out, or a ceiling passed before the first
//	125    retryx itself failed: usage, configuration, internal error
//	126    the command was found and could not be started
//	127    the command was not found
//	128+n  the child was killed by signal n
//
// A failure never ends in 0: a hard or retryable failure whose child gave 0 or
// a success code ends in 1. A cancel by signal ends as the shell would have
// seen it without retryx: the child's own exit, or death by the user's signal.

import (
	"syscall"

	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const (
	exitRefused  = 75
	exitTimedOut = 124
	exitOwn      = 125
	exitNotFound = 127
	exitSignal   = 128
)

// ending is how retryx itself ends.
type ending struct {
	status int            // as a shell shows it
	die    syscall.Signal // not 0: die by this signal, so that shells see it
}

// endingOf is the exit table. pid1 is true where dying by a signal is not
// possible, as the kernel protects the first process from it.
func endingOf(o *exec.Outcome, success []classify.Range, pid1 bool) ending {
	last := o.Last()
	switch {
	case o.Reason == exec.InternalError:
		return ending{status: exitOwn}
	case o.Label == exec.Success && o.Reason == exec.Reconciled:
		return ending{status: 0}
	case o.Label == exec.Success:
		return ending{status: last.Result.Code}
	case o.Label == exec.Cancelled && o.CancelSignal != 0:
		return cancelledEnding(o, pid1)
	case last == nil && (o.Reason == exec.DeadlineExceeded || o.Reason == exec.ElapsedExhausted):
		return ending{status: failed(exitTimedOut, success)}
	case last == nil:
		return ending{status: failed(exitRefused, success)}
	case o.Label == exec.Cancelled && o.Reason == exec.ChildInterrupted && last.Result.Signal != 0:
		return dyingBy(last.Result.Signal, pid1)
	case o.Label == exec.Cancelled && o.CancelledInAttempt && last.Result.Signal != 0,
		o.Label == exec.Abandoned && o.Killed && !last.TimedOut:
		return ending{status: exitSignal + int(syscall.SIGTERM)}
	case o.Label == exec.Cancelled, o.Label == exec.Abandoned:
		return ending{status: childStatus(last)}
	default:
		return ending{status: failed(childStatus(last), success)}
	}
}

// cancelledEnding is what the shell would have seen without retryx.
func cancelledEnding(o *exec.Outcome, pid1 bool) ending {
	last := o.Last()
	if last != nil && o.CancelledInAttempt && last.Result.Signal == 0 {
		return ending{status: last.Result.Code}
	}
	return dyingBy(o.CancelSignal, pid1)
}

func dyingBy(s syscall.Signal, pid1 bool) ending {
	e := ending{status: exitSignal + int(s)}
	// A Go program that gets QUIT back dumps its stacks and exits 2.
	if !pid1 && (s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP) {
		e.die = s
	}
	return e
}

// childStatus is the last child's exit as a shell shows it.
func childStatus(a *exec.Attempt) int {
	switch {
	case a.Result.StartErr != nil:
		return a.Result.StartErr.Status
	case a.TimedOut:
		return exitTimedOut
	case a.Result.Signal != 0:
		return exitSignal + int(a.Result.Signal)
	default:
		return a.Result.Code
	}
}

func failed(status int, success []classify.Range) int {
	if status == 0 || classify.Contains(success, status) {
		return 1
	}
	return status
}
