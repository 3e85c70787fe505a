package exec_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/exec"
)

func labels() []exec.Label {
	return []exec.Label{exec.Success, exec.RetryableFailure, exec.HardFailure, exec.Cancelled, exec.Abandoned}
}

// Of what a nested retryx says, refusals and whatever is nobody's to retry stop
// the one above.
func TestFinal(t *testing.T) {
	t.Parallel()
	refusals := map[exec.Reason]bool{exec.BudgetDenied: true, exec.BudgetUnavailable: true, exec.CircuitOpen: true}
	for _, label := range labels() {
		for _, reason := range []exec.Reason{
			exec.BudgetDenied, exec.BudgetUnavailable, exec.CircuitOpen, exec.AttemptsExhausted, exec.DeadlineExceeded,
			exec.ElapsedExhausted, exec.RetryAfterTooLong, "of_another_version",
		} {
			want := label == exec.HardFailure || label == exec.Cancelled || label == exec.Abandoned ||
				label == exec.RetryableFailure && refusals[reason]
			if got := (exec.Stop{Label: label, Reason: reason}).Final(); got != want {
				t.Errorf("Stop{%s, %s}.Final() = %t, want %t", label, reason, got, want)
			}
		}
	}
	if (exec.Stop{Label: "of_another_version"}).Final() {
		t.Error("Stop with an unknown label: Final() = true, want false")
	}
}

// What a loss of kept output makes of each outcome.
func TestDelivery(t *testing.T) {
	t.Parallel()
	type end struct {
		Label  exec.Label
		Reason exec.Reason
		Row    int
	}
	broken, full := &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, errors.New("disk full")
	interrupted, closed, lost := end{exec.Cancelled, exec.BySignal, 1}, end{exec.Abandoned, exec.OutputClosed, 4}, end{exec.HardFailure, exec.OutputLost, 0}
	for _, label := range labels() {
		was := end{label, "before", 7}
		unless := func(kept bool, then end) end {
			if kept {
				return was
			}
			return then
		}
		cancelled := label == exec.Cancelled
		for name, tt := range map[string]struct {
			happens func(*exec.Outcome)
			want    end
		}{
			"a signal":     {func(o *exec.Outcome) { o.InterruptDelivery(syscall.SIGTERM) }, unless(cancelled, interrupted)},
			"no reader":    {func(o *exec.Outcome) { o.FailDelivery(broken) }, unless(cancelled, closed)},
			"a full disk":  {func(o *exec.Outcome) { o.FailDelivery(full) }, unless(label != exec.Success, lost)},
			"no more time": {func(o *exec.Outcome) { o.GiveUpDelivery() }, was},
		} {
			o := &exec.Outcome{Label: was.Label, Reason: was.Reason, Row: was.Row, CancelledInAttempt: true}
			tt.happens(o)
			if diff := cmp.Diff(tt.want, end{o.Label, o.Reason, o.Row}); diff != "" {
				t.Errorf("%s after %s (-want +got):\n%s", name, label, diff)
			}
			if len(o.Warnings) != 1 {
				t.Errorf("%s after %s: warnings = %q, want one", name, label, o.Warnings)
			}
			if inAttempt := tt.want != interrupted; o.CancelledInAttempt != inAttempt {
				t.Errorf("%s after %s: CancelledInAttempt = %t, want %t", name, label, o.CancelledInAttempt, inAttempt)
			}
		}
	}
}
