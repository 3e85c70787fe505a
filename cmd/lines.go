package cmd

// Lines of our own. They go to stderr, start with "retryx: ", and start on a
// fresh line whatever the child left there. There is none when the first
// attempt succeeds, and none with --quiet. One line per retry: what failed, how
// it was judged, how long the wait is and what the budget has left.

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/mattn/go-isatty"

	"github.com/retryx/retryx/exec"
)

const evidenceShown = 120

// lines is the engine's Observer.
type lines struct {
	w        io.Writer
	quiet    bool
	verbose  bool
	screen   bool
	paint    painter
	redact   *redactor
	streams  *streams
	ci       annotator
	budget   func() string // what there is to say about the budget, once
	unclear  bool          // nobody knows or said whether the command may be repeated
	said     bool          // a retry line was written
	counting bool
}

// isScreen reports whether w is a terminal that does more than print.
func isScreen(w *os.File, environ map[string]string) bool {
	return isatty.IsTerminal(w.Fd()) && environ["TERM"] != "dumb"
}

// painter colours text for one writer. fatih/color's own switch looks at
// stdout, which is the child's.
type painter struct{ warn, bad, dim *color.Color }

func newPainter(when string, w *os.File, environ map[string]string) painter {
	on := when == "always"
	if when == "auto" {
		on = isScreen(w, environ) && environ["NO_COLOR"] == ""
	}
	p := painter{color.New(color.FgYellow), color.New(color.FgRed), color.New(color.Faint)}
	for _, c := range []*color.Color{p.warn, p.bad, p.dim} {
		if on {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
	return p
}

// line writes one line of our own.
func (l *lines) line(text string) {
	if l.quiet {
		return
	}
	l.fresh()
	fmt.Fprintln(l.w, l.paint.dim.Sprint("retryx: ")+text)
}

// fresh ends a line that the child left unfinished.
func (l *lines) fresh() {
	if l.streams.unfinished() {
		fmt.Fprintln(l.w)
	}
	l.streams.midLine = false
}

// Retrying writes the line of one retry.
func (l *lines) Retrying(r exec.Retrying) {
	a := r.Attempt
	var b strings.Builder
	fmt.Fprintf(&b, "attempt %d of %d failed: %s", a.N, r.Limit, l.what(a))
	fmt.Fprintf(&b, "; %s%s", l.paint.warn.Sprint(string(a.Verdict.Class)), l.rule(a))
	fmt.Fprintf(&b, "; retrying in %s", shortDuration(r.Wait))
	if r.Grant.Budget != "" {
		fmt.Fprintf(&b, "; budget %s has %s of %s tokens", r.Grant.Budget, shortNumber(r.Grant.Tokens), shortNumber(r.Grant.Cap))
	}
	b.WriteString(policyInForce(r.Grant))
	if a.Result.StdoutPartial {
		b.WriteString("; stdout_partial: its output stays in front of the next attempt's")
	}
	l.line(b.String())
	if !l.quiet {
		l.ci.annotate("warning", fmt.Sprintf("attempt %d of %d failed", a.N, r.Limit), fmt.Sprintf("%s; %s", l.what(a), a.Verdict.Class))
	}
	if l.verbose && a.Verdict.Why != "" {
		l.line("  " + a.Verdict.Why)
	}
	if !l.said {
		l.advise()
	}
	l.said = true
}

// advise says once what the user may want to know before many retries.
func (l *lines) advise() {
	if text := l.budget(); text != "" {
		l.line(text)
	}
	if l.unclear {
		l.line("what this command does is not known, so a write that may have happened is repeated; say --effect read, repeatable or write")
	}
}

// what says what failed: what the command said, and that it was out of time.
func (l *lines) what(a exec.Attempt) string {
	switch e := l.redact.line(a.Verdict.Evidence, evidenceShown); {
	case e == "":
		return howEnded(&a)
	case a.TimedOut:
		return howEnded(&a) + ": " + e
	default:
		return e
	}
}

// howEnded says how an attempt ended, without judging it.
func howEnded(a *exec.Attempt) string {
	switch {
	case a.TimedOut:
		return "timed out after " + shortDuration(a.Elapsed)
	case a.Result.StartErr != nil:
		return a.Result.StartErr.Error()
	case a.Result.Signal != 0:
		return "killed by " + signalName(a.Result.Signal)
	default:
		return fmt.Sprintf("exit status %d", a.Result.Code)
	}
}

func (l *lines) rule(a exec.Attempt) string {
	if !l.verbose || a.Verdict.Rule == "" {
		return ""
	}
	return " (" + a.Verdict.Rule + ")"
}

// Counting shows on a screen how long the wait still is, in seconds that have
// begun: the last of them is no "0s".
func (l *lines) Counting(left time.Duration) {
	if l.quiet || !l.screen || left <= 0 {
		return
	}
	l.counting = true
	fmt.Fprintf(l.w, "\r\x1b[Kretryx: next attempt in %s", (left + time.Second - 1).Truncate(time.Second))
}

// WaitOver removes the countdown.
func (l *lines) WaitOver() {
	if l.counting {
		l.counting = false
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}

// shortDuration rounds to what a person wants to read.
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// shortNumber writes at most one decimal, rounded down so that 0.96 tokens
// never look like a whole one.
func shortNumber(f float64) string {
	s := fmt.Sprintf("%.1f", float64(int64(f*10))/10)
	return strings.TrimSuffix(s, ".0")
}
