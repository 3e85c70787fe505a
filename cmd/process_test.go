package cmd_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The process that retryx is, and those below it, as others see them: signals at
// any moment, stopped and foreign commands, and what stays behind. Each tree is
// planted with retryx itself as its agent (see plant in wanted_test.go), so a
// tree that is gone has left no orphan. The numbers are those of docs/scenarios.md.

// stress reports whether the long runs are asked for.
func stress() bool { return os.Getenv("RETRYX_STRESS") != "" }

// wrap plants retryx with flags and a command.
func wrap(t *testing.T, args ...string) *tree {
	t.Helper()
	return plant(t, t.TempDir(), append([]string{"retryx"}, args...)...)
}

// signal sends retryx a signal.
func (tr *tree) signal(sig syscall.Signal) {
	tr.t.Helper()
	if err := tr.agent.Process.Signal(sig); err != nil {
		tr.t.Fatalf("signal %v: %v", sig, err)
	}
}

// ended waits for retryx and returns how it ended: a number, or the name of the
// signal that it died by.
func (tr *tree) ended() string {
	tr.t.Helper()
	hung := time.AfterFunc(patience, func() { _ = tr.agent.Process.Kill() })
	defer hung.Stop()
	_ = tr.agent.Wait()
	status, ok := tr.agent.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		tr.t.Fatal("no wait status")
	case status.Signaled():
		return strings.TrimPrefix(signalName(status.Signal()), "SIG")
	}
	return strconv.Itoa(status.ExitStatus())
}

// pid waits for the number that a command has written into a file.
func (tr *tree) pid(name string) int {
	tr.t.Helper()
	tr.await(name, "\n", 1)
	n, err := strconv.Atoi(strings.TrimSpace(tr.read(name)))
	if err != nil {
		tr.t.Fatal(err)
	}
	return n
}

// awaitState waits until a process is in a state of ps, T for stopped, or is in
// any other.
func awaitState(t *testing.T, pid int, state string, want bool) {
	t.Helper()
	if !eventually(func() bool { return strings.HasPrefix(processState(pid), state) == want }) {
		t.Fatalf("process %d is in state %q; is it %s: want %v", pid, processState(pid), state, want)
	}
}

// Scenario 4; coreutils' NEWS 8.27 and 9.5 list races before the fork, between
// fork and exec, and after the reap: a signal at any moment leaves no orphan,
// starts no attempt, and is told.
func TestSignalAtAnyMoment(t *testing.T) {
	t.Parallel()
	rounds := 24
	if stress() {
		rounds = 400
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		// Half of them around the start, half between the attempts, however long a
		// start takes on this machine.
		since := []string{"start", "first attempt"}[round%2]
		sig := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}[dice.IntN(3)]
		moment := time.Duration(dice.Int64N(int64(30 * time.Millisecond)))
		t.Run(fmt.Sprintf("%v after %v from the %s", sig, moment, since), func(t *testing.T) {
			tr := wrap(t, "-q", "-n", "100000", "--no-budget", "--no-journal", "--multiplier", "1", "--outcome", "out", "--",
				"sh", "-c", "echo run >> runs; exit 1")
			if since != "start" {
				tr.await("runs", "run", 1)
			}
			<-time.After(moment)
			tr.signal(sig)
			ended := tr.ended()
			tr.gone()
			name := strings.TrimPrefix(signalName(sig), "SIG")
			runs := strings.Count(tr.read("runs"), "run")
			if tr.read("out") == "" { // it came before retryx listened, and so before the first attempt
				if ended != name || runs > 0 {
					t.Errorf("ended by %s after %d runs without an outcome, want by %s after none", ended, runs, name)
				}
				return
			}
			doc := tr.outcome("out", "outcome=cancelled", "reason=signal")
			if ended != name && (ended != "1" || field(doc, "exit_status") != "1") {
				t.Errorf("ended by %s, want by %s, or with the 1 that an attempt had exited with", ended, name)
			}
			if count := field(doc, "attempt_count"); count != strconv.Itoa(runs) && count != strconv.Itoa(runs+1) {
				t.Errorf("%d attempts ran, the outcome tells of %s", runs, count)
			}
		})
	}
}

// Scenario 13: a stopped command keeps TERM pending, so it is continued as well,
// and its handler runs. Without that it would be killed after an hour.
func TestStoppedCommandIsEnded(t *testing.T) {
	t.Parallel()
	tr := wrap(t, "--kill-after", "1h", "--outcome", "out", "--", "sh", "-c", "echo $$ > pid; exec flaky hang ready=r count=c trap=TERM:5")
	tr.await("r", "ready", 1)
	pid := tr.pid("pid")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitState(t, pid, "T", true)
	tr.signal(syscall.SIGTERM)
	if got := tr.ended(); got != "5" {
		t.Errorf("ended with %s, want the command's own 5", got)
	}
	tr.gone()
	tr.outcome("out", "outcome=cancelled", "exit_code=5")
}

// Scenario 14: TSTP stops the command and then retryx, CONT continues both.
func TestStopAndContinue(t *testing.T) {
	t.Parallel()
	tr := wrap(t, "--outcome", "out", "--", "sh", "-c", "echo $$ > pid; exec flaky hang ready=r count=c trap=CONT:-1,TERM:6")
	tr.await("r", "ready", 1)
	pid := tr.pid("pid")
	tr.signal(syscall.SIGTSTP)
	awaitState(t, pid, "T", true)
	awaitState(t, tr.agent.Process.Pid, "T", true)
	tr.signal(syscall.SIGCONT)
	tr.await("c.got", "continued", 1)
	awaitState(t, pid, "T", false)
	tr.signal(syscall.SIGTERM)
	if got := tr.ended(); got != "6" {
		t.Errorf("ended with %s, want 6", got)
	}
}

// Scenario 17: QUIT reaches the command, and ends retryx with 131 and without
// the dump of stacks that it means to Go.
func TestQuit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file, text string
		args             []string
	}{
		{"in an attempt", "pid", "\n", []string{"sh", "-c", "ulimit -c 0; echo $$ > pid; exec sleep 300"}},
		{"in a wait", "err", "retrying in", []string{"sh", "-c", "exit 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			script := `exec retryx --delay 1h --max-delay 1h --outcome out -- "$@" 2>err`
			tr := plant(t, t.TempDir(), append([]string{"sh", "-c", script, "sh"}, tt.args...)...)
			tr.await(tt.file, tt.text, 1)
			tr.signal(syscall.SIGQUIT)
			if got := tr.ended(); got != "131" {
				t.Errorf("ended with %s, want 131", got)
			}
			tr.gone()
			tr.outcome("out", "outcome=cancelled", "reason=signal", "exit_status=131", "attempt_count=1")
			if text := tr.read("err"); strings.Contains(text, "goroutine") {
				t.Errorf("stderr has a dump of stacks:\n%s", text)
			}
		})
	}
}

// Scenario 25; https://github.com/nick-fields/retry/issues/124: a command that is
// somebody else's by now cannot be ended. That is said, it is waited for, and no
// other attempt starts meanwhile.
func TestForeignCommand(t *testing.T) {
	t.Parallel()
	need(t, "setpriv")
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	if out, err := exec.Command("setpriv", "--bounding-set=-kill", "--inh-caps=-kill", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot give up a capability: %s", out)
	}
	// Root without the right to signal others is what any user is to sudo.
	const foreign = `exec 8>> foreign 9> lock; flock -n 9 || echo two > overlap; exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "echo \$RETRYX_ATTEMPT >&8; sleep %.1f; exit 3"`
	var tr *tree
	var got string
	for _, limit := range []time.Duration{150 * time.Millisecond, time.Second, 4 * time.Second} {
		script := fmt.Sprintf(foreign, 2*limit.Seconds()+0.3)
		tr = plant(t, t.TempDir(), "setpriv", "--bounding-set=-kill", "--inh-caps=-kill",
			"retryx", "-n", "2", "-t", limit.String(), "--kill-after", "50ms", "--outcome", "out", "--", "sh", "-c", script)
		got = tr.ended()
		tr.gone()
		doc := tr.outcome("out")
		late := field(doc, "attempts.0.timed_out") == "true" && field(doc, "attempts.1.timed_out") == "true"
		if late && tr.read("foreign") == "1\n2\n" {
			break // each attempt was somebody else's before its limit and after it
		}
	}
	if got != "124" {
		t.Errorf("ended with %s, want 124", got)
	}
	doc := tr.outcome("out", "attempt_count=2", "exit_code=3", "timed_out=true", "reason=attempts_exhausted")
	if text := fmt.Sprint(doc["warnings"]); !strings.Contains(text, "timeout_not_enforced") {
		t.Errorf("warnings = %s, want timeout_not_enforced in them", text)
	}
	if text := tr.read("overlap"); text != "" {
		t.Error("an attempt started while the one before it lived")
	}
}

// Scenario 28: what a limit or a cancel file ends, it ends as a whole: also a
// child of the command that does not listen, and also after the last attempt.
func TestStubbornLeftoverOfTheLastAttempt(t *testing.T) {
	t.Parallel()
	const family = `sh -c 'trap "" TERM; echo ready >> ready; while :; do sleep 0.02; done' 2>&- & exec sleep 300`
	leaves := func(t *testing.T, flag, value string) *tree {
		t.Helper()
		return wrap(t, "-n", "1", flag, value, "--kill-after", "100ms", "--outcome", "out", "--", "sh", "-c", family)
	}
	gone := func(tr *tree, want ...string) {
		tr.t.Helper()
		tr.gone() // or it would be there for ever
		doc := tr.outcome("out", append(want, "signal=SIGTERM", "attempt_count=1")...)
		if text := fmt.Sprint(doc["warnings"]); text != "[]" {
			tr.t.Errorf("warnings = %s, want none", text)
		}
	}
	t.Run("cancel file", func(t *testing.T) {
		t.Parallel()
		tr := leaves(t, "--cancel-file", "stop")
		tr.await("ready", "ready", 1)
		tr.write("stop", "")
		gone(tr, "outcome=cancelled", "exit_status=143")
	})
	t.Run("limit", func(t *testing.T) {
		t.Parallel()
		for _, limit := range []string{"300ms", "2s", "10s"} { // until it gets as far as not to listen
			tr := leaves(t, "-t", limit)
			if tr.ended(); tr.read("ready") != "" {
				gone(tr, "timed_out=true", "exit_status=124")
				return
			}
		}
		t.Skip("the machine is too busy for a command to start within 10 seconds")
	})
}

// Scenario 30; https://github.com/docker/docker-agent/issues/2462: what an earlier
// attempt left in a session of its own may write to stderr for as long as retryx
// lives; that it still does at the end is said.
func TestDaemonOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	need(t, "setsid")
	dir := t.TempDir()
	scripts(t, dir, map[string]string{
		"daemon": `while ! test -e go; do sleep 0.01; done; echo late >&2; echo lived > lived; while ! test -e over; do sleep 0.01; done`,
		"attempt": `case $RETRYX_ATTEMPT in
1) setsid sh ./daemon > /dev/null & exit 1;;
*) echo > go; for i in $(seq 500); do test -e lived && exit 0; sleep 0.01; done; exit 1;;
esac`,
	})
	tr := plant(t, dir, "sh", "-c", "exec retryx -n 2 --outcome out -- sh ./attempt 2>err")
	if got := tr.ended(); got != "0" {
		t.Errorf("ended with %s, want 0: the daemon wrote and lived", got)
	}
	if text := tr.read("err"); !strings.Contains(text, "late\n") {
		t.Errorf("stderr = %q, want what the daemon wrote", text)
	}
	doc := tr.outcome("out", "outcome=success", "attempt_count=2")
	if text := fmt.Sprint(doc["warnings"]); !strings.Contains(text, "stderr_left_open") {
		t.Errorf("warnings = %s, want stderr_left_open in them", text)
	}
	tr.write("over", "")
	tr.gone()
}

// Scenario 36, as a whole program: the attempts end at about the time of their
// limit. However that falls out, label, status and JSON tell the same.
func TestLimitAtTheVeryEnd(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		dir := t.TempDir()
		c := exec.Command("retryx", "-n", "1", "-t", fmt.Sprintf("%dms", 40+2*i), "--outcome", "out", "--", "sleep", "0.05")
		c.Dir, c.Env = dir, surroundings(dir)
		err := c.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		want := []string{"timed_out=false", "outcome=success", "exit_status=0", "exit_code=0"}
		if c.ProcessState.ExitCode() != 0 {
			want = []string{"timed_out=true", "outcome=retryable_failure", "exit_status=124"}
		}
		(&tree{t: t, dir: dir}).outcome("out", want...)
	}
}
