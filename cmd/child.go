package cmd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

// child starts the attempts of one run and judges how they ended. It is the
// engine's Starter and Judge.
type child struct {
	settings *settings
	command  []string
	base     []string // the environment without a context
	handed   handed
	hints    hints
	guard    string // the budget whose breaker we tell, empty for none
	group    proc.Group
	streams  *streams

	argv       []string // of the attempt at hand, expanded
	told       []string // budgets whose breaker has heard of the last attempt from below
	classifier *classify.Classifier
	last       *proc.Process
	linger     bool            // the last attempt left its captured stderr open
	before     []*proc.Process // earlier attempts whose captured output others still hold
}

// Start starts one attempt.
func (c *child) Start(next exec.Next) (exec.Process, error) {
	now := time.Now()
	c.release()
	c.hints.clear()
	argv := c.command
	if next.Argv != nil {
		argv = next.Argv
	}
	if c.settings.expand {
		argv = slices.Clone(argv)
		for i := range argv {
			argv[i] = c.handed.expand(argv[i], next, now)
		}
	}
	c.setArgv(argv)
	stdin, err := c.streams.before(next.N)
	if err != nil {
		return nil, err
	}
	p, err := proc.Start(proc.Spec{
		Argv: argv, Env: c.handed.environment(c.base, next, now), Group: c.group,
		Stdin: stdin, Stdout: c.streams.out(), Stderr: c.streams.err(),
	})
	if err != nil {
		return nil, c.notStarted(err)
	}
	c.last = p
	return &process{started{p}, c}, nil
}

// notStarted is the error of an attempt that has no process.
func (c *child) notStarted(err error) error {
	c.streams.after(exec.Result{})
	var start *proc.StartError
	if !errors.As(err, &start) {
		return err
	}
	return &exec.StartError{Err: start, Status: start.Status(), Transient: start.Transient()}
}

func (c *child) setArgv(argv []string) {
	if c.classifier != nil && slices.Equal(c.argv, argv) {
		return
	}
	c.argv = argv
	c.classifier = classify.New(classify.ReadWith(argv, c.settings.ruleFiles), classify.Options{
		Effect: c.settings.effect, Idempotent: c.settings.idempotent,
		Flags: c.settings.rules, Env: c.settings.envRules, Config: c.settings.configRules, Files: c.settings.ruleFiles,
	})
}

// release lets go of the attempt before this one. What it left behind may write
// on: its output ends with retryx, not with the attempt.
func (c *child) release() {
	c.before = slices.DeleteFunc(c.before, func(p *proc.Process) bool { return !p.Lingers() })
	if c.last == nil {
		return
	}
	if c.last.Lingers() {
		c.last.Release()
		c.before = append(c.before, c.last)
	} else {
		c.last.Close()
	}
	c.last = nil
}

// lingers reports whether something of any attempt holds its stderr open.
func (c *child) lingers() bool {
	linger := c.last != nil && c.linger
	c.release()
	return linger || len(c.before) > 0
}

// close lets go of all that the attempts left. Only what is ours is written
// after it.
func (c *child) close() {
	c.release()
	for _, p := range c.before {
		p.Close()
	}
	c.before = nil
}

// Judge tells what kind of failure the attempt was.
func (c *child) Judge(r exec.Result, timedOut bool) exec.Verdict {
	h := c.hints.take()
	nested := h.nested != nil
	if timedOut {
		h.forgetOurEnd()
	}
	v := c.judge(r, timedOut, h)
	if c.told = h.told; !v.Succeeded {
		c.told = h.toldFailed // a success below is not what failed
	}
	v.Nested, v.Counted = nested, c.guard != "" && slices.Contains(c.told, c.guard)
	for _, w := range h.warnings {
		c.streams.warn(w)
	}
	if lost := c.streams.lost(); lost != nil {
		v = *lost
	}
	if !v.Succeeded {
		c.streams.failed(r)
	}
	return v
}

func (c *child) judge(r exec.Result, timedOut bool, h hint) exec.Verdict {
	if r.StartErr != nil {
		return exec.Verdict{Verdict: startVerdict(r.StartErr)}
	}
	a := classify.Attempt{
		Argv: c.argv, Exit: r.Code, Signal: int(r.Signal), TimedOut: timedOut,
		Stderr: r.Stderr, Stdout: r.Stdout, Ended: time.Now(),
	}
	if !timedOut && r.Signal == 0 && classify.Contains(c.settings.success, r.Code) {
		v, failed := c.classifier.SuccessRuleMatch(a)
		if !failed {
			return exec.Verdict{Verdict: v, Succeeded: true}
		}
		return exec.Verdict{Verdict: v, Stop: h.stopOrder()}
	}
	v := c.classifier.ClassifyHinted(a, h.class, h.statedWait())
	if class, ok := h.takenOver(); ok {
		v.Class, v.Rule, v.Why, v.Matched = class, nestedRule, "a retryx inside ended for good", true
	}
	return exec.Verdict{Verdict: v, Stop: h.stopOrder()}
}

// nestedRule names the judgement of a retryx below, which stands whatever the
// rules of this one say about its output.
const nestedRule = "retryx/nested"

// startVerdict judges a command that never ran: what the system was short of
// may be there a moment later, a command that is not there will not.
func startVerdict(e *exec.StartError) classify.Verdict {
	v := classify.Verdict{Class: classify.Config, Rule: "start/failed", Evidence: e.Error(), Matched: true}
	if e.Transient {
		v.Class, v.Rule = classify.Transient, "start/resources"
	}
	return v
}

// started is a running attempt or hook.
type started struct{ *proc.Process }

// Terminate asks it to end. It refuses one that has exited already and only left
// its output open: what is behind it was meant to stay.
func (p started) Terminate() error {
	select {
	case <-p.Exited():
		return os.ErrProcessDone
	default:
		return p.Process.Terminate()
	}
}

// process is one running attempt.
type process struct {
	started
	child *child
}

// Signal forwards a signal. A change of the terminal's size reaches a command
// in its group by itself, but not the terminal that we gave it as stderr; the
// command is told once more when that has its new size.
func (p *process) Signal(sig syscall.Signal) error {
	if sig == syscall.SIGWINCH && p.Shared() {
		if !p.child.streams.pty {
			return nil
		}
		p.Resize()
	}
	return p.Process.Signal(sig)
}

func (p *process) Shared() bool { return p.child.group == proc.Shared }

func (p *process) Result() exec.Result {
	got := p.Process.Result()
	r := exec.Result{
		Code: got.Code, Signal: got.Signal, Stderr: got.Stderr, Stdout: got.Stdout,
		TailTruncated: got.StderrTruncated || got.StdoutTruncated,
	}
	if got.WriteErr != nil && !errors.Is(got.WriteErr, syscall.EPIPE) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("output_lost: pass on the command's output: %s", got.WriteErr))
	}
	if got.Unended {
		r.Warnings = append(r.Warnings, "timeout_not_enforced: something that the command started outlived the KILL")
	}
	if got.WaitErr != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("exit status lost: %s", got.WaitErr))
	}
	p.child.linger = got.LeftOpen
	p.child.streams.noteEnd(got.MidLine)
	return p.child.streams.after(r)
}

func (p *process) EndLeftovers() bool {
	_ = p.EndGroup() // what may not be signalled is waited for by KillLeftovers
	return p.GroupAlive()
}

func (p *process) KillLeftovers() { p.KillGroup() }
