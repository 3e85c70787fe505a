package cmd

// The report of one run: what is verified, what is not known, what failed.
//
//   - A step is what --step named; an invocation without one is a step by its
//     command line. What ran below another retryx without a step of its own is
//     part of that one.
//   - The last outcome of a step counts: success is verified, hard failure is
//     failed, everything else is unknown, and so is an expected step that never
//     ran. Nothing is called verified that was not seen to succeed.

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

const reportSchema = "retryx.report/v1"

// The statuses of a run.
const (
	runCompleted = "completed"
	runUnknowns  = "completed_with_unknowns"
	runFailed    = "failed"
	runCancelled = "cancelled"

	neverRan = "never_ran" // the reason of an expected step without an outcome
)

type report struct {
	Schema   string   `json:"schema"`
	RunID    *string  `json:"run_id"`
	Status   string   `json:"status"`
	Reason   *string  `json:"terminal_reason"`
	Verified []string `json:"verified"`
	Unknown  []string `json:"unknown"`
	Failed   []string `json:"failed"`
	Attempts int      `json:"attempts"`
	Retries  int      `json:"retries"`

	steps []*stepResult
}

// stepResult is the last outcome of a step.
type stepResult struct {
	name, outcome, reason string
	attempts              int
}

func newReportCommand(env Env, status *int) *cobra.Command {
	var runID string
	var expect []string
	c := &cobra.Command{
		Use: "report [FILE...]", Short: "sum up the steps of a run",
		Long: "report sums up one run from the journal, or from files that --outcome wrote: which steps are verified, unknown and failed. It exits with 0 when all are verified, 75 with unknowns, 1 when one failed or the run was cancelled.",
		Example: `  retryx report --run-id "$RETRYX_RUN_ID" --expect build,test,publish
  retryx report outcomes.jsonl --format markdown`,
	}
	r := newRecords(c, env)
	c.Flags().StringVar(&runID, "run-id", "", "the run's `id`; else RETRYX_RUN_ID, else the newest run")
	c.Flags().StringSliceVar(&expect, "expect", nil, "`steps` that must have run, separated by commas")
	form := addFormat(c, "json", "markdown", "text")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if runID == "" {
			runID = env.variables()[envRunID]
		}
		docs := map[string][]*document{}
		newest := runID
		err := r.each(args, form.problems(), func(d *document) {
			if runID != "" && d.RunID != runID {
				return
			}
			newest = d.RunID // of runs that overlap, the one that wrote last
			docs[d.RunID] = append(docs[d.RunID], brief(d))
		})
		if err != nil {
			return err
		}
		rep := sumUp(newest, docs[newest], expect)
		*status = rep.exitStatus()
		return rep.write(env.Stdout, form.text)
	}
	return c
}

// brief keeps what a report needs of an outcome.
func brief(d *document) *document {
	return &document{
		Outcome: d.Outcome, Reason: d.Reason, Command: d.Command, Step: d.Step, Depth: d.Depth,
		RunID: d.RunID, AttemptCount: d.AttemptCount, Retries: d.Retries,
	}
}

// sumUp makes the report of the outcomes of one run, oldest first.
func sumUp(runID string, docs []*document, expect []string) *report {
	rep := &report{Schema: reportSchema, RunID: filled(runID), Verified: []string{}, Unknown: []string{}, Failed: []string{}}
	at := map[string]*stepResult{}
	step := func(name string) *stepResult {
		if at[name] == nil {
			at[name] = &stepResult{name: name, reason: neverRan}
			rep.steps = append(rep.steps, at[name])
		}
		return at[name]
	}
	for _, d := range docs {
		if d.Depth > 0 && d.Step == nil {
			continue
		}
		name := orEmpty(d.Step)
		if d.Step == nil {
			name = commandLine(d.Command)
		}
		s := step(name)
		s.outcome, s.reason = d.Outcome, d.Reason
		s.attempts += d.AttemptCount
		rep.Attempts += d.AttemptCount
		rep.Retries += d.Retries
	}
	for _, name := range expect {
		if name = strings.TrimSpace(name); name != "" {
			step(name)
		}
	}
	rep.judge()
	return rep
}

func (r *report) judge() {
	cancelled := ""
	reasons := map[*[]string]string{}
	for _, s := range r.steps {
		list := &r.Unknown
		switch s.outcome {
		case "success":
			list = &r.Verified
		case "hard_failure":
			list = &r.Failed
		case "cancelled":
			cancelled = s.reason
		}
		*list = append(*list, s.name)
		reasons[list] = s.reason
	}
	switch {
	case len(r.Failed) > 0:
		r.Status, r.Reason = runFailed, filled(reasons[&r.Failed])
	case cancelled != "":
		r.Status, r.Reason = runCancelled, filled(cancelled)
	case len(r.Unknown) > 0:
		r.Status, r.Reason = runUnknowns, filled(reasons[&r.Unknown])
	case len(r.steps) == 0:
		r.Status, r.Reason = runUnknowns, filled(neverRan)
	default:
		r.Status, r.Reason = runCompleted, filled(reasons[&r.Verified])
	}
}

func (r *report) exitStatus() int {
	switch r.Status {
	case runCompleted:
		return 0
	case runUnknowns:
		return exitRefused
	default:
		return 1
	}
}

func (r *report) write(w io.Writer, form string) error {
	switch form {
	case "markdown":
		_, err := io.WriteString(w, r.markdown())
		return err
	case "text":
		return r.text(w)
	default:
		return printJSON(w, r)
	}
}

func (r *report) verdict(s *stepResult) string {
	switch {
	case slices.Contains(r.Verified, s.name):
		return "verified"
	case slices.Contains(r.Failed, s.name):
		return "failed"
	default:
		return "unknown"
	}
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### run %s: %s\n\n| step | result | reason | attempts |\n| --- | --- | --- | --- |\n", dash(orEmpty(r.RunID)), r.Status)
	for _, s := range r.steps {
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", escapeCell(printable(s.name)), r.verdict(s), s.reason, s.attempts)
	}
	fmt.Fprintf(&b, "\n%d attempts, %d of them retries\n", r.Attempts, r.Retries)
	return b.String()
}

func (r *report) text(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "run %s: %s (%s); %d attempts, %d of them retries\n", dash(orEmpty(r.RunID)), r.Status, orEmpty(r.Reason), r.Attempts, r.Retries); err != nil {
		return err
	}
	lines := [][]string{{"STEP", "RESULT", "REASON", "ATTEMPTS"}}
	for _, s := range r.steps {
		lines = append(lines, []string{printable(s.name), r.verdict(s), s.reason, strconv.Itoa(s.attempts)})
	}
	return printTable(w, lines)
}
