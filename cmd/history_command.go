package cmd

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func newHistoryCommand(env Env) *cobra.Command {
	var f filter
	last := 20
	c := &cobra.Command{
		Use: "history [FILE...]", Short: "list past outcomes",
		Long: "history lists the outcomes of the journal, or of files that --outcome wrote, the newest last.",
		Example: `  retryx history
  retryx history --outcome retryable_failure --since 24h
  retryx history --run-id "$RETRYX_RUN_ID" --format json`,
	}
	r := newRecords(c, env)
	f.define(c.Flags())
	f.complete(c)
	c.Flags().IntVarP(&last, "last", "n", last, "show this `many`; 0 for all")
	form := addFormat(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		problems := slices.Concat(emptyFlags(c.Flags()), f.problems(time.Now()), form.problems())
		if last < 0 {
			problems = append(problems, "--last: must not be negative")
		}
		var kept []*document
		var failed error
		each := r.each
		if last > 0 && f == (filter{}) {
			each = r.newest(last)
		}
		err := each(args, problems, f.words(), func(d *document) {
			if !f.matches(d) {
				return
			}
			if last == 0 && form.text == "json" {
				failed = cmp.Or(failed, writeFull(env.Stdout, d))
				return
			}
			if kept = append(kept, d); last > 0 && len(kept) > last {
				kept = kept[1:]
			}
		})
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		if form.text == "json" {
			for _, d := range kept {
				if err := writeFull(env.Stdout, d); err != nil {
					return err
				}
			}
			return nil
		}
		return printTable(env.Stdout, historyTable(kept))
	}
	return c
}

func writeFull(w io.Writer, d *document) error {
	_, err := w.Write(d.full())
	return err
}

const commandShown = 60

func historyTable(docs []*document) [][]string {
	lines := [][]string{{"STARTED", "OUTCOME", "REASON", "CLASS", "EXIT", "ATTEMPTS", "TIME", "STEP", "COMMAND"}}
	for _, d := range docs {
		started := d.StartedAt
		if t, err := time.Parse(time.RFC3339Nano, started); err == nil {
			started = t.Local().Format(time.DateTime)
		}
		lines = append(lines, []string{
			started, d.Outcome, d.Reason, dash(orEmpty(d.Class)), strconv.Itoa(d.ExitStatus), strconv.Itoa(d.AttemptCount),
			shortDuration(time.Duration(d.ElapsedMS) * time.Millisecond), dash(orEmpty(d.Step)), fitted(commandLine(d.Command), commandShown),
		})
	}
	return lines
}

// fitted is s in at most limit bytes, with a sign that there was more.
func fitted(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return cut(s, limit-len("…")) + "…"
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
