package cmd

import (
	"os"

	"github.com/mattn/go-isatty"

	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

// streams decides what each attempt gets as stdin, stdout and stderr, and what
// of it is read on the way.
type streams struct {
	stdin, stdout, stderr  *os.File
	captureOut, captureErr bool
	midLine                bool // the last thing on stderr was not a whole line
}

func newStreams(env Env, s *settings, stdoutErrors bool) *streams {
	st := &streams{stdin: env.Stdin, stdout: env.Stdout, stderr: env.Stderr}
	switch s.capture {
	case "stderr":
		st.captureErr = true
	case "stdout":
		st.captureOut = true
	case "both":
		st.captureOut, st.captureErr = true, true
	case "auto":
		st.captureErr = true
		st.captureOut = stdoutErrors && !isatty.IsTerminal(env.Stdout.Fd())
	}
	return st
}

// before readies the streams for an attempt and returns its stdin.
func (s *streams) before(int) (*os.File, error) { return s.stdin, nil }

func (s *streams) out() proc.Sink {
	if s.captureOut {
		return proc.Sink{File: s.stdout, Tee: true}
	}
	return proc.Sink{File: s.stdout}
}

func (s *streams) err() proc.Sink {
	if s.captureErr {
		return proc.Sink{File: s.stderr, Tee: true}
	}
	return proc.Sink{File: s.stderr}
}

// after takes in how an attempt left its streams.
func (s *streams) after(r exec.Result, _ bool) exec.Result { return r }
