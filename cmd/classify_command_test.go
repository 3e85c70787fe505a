package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

func TestClassify(t *testing.T) {
	w := newWorkplace(t)
	rules := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(rules, []byte("tool: deploy.sh\nrules:\n  - id: busy\n    class: transient\n    exit: 9\n    wait: 10s\n    why: the lock is held\n    source: deploy.sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = "curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused\n"
	for _, test := range []struct {
		name, args, stderr  string
		class, action, rule string
	}{
		{"by a built-in rule", "--exit 7 -- curl -fsS http://127.0.0.1:9/", refused, "transient", "retry", "curl/connect-refused"},
		{"by name alone", "--exit 7 --tool curl", refused, "transient", "retry", "curl/connect-refused"},
		{"of a write that timed out", "--timed-out -- npm publish", "", "ambiguous", "check", "retryx/timed-out"},
		{"of an idempotent write that timed out", "--timed-out --idempotency-key k -- npm publish", "", "transient", "retry", "retryx/timed-out"},
		{"of an effect that is given", "--timed-out --effect write -- ls", "", "ambiguous", "check", "retryx/timed-out"},
		{"of a signal by name", "--signal segv -- ./x", "", "unexpected", "stop", ""},
		{"of a signal by number", "--signal 11 -- ./x", "", "unexpected", "stop", ""},
		{"of something unknown", "-- ./x", "strange\n", "unknown", "retry", ""},
		{"of something unknown, strictly", "--strict -- ./x", "strange\n", "unknown", "stop", ""},
		{"by a rule of a flag", "--exit 3 --rule permanent:exit=3 -- ./x", "", "permanent", "stop", "flag/1"},
		{"by a shorthand", "--exit 1 --retry-stderr try.*later -- ./x", "please try it later\n", "transient", "retry", "flag/1"},
		{"by a rules file", "--exit 9 --rules " + rules + " -- ./deploy.sh", "", "transient", "retry", "deploy.sh/busy"},
		{"of what is retried on demand", "--retry-on ambiguous --timed-out -- npm publish", "", "ambiguous", "retry", "retryx/timed-out"},
		{"of a success", "--exit 0 -- ls", "", "", "none", ""},
		{"of a success by its code", "--exit 4 --success-exit 0,4 -- ls", "", "", "none", ""},
		{"of a success that a rule denies", "--exit 0 --rule permanent:exit=0 -- ls", "", "permanent", "stop", "flag/1"},
	} {
		got := w.run(test.stderr, append([]string{"classify", "--format", "json"}, strings.Fields(test.args)...)...)
		var doc shownVerdict
		if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || got.status != 0 {
			t.Errorf("%s: classify %s = %+v, want JSON and 0", test.name, test.args, got)
			continue
		}
		class, rule := "", ""
		if doc.Class != nil {
			class = *doc.Class
		}
		if doc.Rule != nil {
			rule = *doc.Rule
		}
		if class != test.class || doc.Action != test.action || test.rule != "" && rule != test.rule || doc.Succeeded != (test.action == "none") {
			t.Errorf("%s: classify %s = %q %q by %q, want %q %q by %q", test.name, test.args, class, doc.Action, rule, test.class, test.action, test.rule)
		}
	}
}

func TestClassifyText(t *testing.T) {
	w := newWorkplace(t)
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, []byte("HTTP/1.1 503 Service Unavailable\nRetry-After: 30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := w.run("", "classify", "--exit", "22", "--stdout", out, "--", "curl", "-i", "https://example.com/")
	wantText(t, "classify with a wait on stdout", got.stdout, "class     transient", "action    retry", "wait      30s, as the output says", "read, as the arguments of curl say")
	got = w.run("login with password=hunter22 was refused\n", "classify", "--", "./x")
	if strings.Contains(got.stdout, "hunter22") || !strings.Contains(got.stdout, "evidence") {
		t.Errorf("classify of a secret = %q, want evidence without it", got.stdout)
	}
	got = w.run("", "classify", "--timed-out", "--", "npm", "publish")
	wantText(t, "classify of an ambiguous failure", got.stdout, "check: it may have happened; stop, or let --reconcile ask", "source  ")
	got = w.run("", "classify", "--exit", "0", "--", "ls")
	wantText(t, "classify of a success", got.stdout, "none: status 0 is a success and no rule says otherwise")
}

func TestClassifyRefuses(t *testing.T) {
	w := newWorkplace(t)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"classify", []string{"classify: say which command failed: -- curl -fsS URL, or --tool curl"}},
		{"classify --tool a --exit 256 --format xml -- b", []string{
			"--tool: stands for a command line that is not known; leave out one of the two",
			`--exit: want a status from 0 to 255, not "256"`,
			`--format: want text or json, not "xml"`,
		}},
		{"classify --exit 1 --signal KILL -- b", []string{"--exit: a command that a signal ended has no exit status; leave out --exit or --signal"}},
		{"classify --signal NOPE --effect writ -- b", []string{
			`--signal: "NOPE" is no signal; want a name as TERM, or a number`,
			`--effect: want read, repeatable, write or unknown, not "writ"; did you mean "write"?`,
		}},
		{"classify --batch --exit 1 x", []string{
			"--exit: does not go with --batch, whose lines say everything",
			`"x" does not go with --batch, whose lines name their commands`,
		}},
		{"classify --stdout /nowhere/out -- b", []string{"--stdout: open /nowhere/out: no such file or directory"}},
	} {
		wantProblems(t, w.refused("", strings.Fields(test.args)...), test.want...)
	}
}

func TestClassifyBatch(t *testing.T) {
	w := newWorkplace(t)
	lines := `{"id":"a","argv":["curl","x"],"exit":7,"stderr":"curl: (7) Failed to connect"}

{"id":2,"argv":["./x"],"exit":1,"stderr":"password=hunter22 refused"}
`
	got := w.run(lines, "classify", "--batch")
	answers := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	if got.status != 0 || len(answers) != 2 || !strings.HasPrefix(answers[0], `{"id":"a","class":"transient",`) || !strings.HasPrefix(answers[1], `{"id":2,`) {
		t.Fatalf("classify --batch = %+v, want two answers in order", got)
	}
	if strings.Contains(got.stdout, "hunter22") {
		t.Errorf("classify --batch = %s, want no secret", got.stdout)
	}
	got = w.run(lines, "classify", "--batch", "--stop-exit", "7")
	if !strings.HasPrefix(got.stdout, `{"id":"a","class":"permanent","effect":"read","rule":"flag/1"`) {
		t.Errorf("classify --batch --stop-exit 7 = %+v, want permanent by flag/1 first", got)
	}
	got = w.run(lines+"{\"argv\":[]}\n", "classify", "--batch")
	if got.status != exitOwn || strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stderr, "line 4") {
		t.Errorf("classify --batch with a malformed line = %+v, want 125, two answers and line 4 named", got)
	}
}

func TestLastOf(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 1000)
	for _, n := range []int{1, 9, 64, 4999, 5000, 9999, 10_000, 20_000} {
		got, err := lastOf(iotest.HalfReader(bytes.NewReader(long)), n)
		if want := long[max(0, len(long)-n):]; err != nil || !bytes.Equal(got, want) {
			t.Errorf("lastOf(10000 bytes, %d) = %d bytes, %v, want the last %d", n, len(got), err, len(want))
		}
	}
	if _, err := lastOf(iotest.ErrReader(syscall.EIO), 5); err == nil {
		t.Error("lastOf(failing reader) = nil, want its error")
	}
}

func TestParseSignal(t *testing.T) {
	for v, want := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "sigkill": syscall.SIGKILL, "9": 9, "127": 127, "0": 0, "128": 0, "-9": 0, "": 0, "SIG": 0, "FOO": 0} {
		got, err := parseSignal(v)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("parseSignal(%q) = %v, %v, want %v", v, got, err, want)
		}
	}
}
