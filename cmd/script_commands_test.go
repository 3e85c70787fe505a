package cmd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// endsWith is: ends STATUS COMMAND [ARG...]. STATUS is an exit status, or the
// name of the signal that the command dies by: what wait(2) says, not what a
// shell makes of it. The last line of stderr, when it is an outcome, has to
// obey the schema and to agree about the status.
func endsWith(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: ends STATUS COMMAND [ARG...]")
	}
	got := ending(ts, ts.Exec(args[1], args[2:]...))
	if got != args[0] {
		ts.Fatalf("%s ended with %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
	agree(ts, ts.ReadFile("stderr"), args[0])
}

// limited is: limited STATUS FILE N COMMAND [ARG...]. It is ends with a time limit
// where an argument is LIMIT: the first one under which FILE gets N lines, so that
// no machine is too slow to come to the case that is meant.
func limited(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 4 {
		ts.Fatalf("usage: limited STATUS FILE N COMMAND [ARG...]")
	}
	note := ts.MkAbs(args[1])
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	for _, limit := range []string{"200ms", "2s", "10s"} {
		if err := os.Remove(note); err != nil && !errors.Is(err, os.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
		run := []string{args[0]}
		for _, arg := range args[3:] {
			if arg == "LIMIT" {
				arg = limit
			}
			run = append(run, arg)
		}
		endsWith(ts, false, run)
		if text, err := os.ReadFile(note); err == nil && strings.Count(string(text), "\n") >= want {
			return
		}
	}
	ts.Fatalf("%s has never got %d lines", args[1], want)
}

// ending is how a command ended: a number or the name of a signal.
func ending(ts *testscript.TestScript, err error) string {
	if err == nil {
		return "0"
	}
	var exit interface{ Sys() any }
	if !errors.As(err, &exit) {
		ts.Fatalf("no process: %v", err)
	}
	w, ok := exit.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		ts.Fatalf("no wait status: %v", err)
	case w.Signaled():
		return strings.TrimPrefix(signalName(w.Signal()), "SIG")
	}
	return strconv.Itoa(w.ExitStatus())
}

func signalName(sig syscall.Signal) string {
	for _, name := range []string{"INT", "TERM", "HUP", "QUIT", "KILL", "SEGV", "ABRT", "PIPE"} {
		if signalByName(name) == sig {
			return name
		}
	}
	return sig.String()
}

// agree holds an outcome at the end of text to what was seen from outside.
func agree(ts *testscript.TestScript, text, ended string) {
	text = strings.TrimRight(text, "\n")
	doc, err := validOutcome(text[strings.LastIndexByte(text, '\n')+1:])
	if doc == nil {
		return
	}
	ts.Check(err)
	want := ended
	if sig := signalByName(ended); sig != 0 {
		want = strconv.Itoa(128 + int(sig))
	}
	if got := field(doc, "exit_status"); got != want {
		ts.Fatalf("exit_status = %s in the outcome, want %s", got, want)
	}
}

// validOutcome reads one line. It returns nil for a line that is no outcome.
func validOutcome(line string) (map[string]any, error) {
	var doc map[string]any
	if err := json.Unmarshal([]byte(line), &doc); err != nil || doc["schema"] != "retryx.outcome/v1" {
		return nil, fmt.Errorf("no outcome: %q", line)
	}
	schema, err := outcomeSchema()
	if err != nil {
		return doc, err
	}
	if err := schema.Validate(any(doc)); err != nil {
		return doc, fmt.Errorf("%w\n%s", err, line)
	}
	return doc, nil
}

// checkOutcomes is: outcomes FILE N [name=value...]. FILE has N lines, each a
// valid outcome with these values.
func checkOutcomes(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: outcomes FILE N [name=value...]")
	}
	countLines(ts, false, args[:2])
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		doc, err := validOutcome(strings.TrimSuffix(line, "\n"))
		ts.Check(err)
		for _, want := range args[2:] {
			name, value, _ := strings.Cut(want, "=")
			if got := field(doc, name); got != value {
				ts.Fatalf("outcome %s = %q, want %q\n%s", name, got, value, line)
			}
		}
	}
}

// gone is: gone PIDFILE. It waits until the process has ended; with ! it fails
// unless the process is there now.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	if neg {
		if !alive(pid) {
			ts.Fatalf("process %d has ended", pid)
		}
		return
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if !alive(pid) {
			return
		}
	}
	ts.Fatalf("process %d is still there", pid)
}

// alive reports whether a process runs; a zombie that nobody collected does not.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// condition is what scripts may ask for: [pidns], a pid namespace can be made.
func condition(name string) (bool, error) {
	switch name {
	case "pidns":
		return pidNamespaces(), nil
	case "root":
		return os.Geteuid() == 0, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}
