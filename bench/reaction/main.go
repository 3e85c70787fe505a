// Reaction measures how fast retryx lets go: from a signal, a cancel file, the end
// of its caller or of its child, to its own exit. Every row is many rounds of real
// processes and prints quantiles.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/retryx/retryx/bench/internal/sample"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "caller" {
		caller(os.Args[2:])
		return
	}
	heed()
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reaction:", err)
		os.Exit(1)
	}
}

// heed ends the program on a signal, also on one that whoever started it in the
// background had ignored: retryx would inherit that, and take it for a job that is
// meant to outlive its caller.
func heed() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM)
	go func() {
		<-signals
		os.Exit(1)
	}()
}

// A row is one measurement.
type row struct {
	name  string
	round func(b *bench) (time.Duration, error)
	base  string        // the row whose p99 is taken off before the target is looked at
	limit time.Duration // for the p99; 0: none
}

// poll is how often a cancel file is looked at; it is the only thing that is.
const poll = 50 * time.Millisecond

func rows() []row {
	const prompt, over = 10 * time.Millisecond, 5 * time.Millisecond
	return []row{
		{name: "TERM in a backoff to exit", round: (*bench).signalInBackoff, limit: prompt},
		{name: "TERM in a backoff to exit, no state", round: (*bench).signalWithoutState, limit: prompt},
		{name: "TERM in an attempt to exit, bare", round: (*bench).signalBare},
		{name: "TERM in an attempt to exit", round: (*bench).signalInAttempt, base: "TERM in an attempt to exit, bare", limit: prompt},
		{name: "child's exit to exit, bare", round: (*bench).exitBare},
		{name: "child's exit to exit", round: (*bench).exit, base: "child's exit to exit, bare", limit: over},
		{name: "cancel file in a backoff to exit", round: (*bench).cancelInBackoff, limit: poll + prompt},
		{name: "cancel file in an attempt to exit", round: (*bench).cancelInAttempt, limit: poll + prompt},
		{name: "caller killed in a backoff to exit", round: (*bench).callerGone, limit: prompt},
		{name: "reader of stdout gone to exit", round: (*bench).readerGone, limit: prompt},
		{name: "beyond --timeout 50ms, child that obeys", round: (*bench).timeout, limit: prompt},
	}
}

// A bench is what rounds need.
type bench struct {
	self string
	dir  string
	n    int // counts files
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("reaction", flag.ContinueOnError)
	rounds := flags.Int("rounds", 200, "of each measurement")
	dir := flags.String("dir", os.TempDir(), "a directory for cancel files")
	strict := flags.Bool("strict", false, "fail if a target is missed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	self, err := sample.Self()
	if err != nil {
		return err
	}
	b := &bench{self: self, dir: *dir}
	all := rows()
	series := map[string]sample.Series{}
	// Round by round, not row by row: what else the machine does bears on all.
	for range *rounds {
		for _, r := range all {
			took, err := r.round(b)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			series[r.name] = append(series[r.name], took)
		}
	}
	missed := report(w, all, series, *rounds)
	if *strict && len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, "; "))
	}
	return nil
}

func report(w io.Writer, all []row, series map[string]sample.Series, rounds int) (missed []string) {
	fmt.Fprintf(w, "%-42s %10s %10s %10s %10s   target for the p99\n", fmt.Sprintf("%d rounds", rounds), "p50", "p90", "p99", "longest")
	for _, r := range all {
		s := series[r.name]
		fmt.Fprintf(w, "%-42s %10s %10s %10s %10s", r.name, sample.MS(s.Median()), sample.MS(s.At(0.9)), sample.MS(s.At(0.99)), sample.MS(s.At(1)))
		if r.limit > 0 {
			p99, beyond := s.At(0.99), ""
			if r.base != "" {
				p99 -= series[r.base].At(0.99)
				beyond = " beyond bare: " + sample.MS(p99)
			}
			fmt.Fprintf(w, "   %v%s  %s", r.limit, beyond, sample.Mark(p99 <= r.limit))
			if p99 > r.limit {
				missed = append(missed, r.name)
			}
		}
		fmt.Fprintln(w)
	}
	return missed
}

// path returns a name that is not taken.
func (b *bench) path() string {
	b.n++
	return filepath.Join(b.dir, fmt.Sprintf("file%d", b.n))
}

// retryx is a command line without an outcome; the rest is as it is by default.
func retryx(args ...string) *exec.Cmd {
	return exec.Command("retryx", append([]string{"--outcome", "none"}, args...)...)
}
