package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	retryx "github.com/retryx/retryx/exec"
)

// Whether anyone still wants it, with real trees of processes. An agent is a
// shell or xargs that starts retryx and is killed while that runs. Every process
// below it holds the write end of one pipe, so the pipe's end is the moment at
// which nothing of the tree is left.

// tree is an agent and all that it starts.
type tree struct {
	t     *testing.T
	dir   string
	agent *exec.Cmd
	end   chan time.Time // when the last process has left
}

// plant starts an agent in a directory of its own. It leads a session without a
// terminal, so that how the tests were started decides nothing.
func plant(t *testing.T, dir string, argv ...string) *tree {
	t.Helper()
	notIgnored()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	tr := &tree{t: t, dir: dir, end: make(chan time.Time, 1)}
	tr.agent = exec.Command(argv[0], argv[1:]...)
	tr.agent.Dir = dir
	tr.agent.Env = surroundings(dir)
	tr.agent.ExtraFiles = []*os.File{w}
	tr.agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := tr.agent.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		_, _ = io.Copy(io.Discard, r)
		r.Close()
		tr.end <- time.Now()
	}()
	t.Cleanup(func() {
		_ = tr.agent.Process.Kill()
		_ = tr.agent.Wait()
	})
	return tr
}

// notIgnored sees to it that children do not start with INT or HUP ignored,
// however the tests were started: what is caught here is reset there.
func notIgnored() { signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT) }

// surroundings is the environment of a run whose state is below dir.
func surroundings(dir string, more ...string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, raceVariable + "=" + os.Getenv(raceVariable),
		"RETRYX_DELAY=1ms", "RETRYX_JITTER=none",
	}
	return append(env, more...)
}

// kill ends the agent as nothing can be caught, and returns when that was.
func (tr *tree) kill() time.Time {
	tr.t.Helper()
	at := time.Now()
	if err := tr.agent.Process.Kill(); err != nil {
		tr.t.Fatal(err)
	}
	_ = tr.agent.Wait()
	return at
}

// gone waits until nothing is left of the tree, and returns when that was.
func (tr *tree) gone() time.Time {
	tr.t.Helper()
	select {
	case at := <-tr.end:
		return at
	case <-time.After(patience):
		tr.t.Fatalf("something of the tree is still there after %s", patience)
		return time.Time{}
	}
}

// await waits until a file holds text at least n times.
func (tr *tree) await(name, text string, n int) {
	tr.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		data, err := os.ReadFile(filepath.Join(tr.dir, name))
		if err == nil && strings.Count(string(data), text) >= n {
			return
		}
	}
	tr.t.Fatalf("%s does not hold %q %d times\n%s", name, text, n, tr.read(name))
}

func (tr *tree) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(tr.dir, name))
	return string(data)
}

func (tr *tree) write(name, text string) {
	tr.t.Helper()
	if err := os.WriteFile(filepath.Join(tr.dir, name), []byte(text), 0o700); err != nil {
		tr.t.Fatal(err)
	}
}

// outcome waits for the outcome in a file and checks it against the schema and
// the given values.
func (tr *tree) outcome(name string, want ...string) map[string]any {
	tr.t.Helper()
	tr.await(name, "\n", 1)
	var doc map[string]any
	text := tr.read(name)
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		tr.t.Fatalf("%s: %v: %s", name, err, text)
	}
	schema, err := outcomeSchema()
	if err != nil {
		tr.t.Fatal(err)
	}
	if err := schema.Validate(any(doc)); err != nil {
		tr.t.Errorf("%s: %v", name, err)
	}
	for _, w := range want {
		key, value, _ := strings.Cut(w, "=")
		if got := field(doc, key); got != value {
			tr.t.Errorf("%s: %s = %s, want %s\n%s", name, key, got, value, text)
		}
	}
	return doc
}

// orphan is one agent that leaves, and what becomes of the run that it started.
type orphan struct {
	name  string
	flags string
	agent string // with %s for the command line of retryx; "%s; :" when empty
	child string // see below; it fails as long as there is no file "well"
	well  bool   // there is, when the agent has gone
	want  []string
	runs  int
}

// An attempt that is there when the agent is killed and ends afterwards.
const gated = `echo run >> runs; while ! test -e gate; do sleep 0.01; done; test -e well`

func TestCallerGone(t *testing.T) {
	t.Parallel()
	wanted := []string{"outcome=success", "reason=succeeded", "attempt_count=2", "exit_status=0"}
	orphaned := []string{"outcome=abandoned", "reason=caller_gone", "attempt_count=1", "exit_status=1"}
	// Fails first, then succeeds: only somebody who goes on gets there.
	const second = `echo run >> runs; while ! test -e gate; do sleep 0.01; done; test $(wc -l < runs) -gt 1`
	for _, tt := range []orphan{
		{name: "it fails", child: gated, want: orphaned, runs: 1},
		{name: "it succeeds", child: gated, well: true, want: []string{"outcome=abandoned", "reason=orphaned_success", "exit_status=0", "class=null"}, runs: 1},
		{name: "kill", flags: "--on-orphan kill", child: gated, want: []string{"outcome=abandoned", "reason=caller_gone", "signal=SIGTERM", "exit_status=143"}, runs: 1},
		{name: "kill a child with an exit of its own", flags: "--on-orphan kill", child: `trap "exit 5" TERM; ` + gated, want: []string{"reason=caller_gone", "exit_code=5", "exit_status=5"}, runs: 1},
		{name: "ignore", flags: "--on-orphan ignore", child: second, want: wanted, runs: 2},
		{name: "INT ignored", agent: `trap "" INT; %s; :`, child: second, want: wanted, runs: 2},
		{name: "HUP ignored", agent: `trap "" HUP; %s; :`, child: second, want: wanted, runs: 2},
		{name: "nohup", agent: `nohup %s; :`, child: second, want: wanted, runs: 2},
		{name: "a job in the background of a script", agent: `%s & wait`, child: second, want: wanted, runs: 2},
		{name: "it leads its session", agent: `setsid %s; :`, child: second, want: wanted, runs: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tt.agent == "" {
				tt.agent = "%s; :"
			}
			run := fmt.Sprintf("retryx %s --outcome out -- sh -c '%s' < /dev/null 2> lines", tt.flags, tt.child)
			need(t, strings.Fields(tt.agent)[0])
			tr := plant(t, dir, "sh", "-c", fmt.Sprintf(tt.agent, run))
			tr.await("runs", "run", 1)
			tr.kill()
			if tt.well {
				tr.write("well", "")
			}
			if !strings.Contains(tt.flags, "kill") { // else the attempt is not to get that far
				tr.write("gate", "")
			}
			tr.gone()
			tr.outcome("out", tt.want...)
			if got := strings.Count(tr.read("runs"), "run"); got != tt.runs {
				t.Errorf("%d attempts ran, want %d", got, tt.runs)
			}
		})
	}
}

// need skips a test for want of a program that not every system has.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if !slices.Contains([]string{"setsid", "nohup", "make", "xargs", "curl", "setpriv", "unshare", "go"}, p) {
			continue
		}
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s", p)
		}
	}
}

func TestCallerGoneDuringAWait(t *testing.T) {
	t.Parallel()
	tr := plant(t, t.TempDir(), "sh", "-c", "retryx --delay 5m --max-delay 5m --outcome out -- flaky count=runs < /dev/null 2> lines; :")
	tr.await("lines", "retrying in", 1)
	tr.kill()
	tr.gone()
	tr.outcome("out", "outcome=abandoned", "reason=caller_gone", "attempt_count=1", "budgets.0.refunded=1")
}

// A pipe that nobody reads is a caller that is gone; the first attempt runs
// even when it was so from the start.
func TestOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, flags, child string
		want               []string
	}{
		{"it fails", "", "echo run >> runs; exit 3", []string{"outcome=abandoned", "reason=caller_gone", "attempt_count=1", "exit_status=3"}},
		{"it succeeds", "", "echo run >> runs", []string{"outcome=abandoned", "reason=orphaned_success", "attempt_count=1", "exit_status=0"}},
		{"it dies of the pipe", "", "echo run >> runs; exec yes", []string{"outcome=abandoned", "attempt_count=1", "signal=SIGPIPE", "exit_status=141"}},
		{"ignore", "--on-orphan ignore", "echo run >> runs; test $(wc -l < runs) -gt 1", []string{"outcome=success", "attempt_count=2"}},
		{"ignore, and it dies of the pipe", "--on-orphan ignore", "echo run >> runs; exec yes", []string{"outcome=abandoned", "reason=output_closed", "attempt_count=1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			notIgnored()
			dir := t.TempDir()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			c := exec.Command("retryx", append(strings.Fields(tt.flags), "--outcome", "out", "--", "sh", "-c", tt.child)...)
			c.Dir, c.Env, c.Stdout = dir, surroundings(dir), w
			_ = c.Run() // its status is in the outcome
			w.Close()
			(&tree{t: t, dir: dir}).outcome("out", tt.want...)
		})
	}
}

// In a background group of its terminal it is a job that was meant to be left.
func TestCallerGoneOfABackgroundGroup(t *testing.T) {
	t.Parallel()
	notIgnored()
	dir := t.TempDir()
	tr := &tree{t: t, dir: dir}
	child := "echo run >> runs; while ! test -e gate; do sleep 0.01; done; test $(wc -l < runs) -gt 1"
	shell := exec.Command("sh", "-c", fmt.Sprintf("set -m; retryx --outcome out -- sh -c '%s' < /dev/null > /dev/null 2> lines & wait", child))
	shell.Dir, shell.Env = dir, surroundings(dir)
	terminal, err := pty.Start(shell)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	tr.await("runs", "run", 1)
	_ = shell.Process.Kill()
	_ = shell.Wait()
	tr.write("gate", "")
	tr.outcome("out", "outcome=success", "reason=succeeded", "attempt_count=2")
}

// Under the first process of a container nobody is meant to stay, so not even
// an output that nobody reads counts.
func TestCallerOfAContainer(t *testing.T) {
	t.Parallel()
	need(t, "unshare")
	if !pidNamespaces() {
		t.Skip("needs pid namespaces")
	}
	notIgnored()
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	child := "echo run >> runs; test $(wc -l < runs) -gt 1"
	c := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "sh", "-c", "retryx --outcome out -- sh -c '"+child+"'; :")
	c.Dir, c.Env, c.Stdout = dir, surroundings(dir), w
	_ = c.Run() // its status is in the outcome
	(&tree{t: t, dir: dir}).outcome("out", "outcome=success", "attempt_count=2")
}

// The same command line has the same result, whenever in the run the agent dies.
func TestCallerGoneAtAnyTime(t *testing.T) {
	t.Parallel()
	for i := range 12 {
		moment := time.Duration(i*i) * time.Millisecond / 2
		for _, tt := range []struct {
			name, agent string
			want        []string
		}{
			// Its retries would go on for long after any of these moments.
			{"attached", "%s; :", []string{"outcome=abandoned", "reason=caller_gone"}},
			{"in the background", "%s &", []string{"outcome=success", "reason=succeeded", "attempt_count=4"}},
		} {
			dir := t.TempDir()
			attempts := "-n 4 --retry-exit 1"
			child := "echo run >> runs; test $(wc -l < runs) -ge 4"
			if tt.name == "attached" {
				attempts, child = "-n 1000000 --delay 5ms --multiplier 1 --no-budget", "echo run >> runs; exit 1"
			}
			run := fmt.Sprintf("retryx %s --outcome out -q -- sh -c '%s' < /dev/null", attempts, child)
			tr := plant(t, dir, "sh", "-c", fmt.Sprintf(tt.agent, run))
			tr.await("runs", "run", 1)
			<-time.After(moment)
			tr.kill()
			tr.gone()
			tr.outcome("out", tt.want...)
		}
	}
}

// agent, retryx, sh, setsid, retryx, sh, retryx: the death of the agent is known
// at every depth at once, though no signal passes the session in between.
func TestNewsTravels(t *testing.T) {
	need(t, "setsid")
	const rounds = 5
	within := 10 * retryx.TokenInterval // one is what it takes; a busy machine has nine to get round to it, a KILL would come after more
	if stress() {
		within = 2 * retryx.TokenInterval
	}
	best := time.Hour
	for range rounds {
		dir := t.TempDir()
		scripts(t, dir, map[string]string{
			"one":   "setsid retryx --outcome out2 -q -- sh ./two",
			"two":   "retryx --outcome out3 -q -- sh ./three; exit $?",
			"three": "echo $$ >> ready; exec sleep 300",
		})
		tr := plant(t, dir, "sh", "-c", "retryx --outcome out1 -q -- sh ./one < /dev/null; :")
		tr.await("ready", "\n", 1)
		killed := tr.kill()
		best = min(best, tr.gone().Sub(killed))
		tr.outcome("out1", "outcome=abandoned", "reason=caller_gone", "attempt_count=1")
		two := tr.outcome("out2", "outcome=cancelled", "reason=cancel_token", "attempt_count=1", "exit_status=143", "depth=1")
		if text := fmt.Sprint(two["message"]); !strings.Contains(text, "caller_gone") {
			t.Errorf("the one beyond the session says %q, want to hear of caller_gone", text)
		}
		tr.outcome("out3", "outcome=cancelled", "attempt_count=1", "depth=2")
	}
	t.Logf("from the agent's death to the end of all below it: %s at best of %d", best.Round(time.Millisecond), rounds)
	if best > within {
		t.Errorf("the tree took %s to end, want %s", best, within)
	}
}

func scripts(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// Four workers three levels deep, two of them at work and two always retrying:
// when the root dies nothing of the tree is left at work, and nothing retries.
func TestFanOut(t *testing.T) {
	t.Parallel()
	need(t, "xargs", "setsid")
	const grace = 20 * time.Second // far less than the work takes, and what a worker has to be killed in
	dir := t.TempDir()
	scripts(t, dir, map[string]string{
		"list": "1 2 3 4",
		"one":  `exec retryx --kill-after 20s --outcome out1.$1 -q --no-budget -- sh ./two $1`,
		"two":  `setsid retryx --outcome out2.$1 -q --no-budget -- sh ./three $1; exit $?`,
		"three": `case $1 in
1|2) retryx --outcome out3.$1 -q --no-budget -- sh -c 'echo up >> ready; exec sleep 300';;
*) retryx --outcome out3.$1 -q --no-budget -n 1000000 --delay 5ms --multiplier 1 --retry-exit 1 -- sh -c "echo up >> tries.$1; exit 1";;
esac`,
	})
	tr := plant(t, dir, "sh", "-c", "exec xargs -P 4 -n 1 sh ./one < list")
	tr.await("ready", "up", 2)
	tr.await("tries.3", "up", 3)
	tr.await("tries.4", "up", 3)
	killed := tr.kill()
	took := tr.gone().Sub(killed)
	t.Logf("from the root's death to the end of 4 workers three levels deep: %s", took.Round(time.Millisecond))
	if took > grace {
		t.Errorf("the tree took %s to end: somebody had to be killed", took)
	}
	for i := range 4 {
		tr.outcome(fmt.Sprintf("out1.%d", i+1), "outcome=abandoned", "reason=caller_gone", "attempt_count=1")
		tr.outcome(fmt.Sprintf("out2.%d", i+1), "outcome=cancelled", "reason=cancel_token", "attempt_count=1")
		tr.outcome(fmt.Sprintf("out3.%d", i+1), "outcome=cancelled")
	}
}

// Three levels under one deadline, whose leaf does not listen: none of them
// outlives it by more than the root's kill grace, whatever is in between.
func TestDeadlineThroughLayers(t *testing.T) {
	t.Parallel()
	for name, hop := range map[string]string{
		"sh":     `sh -c 'sh ./%[1]s; exit $?'`,
		"make":   `make -s %[1]s`,
		"xargs":  `sh -c 'echo ./%[1]s | xargs -n 1 sh'`,
		"setsid": `setsid -w sh ./%[1]s`,
		"HTTP":   `sh -c 'curl -sf -H "X-Deadline: $RETRYX_DEADLINE" "$SERVER/%[1]s"'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, strings.ToLower(name), map[bool]string{true: "curl"}[name == "HTTP"])
			for _, deadline := range []time.Duration{time.Second, 4 * time.Second} {
				if deadlineThrough(t, name, hop, deadline, "ready", "out2", "out3") {
					return
				}
			}
			if deadlineThrough(t, name, hop, 15*time.Second, "ready") {
				return
			}
			t.Skip("the machine is too busy to get to the leaf in time")
		})
	}
}

// deadlineThrough holds the three levels to one deadline. It reports false when
// one of the files is missing afterwards: there was no leaf yet, or a level took
// longer for its last word than the half second that it has before the one above
// it.
func deadlineThrough(t *testing.T, name, hop string, deadline time.Duration, files ...string) bool {
	t.Helper()
	const grace = 2 * time.Second
	dir := t.TempDir()
	scripts(t, dir, map[string]string{
		"two":      "retryx --effect read --outcome out2 -q ${X_DEADLINE:+--kill-after 1500ms --deadline $X_DEADLINE} -- " + fmt.Sprintf(hop, "three"),
		"three":    "retryx --effect read --outcome out3 -q ${X_DEADLINE:+--kill-after 1s --deadline $X_DEADLINE} -- sh ./leaf",
		"leaf":     `trap "" TERM INT HUP; echo $$ >> ready; while :; do sleep 0.05; done`,
		"Makefile": ".PHONY: two three\ntwo three:\n\t@sh ./$@",
	})
	server := handler(t, dir)
	root := fmt.Sprintf("exec retryx --effect read --outcome out1 -q --deadline %s --kill-after %s -- %s < /dev/null", deadline, grace, fmt.Sprintf(hop, "two"))
	tr := plant(t, dir, "env", "SERVER="+server.URL, "sh", "-c", root)
	_ = tr.agent.Wait()
	rootEnd := time.Now()
	end := tr.gone()
	if name == "HTTP" { // its scripts do not hold the tree's pipe
		server.Close() // returns when they have ended
		end = time.Now()
	}
	for _, file := range files {
		if !strings.Contains(tr.read(file), "\n") {
			return false
		}
	}
	if later := max(0, end.Sub(rootEnd)); later > grace {
		t.Errorf("something outlived the root by %s, want at most %s", later, grace)
	}
	tr.outcome("out1", "outcome=retryable_failure", "reason=deadline_exceeded", "exit_status=124", "attempt_count=1")
	one := tr.outcome("out1")["deadline"]
	for _, below := range []string{"out2", "out3"} {
		if doc := tr.outcome(below, "attempt_count=1"); doc["deadline"] != one {
			t.Errorf("%s has deadline %v, want the root's %v", below, doc["deadline"], one)
		}
	}
	return true
}

// handler serves the scripts in dir: it runs the one that a request names, under
// the deadline that its header passes on. It does not end a script when its
// client has left; only the deadline does.
func handler(t *testing.T, dir string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := exec.Command("sh", "."+r.URL.Path)
		c.Dir = dir
		c.Env = surroundings(dir, "X_DEADLINE="+r.Header.Get("X-Deadline"), "SERVER=http://"+r.Host)
		if c.Run() != nil {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// A command of another user cannot write to us, nor can a retryx in it: that is
// a warning there, and the result stands.
func TestHintsOfAnotherUser(t *testing.T) {
	t.Parallel()
	need(t, "setpriv")
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	bin := programForAll(t)
	dir := t.TempDir()
	notIgnored()
	c := exec.Command(bin, "-n", "1", "--outcome", "out", "--", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c",
		`{ echo stop=true >> "$RETRYX_HINT"; } 2> /dev/null; `+bin+` --outcome stderr -n 1 -- sh -c "exit 4"; exit $?`)
	var stderr bytes.Buffer
	c.Dir, c.Env, c.Stderr = dir, surroundings(dir), &stderr
	_ = c.Run() // its status is in the outcome
	tr := &tree{t: t, dir: dir}
	tr.outcome("out", "exit_status=4", "outcome=retryable_failure", "reason=attempts_exhausted", "class=unknown")
	for line := range strings.Lines(stderr.String()) {
		if strings.HasPrefix(line, "{") {
			tr.write("inner", line)
		}
	}
	inner := tr.outcome("inner", "exit_status=4", "depth=1", "reason=attempts_exhausted")
	text := fmt.Sprint(inner["warnings"])
	for _, want := range []string{"tell the retryx above: ", "idempotency key: count equal calls: "} {
		if !strings.Contains(text, want) {
			t.Errorf("the inner run warns of %s, want %q in it", text, want)
		}
	}
}

// programForAll is the program where every user can run it.
func programForAll(t *testing.T) string {
	t.Helper()
	self, err := exec.LookPath("retryx")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "wanted") //nolint:usetesting // the directory above t.TempDir() is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "retryx")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bin, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}
