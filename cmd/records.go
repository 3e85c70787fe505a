package cmd

// Past outcomes, as history, stats and report read them: from the journal, or
// from files that --outcome wrote. Lines that are torn or of another kind are
// skipped. Nothing is held in memory that the question does not need.

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/statefile"
)

// records is a command's view of past outcomes.
type records struct {
	env   Env
	flags *pflag.FlagSet // of the settings that say where the journal is

	growing bool // only what was written since the journal was last rotated
}

func newRecords(c *cobra.Command, env Env) *records {
	return &records{env: env, flags: share(c, func(s setting) bool {
		return slices.Contains([]string{"state-dir", "allow-remote-state", "config", "profile"}, s.name)
	})}
}

// each calls fn for every outcome that has all the words, oldest first; without
// files those of the journal.
func (r *records) each(files, problems, words []string, fn func(*document)) error {
	return r.eachLine(files, problems, words, func(line []byte) {
		if d, err := parseDocument(line); err == nil {
			fn(d)
		}
	})
}

// eachLine is each for those who need not read every outcome. The line is fn's
// only until it returns, and may yet be none that parseDocument takes. "-" is
// stdin. A file without any outcome is remarked on, as a wrong file would look
// like a run that never was.
func (r *records) eachLine(files, problems, words []string, fn func(line []byte)) error {
	vars := r.env.variables()
	s, _, err := readTogether(vars, r.flags, time.Now(), problems)
	if err != nil {
		return err
	}
	found := 0
	kind := []byte(outcomeSchema)
	line := func(text []byte) bool {
		if !bytes.Contains(text, kind) {
			return true
		}
		found++
		if mayHold(text, words) {
			fn(text)
		}
		return true
	}
	if len(files) == 0 {
		at := findPlaces(vars, s)
		if at.personalErr != nil {
			return fmt.Errorf("find the journal: %w", at.personalErr)
		}
		if r.growing {
			return journalAt(at).EachSinceRotation(line)
		}
		return journalAt(at).Each(line)
	}
	var failed []string
	for _, name := range files {
		found = 0
		if err := r.readFile(name, line); err != nil {
			failed = append(failed, err.Error())
		} else if found == 0 {
			say(r.env.Stderr, "%s: there is no outcome in it", oneLine(printable(name)))
		}
	}
	if len(failed) > 0 {
		return &usageError{failed}
	}
	return nil
}

// newest is each, but of the last many outcomes only: those before them are passed
// over unread, and with them the little that can be wrong with a line that is JSON
// and names our schema.
func (r *records) newest(many int) func(files, problems, words []string, fn func(*document)) error {
	return func(files, problems, words []string, fn func(*document)) error {
		var lines [][]byte
		err := r.eachLine(files, problems, words, func(line []byte) {
			if len(lines) < many {
				lines = append(lines, bytes.Clone(line))
				return
			}
			oldest := lines[0][:0]
			oldest = append(oldest, line...)
			lines = append(lines[1:], oldest)
		})
		for _, line := range lines {
			if d, err := parseDocument(line); err == nil {
				fn(d)
			}
		}
		return err
	}
}

// mayHold reports whether a line can have all the words as values. Reading an
// outcome costs ten times what searching it does. A word that JSON might write in
// more than one way is not searched for.
func mayHold(line []byte, words []string) bool {
	for _, word := range words {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\\/<>&`, r) }) {
			continue
		}
		if !bytes.Contains(line, []byte(`"`+word+`"`)) {
			return false
		}
	}
	return true
}

func (r *records) readFile(name string, line func([]byte) bool) error {
	if name == "-" {
		return statefile.EachLine(r.env.Stdin, line)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return statefile.EachLine(f, line)
}

func journalAt(at places) statefile.Journal {
	return statefile.Journal{Dir: at.personal, Name: journalName, Limit: journalLimit}
}

// filter chooses outcomes. Empty fields choose all.
type filter struct {
	outcome, reason, step, runID, tool string
	since                              string
	from                               time.Time
}

func (f *filter) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.outcome, "outcome", "", "only outcomes with this `label`")
	fs.StringVar(&f.reason, "reason", "", "only outcomes with this `reason`")
	fs.StringVar(&f.step, "step", "", "only this `step`")
	fs.StringVar(&f.runID, "run-id", "", "only this run's `id`")
	fs.StringVar(&f.tool, "tool", "", "only this `tool`")
	fs.StringVar(&f.since, "since", "", "only from then on: a `time` (RFC 3339) or a duration before now")
}

// complete tells the flags what their values may be.
func (f *filter) complete(c *cobra.Command) {
	for name, values := range map[string][]string{"outcome": labels(), "reason": knownReasons(), "step": nil, "run-id": nil, "tool": nil, "since": nil} {
		// Errors only on an unknown flag.
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

func labels() []string {
	return []string{"success", "retryable_failure", "hard_failure", "cancelled", "abandoned"}
}

// knownReasons are those that this version gives; a hint's reason may be any.
func knownReasons() []string {
	known := []exec.Reason{
		exec.Succeeded, exec.Reconciled, exec.OrphanedSuccess, exec.CallerGone, exec.OutputClosed,
		exec.BySignal, exec.ByCancelToken, exec.ChildInterrupted, exec.StartFailed, exec.StoppedByChild,
		exec.AttemptsExhausted, exec.StdinConsumed, exec.DeadlineExceeded, exec.ElapsedExhausted, exec.RetryAfterTooLong,
		exec.CircuitOpen, exec.BudgetDenied, exec.BudgetUnavailable, exec.InputLost, exec.OutputLost, exec.InternalError,
	}
	var names []string
	for _, r := range known {
		names = append(names, string(r))
	}
	return append(names, classNames()...)
}

// problems reads what has to be read and says what is wrong with it.
func (f *filter) problems(now time.Time) []string {
	var out []string
	if f.outcome != "" && !slices.Contains(labels(), f.outcome) {
		out = append(out, fmt.Sprintf("--outcome: want %s, not %q%s", orList(labels()), f.outcome, didYouMean(f.outcome, labels())))
	}
	if f.since == "" {
		return out
	}
	from, err := parseSince(f.since, now)
	if err != nil {
		out = append(out, "--since: "+err.Error())
	}
	f.from = from
	return out
}

func parseSince(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	if n, err := strconv.ParseUint(strings.TrimSuffix(s, "d"), 10, 16); err == nil && strings.HasSuffix(s, "d") {
		return now.AddDate(0, 0, -int(n)), nil
	}
	d, err := parseDuration(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("want RFC 3339, a date, or a duration before now such as 12h or 7d, not %q", s)
	}
	return now.Add(-d), nil
}

// words are what every outcome that matches has as values.
func (f *filter) words() []string { return []string{f.outcome, f.reason, f.runID, f.tool, f.step} }

func (f *filter) matches(d *document) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	if !is(f.outcome, d.Outcome) || !is(f.reason, d.Reason) || !is(f.runID, d.RunID) || !is(f.tool, d.Tool) || !is(f.step, orEmpty(d.Step)) {
		return false
	}
	if f.from.IsZero() {
		return true
	}
	started, err := time.Parse(time.RFC3339Nano, d.StartedAt)
	return err == nil && !started.Before(f.from)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
