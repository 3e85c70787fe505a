package exec

import (
	"strings"
	"testing"
	"time"
)

// A deadline that still carries a monotonic reading is compared by it, and so
// does not pass while the machine sleeps. Nothing outside shows the difference
// before a machine does sleep.
func TestDeadlineIsWallTime(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	if !strings.Contains(deadline.String(), "m=") {
		t.Fatalf("%v has no monotonic reading: this test would prove nothing", deadline)
	}
	e := &Engine{Policy: Policy{Deadline: deadline}}
	if got := e.start().deadline; strings.Contains(got.String(), "m=") || !got.Equal(deadline) {
		t.Errorf("deadline = %v, want %v without its monotonic reading", got, deadline)
	}
}
