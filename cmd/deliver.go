package cmd

// What was kept back of the command's output is passed on when the run is over.
// That takes as long as its reader wants: a pager may stay open for hours. A
// signal ends it, as it ends any program that writes to a pipe, but for the
// outcome that follows. When the run had been cancelled already, or nobody waits
// for it, a reader who takes nothing for stderrPatience ends it too.

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/retryx/retryx/exec"
)

// deliver passes on what was kept back, and tells in the outcome what was lost.
func deliver(all []delivery, o *exec.Outcome, signals <-chan os.Signal) {
	if len(all) == 0 {
		return
	}
	done, taken := make(chan error, 1), make(chan struct{}, 1)
	go func() { done <- passOn(all, taken) }() // a stuck one ends with the process
	var patience <-chan time.Time
	for {
		if o.Label == exec.Cancelled || o.Label == exec.Abandoned {
			patience = time.NewTimer(stderrPatience).C
		}
		select {
		case err := <-done:
			if err != nil {
				lose(o, err)
			}
			return
		case <-taken:
		case <-patience:
			o.Warnings = append(o.Warnings, "output_lost: nobody took all of the command's output")
			return
		case sig := <-signals:
			if s, ok := sig.(syscall.Signal); ok && interrupted(o, s) {
				return
			}
		}
	}
}

// passOn returns the first loss that nobody knows of.
func passOn(all []delivery, taken chan<- struct{}) error {
	progress := func() {
		select {
		case taken <- struct{}{}:
		default:
		}
	}
	var lost error
	for _, d := range all {
		if err := d.spool.CopyTo(d.to, progress); err != nil && !d.spare && lost == nil {
			lost = err
		}
	}
	return lost
}

// interrupted takes in a signal that came while output was passed on. It reports
// whether that ended it.
func interrupted(o *exec.Outcome, sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
	case syscall.SIGTSTP:
		suspend()
		return false
	default:
		return false
	}
	o.Warnings = append(o.Warnings, "output_lost: a signal came before all of the command's output was passed on")
	if o.Label != exec.Cancelled {
		o.Label, o.Reason, o.CancelSignal = exec.Cancelled, exec.BySignal, sig
		o.CancelledInAttempt = false
	}
	return true
}

// lose turns a run whose output could not be delivered into what it is.
func lose(o *exec.Outcome, err error) {
	o.Warnings = append(o.Warnings, "output_lost: pass on the command's output: "+err.Error())
	switch {
	case o.Label == exec.Cancelled: // that came first
	case errors.Is(err, syscall.EPIPE):
		o.Label, o.Reason = exec.Abandoned, exec.OutputClosed
	case o.Label == exec.Success:
		o.Label, o.Reason, o.Fault = exec.HardFailure, outputLost, err
	}
}

// outputLost is the reason of a success whose output could not be passed on.
const outputLost exec.Reason = "output_lost"

// outputLostRule names the judgement of an attempt whose output could not be
// kept, whatever else became of it.
const outputLostRule = "output/lost"
