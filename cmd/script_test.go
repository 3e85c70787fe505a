package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/cmd"
)

// Whole-program tests: the scripts in testdata/script run the real program,
// which is this test binary under another name.
//
//	retryx    the program
//	flaky     fails a given number of times, then succeeds (see flaky)
//	outcome   checks the outcome at the end of a file or of stderr
//	signal    sends a signal to a background command
//	waitline  waits until a file has a line with a text
//	lines     counts the lines of a file
//	absent    fails if a file exists
//	ends      runs a command and checks how it ended (script_commands_test.go)
//	limited   is ends under a time limit that grows until the case is seen
//	outcomes  checks that a file is nothing but outcomes
//	gone      waits until a process is no more
//	valid     checks JSON against a schema (script_records_test.go)
//	exposition  checks what Prometheus is to read
func TestMain(m *testing.M) {
	if strings.HasSuffix(os.Args[0], ".test") && (signal.Ignored(syscall.SIGHUP) || signal.Ignored(syscall.SIGINT)) {
		startWithDefaults()
	}
	if os.Getenv(raceVariable) == "" {
		_ = os.Setenv(raceVariable, raceOptions)
	}
	testscript.Main(m, map[string]func(){
		"retryx": func() {
			settleStdin()
			os.Exit(cmd.Main(cmd.System()))
		},
		"retryx-peak": func() { os.Exit(runMeasured()) },
		"flaky":       func() { os.Exit(flaky(os.Args[1:])) },
	})
}

// Each program that is built with the race detector sleeps a second when it ends,
// unless told not to; the tests start thousands.
const (
	raceVariable = "GORACE"
	raceOptions  = "atexit_sleep_ms=0"
)

// startWithDefaults starts this test run anew with HUP and INT as a terminal
// leaves them. Under nohup and in the background of a script they are ignored,
// which retryx and its children rightly keep to; but what most tests are about
// is what it does when they are not. Go cannot undo it itself.
func startWithDefaults() {
	env, err := exec.LookPath("env")
	if err != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	argv := append([]string{"env", "--default-signal=HUP", "--default-signal=INT", self}, os.Args[1:]...)
	_ = syscall.Exec(env, argv, os.Environ()) // where env cannot do it the tests will tell
}

// settleStdin waits until the writer of stdin, if that is a pipe, has left.
// Scripts run everything with an empty pipe as stdin whose writer leaves in a
// moment; without the wait it may seem to come to its end during an attempt,
// which is what a used-up input looks like. A pipe that stays open costs the
// whole limit.
func settleStdin() {
	const limitMS = 500
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	fds := []unix.PollFd{{Fd: int32(os.Stdin.Fd())}}
	_, _ = unix.Poll(fds, limitMS)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv(raceVariable, os.Getenv(raceVariable))
			for _, kv := range os.Environ() {
				if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "RETRYX_") || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "GITHUB_") {
					env.Setenv(name, "")
				}
			}
			env.Setenv("STATE", filepath.Join(home, ".local", "state", "retryx"))
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"outcome":  checkOutcome,
			"signal":   sendSignal,
			"waitline": waitLine,
			"absent":   absent,
			"lines":    countLines,
			"ends":     endsWith,
			"limited":  limited,
			"outcomes": checkOutcomes,
			"gone":     gone,

			"valid":      checkValid,
			"exposition": checkExposition,
		},
		Condition:           condition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// flaky is a command that tests control: flaky [FLAG...]
//
//	count=FILE   add a line to FILE for every run
//	fail=N       fail as long as FILE has at most N lines; fail=0 never fails
//	exit=N       the status of a failure (1)
//	err=TEXT     written to stderr on a failure; out=TEXT on every run to stdout
//	ready=FILE   create FILE when signals are caught
//	trap=SIG:N   on SIG note it in FILE.got and exit N
//	hang         do not end until a signal does it
//	die=SIG      die by SIG instead of exiting
func flaky(args []string) int {
	opt := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		opt[name] = value
	}
	got := make(chan os.Signal, 16)
	codes := map[os.Signal]int{}
	for spec := range strings.SplitSeq(opt["trap"], ",") {
		if name, code, ok := strings.Cut(spec, ":"); ok {
			sig := signalByName(name)
			codes[sig], _ = strconv.Atoi(code)
			signal.Notify(got, sig)
		}
	}
	runs := 1
	if file := opt["count"]; file != "" {
		appendLine(file, "run")
		data, _ := os.ReadFile(file)
		runs = bytes.Count(data, []byte("\n"))
	}
	if text, ok := opt["out"]; ok {
		fmt.Println(text)
	}
	if file := opt["ready"]; file != "" {
		appendLine(file, "ready")
	}
	if _, ok := opt["hang"]; ok {
		for {
			sig := <-got
			appendLine(opt["count"]+".got", sig.String())
			if code := codes[sig]; code >= 0 {
				return code
			}
		}
	}
	limit, err := strconv.Atoi(opt["fail"])
	if err == nil && runs > limit {
		return 0
	}
	if text, ok := opt["err"]; ok {
		fmt.Fprintln(os.Stderr, text)
	}
	if name := opt["die"]; name != "" {
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), signalByName(name))
		select {}
	}
	if code, err := strconv.Atoi(opt["exit"]); err == nil {
		return code
	}
	return 1
}

func appendLine(file, text string) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, text)
}

func signalByName(name string) syscall.Signal {
	return map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"KILL": syscall.SIGKILL, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH,
		"SEGV": syscall.SIGSEGV, "ABRT": syscall.SIGABRT, "PIPE": syscall.SIGPIPE, "TSTP": syscall.SIGTSTP,
		"CONT": syscall.SIGCONT, "STOP": syscall.SIGSTOP, "ALRM": syscall.SIGALRM,
	}[name]
}

var outcomeSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile("../docs/schema/outcome.v1.json")
})

// checkOutcome is: outcome FILE [name=value ...]. FILE may be stderr. The last
// line of it must be an outcome that obeys the schema and has the given values;
// a name may be dotted: attempts.0.class; name>=N compares numbers.
func checkOutcome(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: outcome FILE [name=value ...]")
	}
	text := strings.TrimRight(ts.ReadFile(args[0]), "\n")
	line := text[strings.LastIndexByte(text, '\n')+1:]
	var doc map[string]any
	err := json.Unmarshal([]byte(line), &doc)
	if neg {
		if err == nil && doc["schema"] == "retryx.outcome/v1" {
			ts.Fatalf("there is an outcome: %s", line)
		}
		return
	}
	ts.Check(err)
	schema, err := outcomeSchema()
	ts.Check(err)
	ts.Check(schema.Validate(any(doc)))
	for _, want := range args[1:] {
		name, value, _ := strings.Cut(want, "=")
		if got := field(doc, strings.TrimSuffix(name, ">")); !holds(doc, want) {
			ts.Fatalf("outcome %s = %q, want %q\n%s", name, got, value, line)
		}
	}
}

// holds reports whether doc has what is wanted: name=value, or name>=number.
func holds(doc any, want string) bool {
	name, value, _ := strings.Cut(want, "=")
	name, least := strings.CutSuffix(name, ">")
	got := field(doc, name)
	if !least {
		return got == value
	}
	g, gerr := strconv.ParseFloat(got, 64)
	w, werr := strconv.ParseFloat(value, 64)
	return gerr == nil && werr == nil && g >= w
}

func field(doc any, name string) string {
	for part := range strings.SplitSeq(name, ".") {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i < len(v) {
				doc = v[i]
			} else {
				return "(absent)"
			}
		}
	}
	if s, ok := doc.(string); ok {
		return s
	}
	text, _ := json.Marshal(doc)
	return string(text)
}

// sendSignal is: signal SIG PIDFILE.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signalByName(args[0])))
}

// patience bounds how long a script waits for something that must happen; it
// is no measurement.
const patience = 30 * time.Second

// waitLine is: waitline FILE TEXT [COUNT].
func waitLine(ts *testscript.TestScript, _ bool, args []string) {
	want := 1
	if len(args) > 2 {
		want, _ = strconv.Atoi(args[2])
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Count(string(data), args[1]) >= want {
			return
		}
	}
	ts.Fatalf("no line with %q in %s", args[1], args[0])
}

func absent(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		if _, err := os.Lstat(ts.MkAbs(name)); !errors.Is(err, os.ErrNotExist) {
			ts.Fatalf("%s exists", name)
		}
	}
}

// countLines is: lines FILE N.
func countLines(ts *testscript.TestScript, _ bool, args []string) {
	got := slices.DeleteFunc(strings.Split(ts.ReadFile(args[0]), "\n"), func(s string) bool { return s == "" })
	if want, _ := strconv.Atoi(args[1]); len(got) != want {
		ts.Fatalf("%s has %d lines, want %d:\n%s", args[0], len(got), want, strings.Join(got, "\n"))
	}
}
