package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// retryx is a command line without an outcome on stderr.
func retryx(args ...string) []string { return append([]string{"retryx", "--outcome", "none"}, args...) }

// lean is retryx without anything that is written.
func lean(args ...string) []string { return append(retryx("--no-budget", "--no-journal"), args...) }

func (b *bench) tables() ([]table, error) {
	var all []table
	for _, build := range []func() (table, error){
		b.journalAppended, b.journalRead("history"), b.journalRead("stats"), b.journalRead("report"),
		b.budgetsNamed, b.budgetsKept, b.rules(true), b.rules(false), b.attempts, b.output, b.layers,
	} {
		t, err := build()
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// sizes are the journals that are measured.
func (b *bench) sizes() []int64 { return []int64{1e6, b.big / 10, b.big} }

func megabytes(n int64) string { return strconv.FormatInt(n/1e6, 10) + " MB" }

// outcomes writes a file of at least size bytes of outcomes: what three runs said,
// a success, a failure after retries and one that was denied, over and over.
func (b *bench) outcomes(size int64) (string, error) {
	path := b.path(fmt.Sprintf("outcomes-%d", size))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	seed := path + ".seed"
	for _, args := range [][]string{
		{"--", "true"},
		{"--no-budget", "-n", "3", "--delay", "1ms", "--", "sh", "-c", "echo connection refused >&2; exit 7"},
		{"-b", "empty", "--budget-capacity", "1", "-n", "5", "--delay", "1ms", "--", "false"},
	} {
		cmd := exec.Command("retryx", append([]string{"--no-journal", "--outcome", seed}, args...)...)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil {
			return "", fmt.Errorf("make outcomes: %w: %s", err, out)
		}
	}
	lines, err := os.ReadFile(seed)
	if err != nil {
		return "", err
	}
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	for n := int64(0); n < size; n += int64(len(lines)) {
		if _, err := w.Write(lines); err != nil {
			return "", err
		}
	}
	return path, w.Flush()
}

// journalAppended is a run that succeeds at once beside journals of several
// sizes. Those beyond 16 MiB are moved aside by the first run that finds them.
func (b *bench) journalAppended() (table, error) {
	t := table{title: "a run that succeeds, by its journal", rounds: 2 * b.rounds, flat: 1 << 20}
	for _, size := range append([]int64{0, 1e6, 16e6}, b.sizes()[1:]...) {
		state := b.path(fmt.Sprintf("state-%d", size))
		if err := os.MkdirAll(state, 0o700); err != nil {
			return t, err
		}
		journal := filepath.Join(state, "outcomes.jsonl")
		ready := func() error { _ = os.Remove(journal); return nil }
		if size > 0 {
			path, err := b.outcomes(size)
			if err != nil {
				return t, err
			}
			if err := link(path, journal); err != nil {
				return t, err
			}
			ready = func() error { return restore(journal, size) }
		}
		t.lines = append(t.lines, line{size: megabytes(size), ready: ready, argv: retryx("--state-dir", state, "--", "true")})
	}
	return t, nil
}

// link copies the outcomes to where a journal is; a second name would not be
// accepted there.
func link(from, to string) error { return exec.Command("cp", "--sparse=never", from, to).Run() }

// restore puts a journal back that was moved aside, and to its size.
func restore(journal string, size int64) error {
	if info, err := os.Stat(journal + ".1"); err == nil && info.Size() >= size {
		if err := os.Rename(journal+".1", journal); err != nil {
			return err
		}
	}
	info, err := os.Stat(journal)
	if err != nil {
		return err
	}
	if info.Size() < size {
		return fmt.Errorf("journal has %d bytes, not %d", info.Size(), size)
	}
	return nil
}

// journalRead is a command over outcomes of several sizes; the last column is
// the time for a megabyte.
func (b *bench) journalRead(command string) func() (table, error) {
	return func() (table, error) {
		t := table{title: command + ", by what it reads", unit: "ms/MB", rounds: 1, flat: 12 << 20}
		if command == "history" {
			t.rounds = 3 // the others take a while
		}
		for _, size := range b.sizes() {
			path, err := b.outcomes(size)
			if err != nil {
				return t, err
			}
			l := line{size: megabytes(size), units: float64(size) / 1e6, argv: []string{"retryx", command, path}}
			l.fails = command == "report" // some of the steps did
			t.lines = append(t.lines, l)
		}
		return t, nil
	}
}

// budgetsNamed is a run with one retry that pays from several budgets, which all
// have to be full.
func (b *bench) budgetsNamed() (table, error) {
	t := table{title: "one retry, by budgets that pay it", unit: "us/each", rounds: b.rounds, flat: 2 << 20}
	for _, n := range []int{1, 10, 100} {
		args := []string{"-n", "2", "--delay", "0s", "--budget-capacity", "1000", "--no-journal"}
		for i := range n {
			args = append(args, "-b", fmt.Sprintf("budget-%d", i))
		}
		t.lines = append(t.lines, line{size: strconv.Itoa(n), units: float64(n), argv: append(retryx(args...), "--", "false"), fails: true})
	}
	return t, nil
}

// budgetsKept is a list of many records.
func (b *bench) budgetsKept() (table, error) {
	t := table{title: "budget list, by budgets", unit: "us/each", rounds: b.rounds}
	for _, n := range []int{1, 10, 100, 1000} {
		state := b.path(fmt.Sprintf("kept-%d", n))
		if err := keep(state, n); err != nil {
			return t, err
		}
		t.lines = append(t.lines, line{size: strconv.Itoa(n), units: float64(n), argv: []string{"retryx", "budget", "list", "--state-dir", state}})
	}
	return t, nil
}

// keep makes n budgets.
func keep(state string, n int) error {
	for from := 0; from < n; from += 100 {
		args := []string{"--outcome", "none", "--no-journal", "--state-dir", state, "-n", "2", "--delay", "0s"}
		for i := from; i < min(from+100, n); i++ {
			args = append(args, "-b", fmt.Sprintf("budget-%d", i))
		}
		cmd := exec.Command("retryx", append(args, "--", "false")...)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil {
			return fmt.Errorf("make budgets: %w: %s", err, out)
		}
	}
	return nil
}

// rules is a run with many rules of the user's own in its configuration, none of
// which matches: one that succeeds pays for reading them, one that fails for
// matching them too.
func (b *bench) rules(success bool) func() (table, error) {
	return func() (table, error) {
		t := table{title: "a run that succeeds, by the user's rules", rounds: b.rounds}
		argv := []string{"true"}
		if !success {
			t.title = "a failure judged, by the user's rules"
			argv = []string{"sh", "-c", "echo something went wrong in module 17 >&2; exit 3"}
		}
		for _, n := range []int{0, 10, 100, 1000} {
			path := b.path(fmt.Sprintf("rules-%d.yaml", n))
			var text bytes.Buffer
			text.WriteString("no_journal: true\n")
			if n > 0 {
				text.WriteString("rules:\n")
			}
			for i := range n {
				fmt.Fprintf(&text, "  - 'transient: exit=3 stderr=^code %d: .* is not (ready|there)'\n", i)
			}
			if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
				return t, err
			}
			t.lines = append(t.lines, line{
				size: strconv.Itoa(n), fails: !success,
				argv: append(retryx("--config", path, "--no-budget", "-n", "1", "--"), argv...),
			})
		}
		return t, nil
	}
}

// attempts is a run of many attempts that wait for nothing.
func (b *bench) attempts() (table, error) {
	t := table{title: "a run that fails, by its attempts", unit: "us/each", rounds: min(b.rounds, 3), flat: 8 << 20}
	for _, n := range []int{1, 10, 100, 1000, 5000} {
		argv := lean("-n", strconv.Itoa(n), "--delay", "0s", "--", "false")
		t.lines = append(t.lines, line{size: strconv.Itoa(n), units: float64(n), argv: argv, fails: true})
	}
	return t, nil
}

// output is a run whose child writes to stderr.
func (b *bench) output() (table, error) {
	t := table{title: "a run that succeeds, by its stderr", unit: "ms/MB", rounds: 3, flat: 2 << 20}
	for _, size := range append([]int64{0}, b.sizes()...) {
		script := "yes 'a line of what programs say while they work' 2>/dev/null | head -c " + strconv.FormatInt(size, 10) + " >&2"
		argv := append(lean("--"), "sh", "-c", script)
		t.lines = append(t.lines, line{size: megabytes(size), units: float64(size) / 1e6, argv: argv, loud: true})
	}
	return t, nil
}

// layers is retryx in retryx.
func (b *bench) layers() (table, error) {
	t := table{title: "a run that succeeds, by its layers", unit: "us/each", rounds: b.rounds}
	for _, n := range []int{1, 2, 3, 5, 8} {
		argv := strings.Fields(strings.Repeat("retryx --outcome none -- ", n) + "true")
		t.lines = append(t.lines, line{size: strconv.Itoa(n), units: float64(n), argv: argv})
	}
	return t, nil
}
