// Growth measures how the cost of a run and of the commands grows with what there
// is: the journal, budgets, rules, attempts, output and layers. Every size of a
// table is run once in every round; printed are the best time, as whatever else
// the machine does only ever adds, and the medians of the time, of the processor
// time and of the peak of memory, which is that of the outermost process.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/retryx/retryx/bench/internal/sample"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// A line is one size of a table.
type line struct {
	size  string
	units float64 // what the time is divided by for the last column; 0: no such column
	ready func() error
	argv  []string
	fails bool // it is meant to
	loud  bool // its stderr is what is measured
}

// A table is one question.
type table struct {
	title  string
	unit   string // of the last column: "ms/..." or "us/..."
	rounds int
	lines  []line
	flat   int64 // by how many bytes the last line's peak may exceed the first's; 0: not looked at
}

type bench struct {
	dir    string // an empty directory, which is also HOME
	rounds int
	big    int64 // bytes of the largest journal
	w      io.Writer
	missed []string
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("growth", flag.ContinueOnError)
	rounds := flags.Int("rounds", 15, "runs of each line")
	big := flags.Int64("big", 1e9, "bytes of the largest journal and of the longest stream")
	dir := flags.String("dir", "", "an empty directory to work in")
	strict := flags.Bool("strict", false, "fail if memory is not flat where it should be")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("say -dir")
	}
	b := &bench{dir: *dir, rounds: *rounds, big: *big, w: w}
	if err := os.Setenv("HOME", *dir); err != nil {
		return err
	}
	tables, err := b.tables()
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := b.measure(t); err != nil {
			return fmt.Errorf("%s: %w", t.title, err)
		}
	}
	if *strict && len(b.missed) > 0 {
		return fmt.Errorf("memory grows: %s", strings.Join(b.missed, "; "))
	}
	return nil
}

// measure runs a table round by round and prints it.
func (b *bench) measure(t table) error {
	walls, cpus := make([]sample.Series, len(t.lines)), make([]sample.Series, len(t.lines))
	sizes := make([][]int64, len(t.lines))
	for range t.rounds {
		for i, l := range t.lines {
			r, err := b.once(l)
			if err != nil {
				return fmt.Errorf("%s: %w", l.size, err)
			}
			walls[i], cpus[i], sizes[i] = append(walls[i], r.Wall), append(cpus[i], r.CPU), append(sizes[i], r.Peak)
		}
	}
	peaks := make([]int64, len(t.lines))
	for i, all := range sizes {
		slices.Sort(all)
		peaks[i] = all[(len(all)-1)/2]
	}
	fmt.Fprintf(b.w, "\n%-40s %12s %12s %12s %12s  %s\n", t.title, "best", "median", "processor", "peak", t.unit)
	for i, l := range t.lines {
		fmt.Fprintf(b.w, "%40s %12s %12s %12s %12s", l.size, sample.MS(walls[i].At(0)), sample.MS(walls[i].Median()), sample.MS(cpus[i].Median()), sample.MiB(peaks[i]))
		if l.units > 0 {
			fmt.Fprintf(b.w, "  %.2f", float64(walls[i].At(0))/float64(t.scale())/l.units)
		}
		fmt.Fprintln(b.w)
	}
	if last := peaks[len(peaks)-1]; t.flat > 0 {
		ok := last <= peaks[0]+t.flat
		fmt.Fprintf(b.w, "%40s flat memory: %s\n", "", sample.Mark(ok))
		if !ok {
			b.missed = append(b.missed, t.title)
		}
	}
	return nil
}

// scale is the unit of the last column.
func (t table) scale() time.Duration {
	if strings.HasPrefix(t.unit, "ms") {
		return time.Millisecond
	}
	return time.Microsecond
}

// errSucceeded is the end of a command that is meant to fail.
var errSucceeded = errors.New("it succeeded")

func (b *bench) once(l line) (sample.Run, error) {
	if l.ready != nil {
		if err := l.ready(); err != nil {
			return sample.Run{}, err
		}
	}
	cmd := exec.Command(l.argv[0], l.argv[1:]...)
	cmd.Dir = b.dir
	var said strings.Builder
	if !l.fails && !l.loud {
		cmd.Stderr = &said
	}
	r := sample.Measure(cmd)
	if failed := r.Err != nil; failed != l.fails {
		return r, fmt.Errorf("%s: %w: %s", strings.Join(l.argv, " "), cmp.Or(r.Err, errSucceeded), strings.TrimSpace(said.String()))
	}
	return r, nil
}

func (b *bench) path(name ...string) string {
	return filepath.Join(append([]string{b.dir}, name...)...)
}
