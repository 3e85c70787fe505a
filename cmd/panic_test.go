package cmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/exec"
)

// A bug of ours ends in an outcome like everything else, with status 125 and its
// trace on stderr, and nothing is started after it.
func TestPanicIsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engine exec.Engine
		trace  string
	}{
		"in the engine": {exec.Engine{}, "exec.(*run).attempt"}, // it has no Starter
		"in the budget": {exec.Engine{Admit: true, Budget: brokenBudget{}, Starter: noStarter{t}}, "brokenBudget.Admit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer stderr.Close()
			tt.engine.Started = time.Now()
			o := runEngine(&tt.engine, &child{streams: &streams{stderr: stderr}})
			if o.Label != exec.HardFailure || o.Reason != exec.InternalError {
				t.Errorf("runEngine = %s: %s, want hard_failure: internal_error", o.Label, o.Reason)
			}
			if got := endingOf(o, nil, false).status; got != exitOwn {
				t.Errorf("endingOf(internal error) = %d, want %d", got, exitOwn)
			}
			trace, err := os.ReadFile(stderr.Name())
			if err != nil || !strings.Contains(string(trace), tt.trace) {
				t.Errorf("stderr holds no trace of %s: %q, %v", tt.trace, trace, err)
			}
		})
	}
}

// brokenBudget panics when it is asked.
type brokenBudget struct{ exec.Budget }

func (brokenBudget) Admit(context.Context) budget.Decision { panic("a bug") }

// noStarter fails the test when it is to start something.
type noStarter struct{ t *testing.T }

func (s noStarter) Start(exec.Next) (exec.Process, error) {
	s.t.Error("Start was called after a panic")
	return nil, os.ErrInvalid
}
