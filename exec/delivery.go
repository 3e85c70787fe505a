package exec

// What a run becomes whose output was kept back and could not all be passed on.
// A cancel stands against everything that comes after it. A failure stays what it
// was, unless nobody is there to read of it or a signal comes.

import (
	"errors"
	"syscall"
)

// InterruptDelivery takes in that sig, one that cancels, came before all of the
// output was passed on.
func (o *Outcome) InterruptDelivery(sig syscall.Signal) {
	o.warn("output_lost: a signal came before all of the command's output was passed on")
	if o.Label == Cancelled {
		return
	}
	o.Label, o.Reason, o.Row = Cancelled, BySignal, 1
	o.CancelSignal, o.CancelledInAttempt = sig, false
}

// GiveUpDelivery takes in that nobody takes the rest of the output.
func (o *Outcome) GiveUpDelivery() {
	o.warn("output_lost: nobody took all of the command's output")
}

// FailDelivery takes in the error of passing the output on: EPIPE when its
// reader is gone.
func (o *Outcome) FailDelivery(err error) {
	o.warn("output_lost: pass on the command's output: " + err.Error())
	switch {
	case o.Label == Cancelled:
	case errors.Is(err, syscall.EPIPE):
		o.Label, o.Reason, o.Row = Abandoned, OutputClosed, 4
	case o.Label == Success:
		o.Label, o.Reason, o.Row, o.Fault = HardFailure, OutputLost, 0, err
	}
}
