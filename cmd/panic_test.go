package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retryx/retryx/exec"
)

// A bug of ours ends in an outcome like everything else, with status 125.
func TestPanicIsAnOutcome(t *testing.T) {
	t.Parallel()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	o := runEngine(&exec.Engine{Started: time.Now()}, &child{streams: &streams{stderr: stderr}}) // no Starter
	if o.Label != exec.HardFailure || o.Reason != exec.InternalError {
		t.Errorf("runEngine without a starter = %s: %s, want hard_failure: internal_error", o.Label, o.Reason)
	}
	if got := endingOf(o, nil, false).status; got != exitOwn {
		t.Errorf("endingOf(internal error) = %d, want %d", got, exitOwn)
	}
	trace, err := os.ReadFile(stderr.Name())
	if err != nil || !strings.Contains(string(trace), "goroutine") {
		t.Errorf("stderr holds no trace of the panic: %q, %v", trace, err)
	}
}
