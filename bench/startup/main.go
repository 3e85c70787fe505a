// Startup measures what it costs to run a command that succeeds at once, by
// itself and under programs that run commands. The times are hyperfine's, which
// takes the commands in turns; the rest is counted here, and hardly depends on
// what else the machine does.
//
// A target is a ratio of medians to that of the command that begins with
// "timeout", or a peak of memory.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/retryx/retryx/bench/internal/sample"
)

const (
	leanTarget  = 1.7 // times timeout(1), without budget and journal
	plainTarget = 2.0
	peakTarget  = 12 << 20 // bytes
)

// row is one command and what was measured of it.
type row struct {
	command      string
	times        sample.Series
	faults       sample.Series // counts, as a Series has quantiles
	switches     sample.Series
	peak         int64
	instructions string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	fs := flag.NewFlagSet("startup", flag.ContinueOnError)
	rounds := fs.Int("rounds", 60, "turns that every command has")
	runs := fs.Int("runs", 5, "runs in one turn")
	dir := fs.String("dir", os.TempDir(), "where hyperfine's answers are put, and what is not shown of a command's path")
	strict := fs.Bool("strict", false, "fail when a target is missed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	commands := fs.Args()
	if len(commands) < 2 {
		return errors.New("want the commands as arguments, retryx without and with its records last")
	}
	rows := make([]row, len(commands))
	for i, c := range commands {
		rows[i].command = c
	}
	for i := range *rounds {
		if err := turn(rows, filepath.Join(*dir, strconv.Itoa(i)+".json"), *runs); err != nil {
			return err
		}
	}
	for range *rounds {
		for i := range rows {
			if err := rows[i].count(); err != nil {
				return err
			}
		}
	}
	for i := range rows {
		rows[i].instructions = instructions(rows[i].command)
	}
	if missed := report(rows, *dir); missed && *strict {
		return errors.New("a target was missed")
	}
	return nil
}

// turn lets hyperfine run every command a few times.
func turn(rows []row, file string, runs int) error {
	args := []string{"-N", "--style", "none", "--warmup", "1", "--runs", strconv.Itoa(runs), "--export-json", file}
	for _, r := range rows {
		args = append(args, r.command)
	}
	if said, err := exec.Command("hyperfine", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("hyperfine: %w: %s", err, said)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var answer struct {
		Results []struct{ Times []float64 } `json:"results"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return err
	}
	for i, r := range answer.Results {
		for _, seconds := range r.Times {
			rows[i].times = append(rows[i].times, time.Duration(seconds*float64(time.Second)))
		}
	}
	return nil
}

// count runs the command once for what the system counts of it and its child.
func (r *row) count() error {
	words := strings.Fields(r.command)
	c := exec.Command(words[0], words[1:]...)
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", r.command, err)
	}
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil
	}
	r.faults = append(r.faults, time.Duration(usage.Minflt))
	r.switches = append(r.switches, time.Duration(usage.Nvcsw+usage.Nivcsw))
	r.peak = max(r.peak, sample.Peak(usage))
	return nil
}

// instructions asks perf, where there is one and the processor can count; else it
// is a dash.
func instructions(command string) string {
	args := append([]string{"stat", "-x,", "-r", "20", "-e", "instructions:u", "--"}, strings.Fields(command)...)
	out, err := exec.Command("perf", args...).CombinedOutput()
	if err != nil {
		return "-"
	}
	for line := range strings.Lines(string(out)) {
		number, rest, _ := strings.Cut(line, ",")
		if _, err := strconv.ParseUint(number, 10, 64); err == nil && strings.Contains(rest, "instructions") {
			return number
		}
	}
	return "-"
}

// report prints the table and the targets, and reports whether one was missed.
func report(rows []row, dir string) (missed bool) {
	base := time.Duration(0)
	for _, r := range rows {
		if strings.HasPrefix(r.command, "timeout ") {
			base = r.times.Median()
		}
	}
	ratio := func(r row) float64 { return float64(r.times.Median()) / float64(max(base, 1)) }
	fmt.Printf("%-46s %9s %9s %8s %7s %9s %10s %13s\n", "command", "median", "best 10%", "ratio", "faults", "switches", "peak", "instructions")
	for _, r := range rows {
		fmt.Printf("%-46s %9s %9s %7.2fx %7d %9d %10s %13s\n", strings.ReplaceAll(r.command, dir+"/", ""),
			sample.MS(r.times.Median()), sample.MS(r.times.At(0.1)), ratio(r),
			r.faults.Median(), r.switches.Median(), sample.MiB(r.peak), r.instructions)
	}
	lean, plain := rows[len(rows)-2], rows[len(rows)-1]
	for _, t := range []struct {
		name      string
		got, want float64
	}{
		{"without budget and journal, times timeout(1)", ratio(lean), leanTarget},
		{"plain, times timeout(1)", ratio(plain), plainTarget},
		{"peak memory, MiB", float64(max(lean.peak, plain.peak)) / (1 << 20), peakTarget / (1 << 20)},
	} {
		fmt.Printf("%-46s %.2f, target %.2f: %s\n", t.name, t.got, t.want, sample.Mark(t.got <= t.want))
		missed = missed || t.got > t.want
	}
	return missed
}
