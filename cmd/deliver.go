package cmd

// What was kept back of the command's output is passed on when the run is over.
// That takes as long as its reader wants: a pager may stay open for hours. A
// signal ends it, as it ends any program that writes to a pipe, but for the
// outcome that follows. When the run had been cancelled already, or nobody waits
// for it, a reader who takes nothing for stderrPatience ends it too.

import (
	"syscall"
	"time"

	"github.com/retryx/retryx/exec"
)

// deliver passes on what was kept back, and tells in the outcome what was lost.
func deliver(all []delivery, o *exec.Outcome, heard signals) {
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
				o.FailDelivery(err)
			}
			return
		case <-taken:
		case <-patience:
			o.GiveUpDelivery()
			return
		case sig := <-heard.cancels:
			if s, ok := sig.(syscall.Signal); ok {
				o.InterruptDelivery(s)
				return
			}
		case sig := <-heard.others:
			if sig == syscall.SIGTSTP {
				suspend()
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
