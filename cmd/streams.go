package cmd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/mattn/go-isatty"

	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

// streams decides what each attempt gets as stdin, stdout and stderr, what of
// it is read on the way, and what is kept back until it is known how the run
// ends.
//
//	stdout auto     live; a fresh regular file is cut back before a retry
//	       stream   live
//	       commit   a successful attempt's output, at the end; else nothing
//	       last     the last attempt's output, at the end
//	hold-output     both streams of all attempts, at the end, if the run failed
type streams struct {
	stdin                  *proc.Input
	stdout, stderr         *os.File
	mode                   string
	hold                   bool
	captureOut, captureErr bool
	output                 *proc.Output
	terminal               *proc.Terminal
	shared                 bool
	pty                    bool // the child's stderr is a terminal of ours
	outSpool, errSpool     *proc.Spool

	midLine  bool     // the last thing on stderr was not a whole line
	heldMid  bool     // the same of the stderr that is held back
	partial  bool     // the last attempt's output stands where the next one's will follow
	inputErr error    // why the last attempt's input ended before its end
	warnings []string // for the outcome
}

func newStreams(env Env, s *settings, read classify.Command, shared bool) *streams {
	st := &streams{
		stdin:  proc.NewInput(env.Stdin, inputMode(s.stdin), s.stdinLimit),
		stdout: env.Stdout, stderr: env.Stderr, mode: s.stdout, hold: s.holdOutput, shared: shared,
	}
	if s.stdout == "auto" {
		st.output = proc.NewOutput(env.Stdout, env.Stderr)
	}
	if s.holdOutput || s.stdout == "commit" || s.stdout == "last" {
		st.outSpool = &proc.Spool{}
	}
	if s.holdOutput {
		st.errSpool = &proc.Spool{}
	}
	switch s.capture {
	case "stderr":
		st.captureErr = true
	case "stdout":
		st.captureOut = true
	case "both":
		st.captureOut, st.captureErr = true, true
	case "auto":
		st.captureErr = true
		st.captureOut = read.StdoutErrors && !isatty.IsTerminal(env.Stdout.Fd()) || s.readsStdout(read)
	}
	// Only in the terminal's own group: there its signals reach the child, which
	// a second terminal's would not.
	st.pty = shared && st.captureErr && st.errSpool == nil && s.pty == "auto" && isatty.IsTerminal(env.Stderr.Fd())
	if screen := screenOf(read.Tool, read.Subcommand); st.pty && screen != screenLines && isatty.IsTerminal(env.Stdout.Fd()) {
		st.pty = false
		st.captureErr = screen == screenPaged || s.capture != "auto"
	}
	return st
}

func inputMode(name string) proc.InputMode {
	switch name {
	case "inherit":
		return proc.InputInherit
	case "replay":
		return proc.InputReplay
	case "null":
		return proc.InputNull
	default:
		return proc.InputAuto
	}
}

// before readies the streams for an attempt and returns its stdin.
func (s *streams) before(attempt int) (*os.File, error) {
	if attempt > 1 {
		if err := s.again(); err != nil {
			return nil, err
		}
	}
	if s.output != nil {
		s.output.Before()
	}
	if s.shared {
		s.terminal = proc.SaveTerminal()
	}
	stdin, err := s.stdin.Begin()
	if err != nil {
		return nil, fmt.Errorf("ready the command's stdin: %w", err)
	}
	return stdin, nil
}

// again clears away what the attempt before left.
func (s *streams) again() error {
	if s.partial {
		s.warn("stdout_partial: a failed attempt's output stands in front of the next one's")
	}
	if s.output != nil {
		if err := s.output.CutBack(); err != nil {
			return err
		}
	}
	if s.outSpool != nil && !s.hold {
		s.outSpool.Reset()
	}
	return nil
}

func (s *streams) out() proc.Sink { return sink(s.stdout, s.captureOut, s.outSpool) }

func (s *streams) err() proc.Sink {
	k := sink(s.stderr, s.captureErr, s.errSpool)
	k.PTY = s.pty
	return k
}

func sink(f *os.File, tee bool, spool *proc.Spool) proc.Sink {
	if spool != nil {
		return proc.Sink{Spool: spool}
	}
	return proc.Sink{File: f, Tee: tee}
}

// after takes in how an attempt left its streams. Whether it failed is not known
// yet: a limit or a rule may say so of one that exited with 0.
func (s *streams) after(r exec.Result) exec.Result {
	s.inputErr = s.stdin.End()
	if errors.Is(s.inputErr, syscall.EIO) && !s.stdin.Fed() { // a terminal that is another's now
		s.warn("no input: " + s.inputErr.Error())
		s.inputErr = nil
	}
	r.StdinConsumed, r.StdinErr = s.stdin.UsedUp(), s.stdin.Err()
	s.partial = s.output != nil && !s.output.CanCutBack() && s.output.Partial()
	r.StdoutPartial = s.partial
	return r
}

// failed does what is due after an attempt that was judged a failure.
func (s *streams) failed(r exec.Result) {
	if err := s.terminal.Restore(); err != nil {
		s.warn(err.Error())
	}
	if r.StdinErr != nil {
		s.warn("keep stdin for a replay: " + r.StdinErr.Error())
	}
}

// lost is a failure of ours to give an attempt its input or to keep its output,
// nil if there was none. It counts more than what became of the command.
func (s *streams) lost() *exec.Verdict {
	if s.inputErr != nil {
		return lostVerdict(inputLostRule, exec.InputLost, s.inputErr)
	}
	for _, sp := range []*proc.Spool{s.outSpool, s.errSpool} {
		if sp != nil && sp.Err() != nil {
			return lostVerdict(outputLostRule, exec.OutputLost, fmt.Errorf("keep the command's output: %w", sp.Err()))
		}
	}
	return nil
}

// The names of the judgements that lost gives.
const (
	inputLostRule  = "input/lost"
	outputLostRule = "output/lost"
)

func lostVerdict(rule string, reason exec.Reason, err error) *exec.Verdict {
	return &exec.Verdict{
		Verdict: classify.Verdict{Class: classify.Permanent, Rule: rule, Evidence: err.Error(), Matched: true},
		Stop:    &exec.Stop{Label: exec.HardFailure, Reason: reason},
	}
}

// noteEnd notes whether an attempt left its stderr in the middle of a line.
func (s *streams) noteEnd(midLine bool) {
	if s.errSpool != nil {
		s.heldMid = midLine
		return
	}
	s.midLine = midLine
}

// unfinished reports whether our stderr stands in the middle of a line: as far as
// the file itself tells, else as far as captured stderr did.
func (s *streams) unfinished() bool {
	if midLine, known := endsMidLine(s.stderr); known {
		return midLine
	}
	return s.midLine
}

// A delivery is output that was kept back and is to be passed on.
type delivery struct {
	spool *proc.Spool
	to    *os.File
	spare bool // its loss is told already
}

// due returns what of the output that was kept back is wanted, now that it is
// known how the run ended.
func (s *streams) due(o *exec.Outcome) []delivery {
	last := o.Last()
	succeeded := o.Label == exec.Success || o.Reason == exec.OrphanedSuccess
	switch {
	case s.hold && succeeded:
		return nil
	case s.hold:
		s.midLine = s.heldMid
		// What of it could not be kept is lost already, and the run says so; what
		// was kept is still worth reading.
		return []delivery{{s.errSpool, s.stderr, true}, {s.outSpool, s.stdout, false}}
	case s.outSpool == nil || last == nil || s.mode == "commit" && !last.Verdict.Succeeded:
		return nil
	}
	return []delivery{{s.outSpool, s.stdout, false}}
}

func (s *streams) warn(text string) {
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}
