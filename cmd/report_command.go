package cmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

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
	c.RunE = func(c *cobra.Command, args []string) error {
		if runID == "" {
			runID = env.variables()[envRunID]
		}
		all := runs{}
		newest := runID
		err := r.each(args, append(emptyFlags(c.Flags()), form.problems()...), []string{runID}, func(d *document) {
			if runID != "" && d.RunID != runID {
				return
			}
			newest = d.RunID // of runs that overlap, the one that wrote last
			all.add(d)
		})
		if err != nil {
			return err
		}
		if all[newest] == nil {
			say(env.Stderr, "%s", nothingOf(newest))
		}
		rep := sumUp(newest, all[newest], expect)
		*status = rep.exitStatus()
		return rep.write(env.Stdout, form.text)
	}
	return c
}

func nothingOf(runID string) string {
	if runID == "" {
		return "nothing is recorded yet; wrap the steps of a run as in: retryx --step build -- make"
	}
	return "nothing is recorded of run " + oneLine(printable(runID)) + "; retryx history lists what is"
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

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### run %s: %s\n\n| step | result | reason | attempts |\n| --- | --- | --- | --- |\n", dash(orEmpty(r.RunID)), r.Status)
	for _, s := range r.steps {
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", escapeCell(s.name), s.verdict(), escapeCell(s.reason), s.attempts)
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
		lines = append(lines, []string{s.name, s.verdict(), s.reason, strconv.Itoa(s.attempts)})
	}
	return printTable(w, lines)
}
