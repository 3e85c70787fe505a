package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const statsSchema = "retryx.stats/v1"

// tally counts outcomes that are alike.
type tally struct {
	Tool        string `json:"tool"`
	Class       string `json:"class"` // of the last attempt; "" for a success
	Outcome     string `json:"outcome"`
	Reason      string `json:"reason"`
	Invocations int64  `json:"invocations"`
	Retries     int64  `json:"retries"`
	AfterRetry  int64  `json:"success_after_retry"`
	WaitedMS    int64  `json:"waited_ms"`
}

type tallyKey struct{ tool, class, outcome, reason string }

// tallies counts by tool, class, outcome and reason.
type tallies map[tallyKey]*tally

func (t tallies) add(d *document) {
	k := tallyKey{d.Tool, orEmpty(d.Class), d.Outcome, d.Reason}
	n := t[k]
	if n == nil {
		n = &tally{Tool: k.tool, Class: k.class, Outcome: k.outcome, Reason: k.reason}
		t[k] = n
	}
	n.Invocations++
	n.Retries += int64(d.Retries)
	n.WaitedMS += d.SleptMS
	if d.Outcome == "success" && d.Retries > 0 {
		n.AfterRetry++
	}
}

// sorted returns the tallies in a fixed order.
func (t tallies) sorted() []*tally {
	list := make([]*tally, 0, len(t))
	for _, n := range t {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Class, b.Class))
	})
	return list
}

func newStatsCommand(env Env) *cobra.Command {
	var f filter
	var output string
	c := &cobra.Command{
		Use: "stats [FILE...]", Short: "count past outcomes",
		Long: "stats counts the outcomes of the journal, or of files that --outcome wrote, by tool, outcome, reason and class. With --format prometheus they are counters that start anew when the journal is rotated.",
		Example: `  retryx stats
  retryx stats --since 7d --format json
  retryx stats --format prometheus --output /var/lib/node_exporter/retryx.prom`,
	}
	r := newRecords(c, env)
	f.define(c.Flags())
	f.complete(c)
	form := addFormat(c, "table", "json", "prometheus")
	c.Flags().StringVar(&output, "output", "", "write to this `file`, whole or not at all")
	c.RunE = func(c *cobra.Command, args []string) error {
		t := tallies{}
		problems := slices.Concat(emptyFlags(c.Flags()), f.problems(time.Now()), form.problems())
		if r.growing = form.text == "prometheus"; r.growing && f.since != "" {
			problems = append(problems, "--since: counters only grow, so they cannot begin at a time; leave it out and ask Prometheus for the increase")
		}
		err := r.each(args, problems, f.words(), func(d *document) {
			if f.matches(d) {
				t.add(d)
			}
		})
		if err != nil {
			return err
		}
		if output == "" {
			return writeStats(env.Stdout, form.text, t.sorted())
		}
		return replaceFile(output, func(w io.Writer) error { return writeStats(w, form.text, t.sorted()) })
	}
	return c
}

func writeStats(w io.Writer, form string, list []*tally) error {
	switch form {
	case "json":
		return printJSON(w, struct {
			Schema string   `json:"schema"`
			Groups []*tally `json:"groups"`
		}{statsSchema, list})
	case "prometheus":
		_, err := io.WriteString(w, prometheus(list))
		return err
	default:
		return printTable(w, statsTable(list))
	}
}

func statsTable(list []*tally) [][]string {
	lines := [][]string{{"TOOL", "OUTCOME", "REASON", "CLASS", "RUNS", "RETRIES", "SAVED", "WAITED"}}
	for _, n := range list {
		lines = append(lines, []string{
			n.Tool, n.Outcome, n.Reason, dash(n.Class), strconv.FormatInt(n.Invocations, 10), strconv.FormatInt(n.Retries, 10),
			strconv.FormatInt(n.AfterRetry, 10), shortDuration(time.Duration(n.WaitedMS) * time.Millisecond),
		})
	}
	return lines
}

// prometheus writes the text format that node_exporter's textfile collector
// reads. It counts what was written since the journal was last rotated, so that a
// rotation looks like what collectors know: a counter that starts anew. With the
// older file in it the counter would drop to what the newer one holds, all of
// which would then be taken for new.
func prometheus(list []*tally) string {
	var b strings.Builder
	for _, m := range []struct {
		name, help string
		value      func(*tally) string
	}{
		{"retryx_invocations_total", "Invocations by how they ended.", func(n *tally) string { return strconv.FormatInt(n.Invocations, 10) }},
		{"retryx_retries_total", "Retries of those invocations.", func(n *tally) string { return strconv.FormatInt(n.Retries, 10) }},
		{"retryx_success_after_retry_total", "Invocations that succeeded only after a retry.", func(n *tally) string { return strconv.FormatInt(n.AfterRetry, 10) }},
		{"retryx_wait_seconds_total", "Time spent waiting between attempts.", func(n *tally) string {
			return strconv.FormatFloat(float64(n.WaitedMS)/1000, 'f', 3, 64)
		}},
	} {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s counter\n", m.name, m.help, m.name)
		for _, n := range list {
			fmt.Fprintf(&b, "%s{tool=%s,outcome=%s,reason=%s,class=%s} %s\n", m.name,
				labelValue(n.Tool), labelValue(n.Outcome), labelValue(n.Reason), labelValue(n.Class), m.value(n))
		}
	}
	return b.String()
}

func labelValue(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(printable(s)) + `"`
}

// replaceFile writes a file so that readers see the old one or the whole new
// one.
func replaceFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	const readable = 0o644 // a collector runs as somebody else
	err = errors.Join(write(f), f.Chmod(readable), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
