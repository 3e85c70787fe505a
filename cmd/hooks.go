package cmd

// Hooks are commands of the user's that a run asks on its way. Each is run by
// sh -c in a group of its own and in our working directory, with the outcome so
// far as JSON on its stdin and its output on our stderr. The engine bounds its
// time and ends it like an attempt; its failure never becomes the result.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

const failureSchema = "retryx.failure/v1"

// failure is what a hook reads: the outcome so far, the tails of what the last
// attempt wrote, and its number.
type failure struct {
	*document
	Schema     string `json:"schema"`
	StderrTail string `json:"stderr_tail"`
	StdoutTail string `json:"stdout_tail"`
	Attempt    int    `json:"attempt"`
}

// hookRunner is the engine's Hooks.
type hookRunner struct {
	commands map[exec.Hook]string
	child    *child
	stderr   *os.File
	redact   *redactor
	document func(*exec.Outcome) *document
}

func (h *hookRunner) Has(hook exec.Hook) bool { return h.commands[hook] != "" }

// Start starts a hook.
func (h *hookRunner) Start(hook exec.Hook, so *exec.Outcome) (exec.Process, error) {
	input, err := h.input(hook, so)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open hook's input: %w", err)
	}
	defer r.Close()
	environ := h.child.handed.environment(h.child.base, exec.Next{N: so.AttemptCount, Limit: so.AttemptLimit, Previous: so.Last()}, time.Now())
	spec := proc.Spec{
		Argv:  []string{"sh", "-c", h.commands[hook]},
		Env:   append(environ, envHook+"="+string(hook)),
		Stdin: r, Stdout: proc.Sink{File: h.stderr}, Stderr: proc.Sink{File: h.stderr}, Group: proc.New,
	}
	if hook == exec.HookCorrect {
		spec.Stdout = proc.Sink{Tee: true}
	}
	p, err := proc.Start(spec)
	if err != nil {
		w.Close()
		return nil, err
	}
	go func() { // a hook may leave its input unread, and then EPIPE is no fault
		defer w.Close()
		_, _ = w.Write(input)
	}()
	return &hookProcess{started{p}}, nil
}

func (h *hookRunner) input(hook exec.Hook, so *exec.Outcome) ([]byte, error) {
	o := *so
	if o.Ended.IsZero() {
		o.Elapsed = time.Since(o.Started)
	}
	if last := o.Last(); last != nil && hook != exec.HookOnOutcome {
		// What it will be if nothing else comes of it.
		o.Label, o.Reason = exec.HardFailure, exec.Reason(last.Verdict.Class)
		if hook == exec.HookBeforeRetry {
			o.Label = exec.RetryableFailure
		}
	}
	f := failure{document: h.document(&o), Schema: failureSchema, Attempt: o.AttemptCount}
	if last := o.Last(); last != nil {
		f.StderrTail, f.StdoutTail = h.redact.tail(last.Result.Stderr), h.redact.tail(last.Result.Stdout)
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write hook's input: %w", err)
	}
	return append(text, '\n'), nil
}

// Argv reads a corrector's answer: a JSON array of strings, the first not
// empty.
func (h *hookRunner) Argv(stdout []byte) ([]string, error) {
	var words []*string // null is no string, and into a string it would be decoded as ""
	if err := json.Unmarshal(stdout, &words); err != nil {
		return nil, errors.New("the corrector's answer is not a JSON array of strings")
	}
	argv := make([]string, len(words))
	for i, w := range words {
		if w == nil || strings.Contains(*w, "\x00") {
			return nil, fmt.Errorf("the corrector's answer is not a JSON array of strings that a command can have: entry %d", i)
		}
		argv[i] = *w
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("the corrector's answer names no command")
	}
	h.redact.observe(argv, nil)
	return argv, nil
}

// hookProcess is a running hook.
type hookProcess struct{ started }

func (p *hookProcess) Shared() bool       { return false }
func (p *hookProcess) EndLeftovers() bool { return false }
func (p *hookProcess) KillLeftovers()     {}

func (p *hookProcess) Result() exec.Result {
	got := p.Process.Result()
	p.Close()
	return exec.Result{Code: got.Code, Signal: got.Signal, Stdout: got.Stdout}
}
