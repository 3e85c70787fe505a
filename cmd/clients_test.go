package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Real clients against faults on the loopback (clients_faults_test.go): what
// they print and return today decides whether a run ends as an operator would
// want. A client that the machine lacks is skipped.

// clientCase is one client and one fault.
type clientCase struct {
	name    string
	client  string                 // the program that must be there
	needs   []string               // further programs
	behind  []string               // what the client is wrapped in
	fault   func(*testing.T) *peer // what it talks to
	argv    []string               // {url}, {port}, {host}, {dir} are replaced
	flags   []string
	prepare func(t *testing.T, dir string)
	file    string // content of {dir}/file, with the same replaced
	want    ended
}

// ended is how an invocation ended.
type ended struct {
	Outcome  string
	Reason   string
	Attempts int
}

// The endings that operators want.
func recovered(attempts int) ended { return ended{"success", "succeeded", attempts} }
func stopped(class string) ended   { return ended{"hard_failure", class, 1} }
func gaveUp() ended                { return ended{"retryable_failure", "attempts_exhausted", mostAttempts} }

const (
	mostAttempts = 3
	shortLimit   = "400ms" // long before the peer that hangs would answer
)

func TestClients(t *testing.T) {
	t.Parallel()
	for _, c := range clientCases() {
		t.Run(c.client+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func clientCases() []clientCase {
	return slices.Concat(transferClients(), shellClients(), rsyncClients(), packageClients(), aptClients(), databaseClients(), crashingClients())
}

func (c *clientCase) run(t *testing.T) {
	t.Helper()
	for _, program := range append([]string{c.client}, c.needs...) {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s on this machine", program)
		}
	}
	dir := t.TempDir()
	with := strings.NewReplacer("{dir}", dir)
	if c.fault != nil {
		p := c.fault(t)
		with = strings.NewReplacer("{dir}", dir, "{url}", "http://"+p.address, "{host}", p.address, "{port}", p.port(), "{peer}", p.files, "{user}", myself())
	}
	args := append([]string{"-n", strconv.Itoa(mostAttempts), "--delay", "1ms", "--jitter", "none", "--kill-after", "1s"}, c.flags...)
	args = append(append(args, "--"), c.behind...)
	args = append(args, c.client)
	for _, a := range c.argv {
		args = append(args, with.Replace(a))
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(with.Replace(c.file)), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.prepare != nil {
		c.prepare(t, dir)
	}
	got, output := retryxRun(t, dir, args)
	if got != c.want {
		t.Errorf("retryx -- %s %s = %+v, want %+v; it said:\n%s", c.client, strings.Join(c.argv, " "), got, c.want, output)
	}
}

// retryxRun runs the program and reads the outcome at the end of its stderr.
func retryxRun(t *testing.T, dir string, args []string) (ended, string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "retryx", args...)
	run.Dir = dir
	run.Env = clientEnv(dir)
	var stderr, stdout bytes.Buffer
	run.Stderr, run.Stdout = &stderr, &stdout
	var exit *exec.ExitError
	if err := run.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text := strings.TrimSpace(stderr.String())
	line := text[strings.LastIndexByte(text, '\n')+1:]
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		t.Fatalf("retryx %q ends with %q, want an outcome: %v\n%s", args, line, err, text)
	}
	schema, err := outcomeSchema()
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("the outcome of retryx %q: %v", args, err)
	}
	var o struct {
		Outcome      string `json:"outcome"`
		Reason       string `json:"reason"`
		AttemptCount int    `json:"attempt_count"`
		ExitStatus   int    `json:"exit_status"`
	}
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatal(err)
	}
	if run.ProcessState.ExitCode() != o.ExitStatus || (o.Outcome == "success") != (o.ExitStatus == 0) {
		t.Errorf("retryx %q exited %d, its outcome %s says %d", args, run.ProcessState.ExitCode(), o.Outcome, o.ExitStatus)
	}
	return ended{o.Outcome, o.Reason, o.AttemptCount}, text + "\n" + stdout.String()
}

// clientEnv keeps the machine's own settings, proxies and caches out.
func clientEnv(dir string) []string {
	return []string{
		raceVariable + "=" + os.Getenv(raceVariable),
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "LC_ALL=C.UTF-8", "NO_PROXY=*", "no_proxy=*",
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "PYENV_VERSION=" + os.Getenv("PYENV_VERSION"),
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_RETRIES=0", "NPM_CONFIG_UPDATE_NOTIFIER=false",
	}
}

func transferClients() []clientCase {
	curl := []string{"-fsS", "{url}/x"}
	wget := []string{"-nv", "--tries=1", "-O", "/dev/null", "{url}/x"}
	post := []string{"-nv", "--tries=1", "-O", "/dev/null", "--post-data=x", "{url}/x"}
	lsRemote := []string{"ls-remote", "{url}/x.git"}
	return []clientCase{
		{name: "503 twice", client: "curl", fault: answers(503, 503, 200), argv: curl, want: recovered(3)},
		{name: "404", client: "curl", fault: answers(404), argv: curl, want: stopped("permanent")},
		{name: "401", client: "curl", fault: answers(401), argv: curl, want: stopped("config")},
		{name: "400", client: "curl", fault: answers(400), argv: []string{"-fsS", "-d", "{", "{url}/x"}, want: stopped("correctable")},
		{name: "hang", client: "curl", fault: hangs, argv: curl, flags: []string{"-t", shortLimit}, want: gaveUp()},
		{name: "reset, then 200", client: "curl", fault: resets(1, 200), argv: curl, want: recovered(2)},
		{name: "lost write", client: "curl", fault: resets(9, 200), argv: []string{"-fsS", "-d", "x", "{url}/x"}, want: stopped("ambiguous")},
		{name: "write that hangs", client: "curl", fault: hangs, argv: []string{"-fsS", "-d", "x", "{url}/x"}, flags: []string{"-t", shortLimit}, want: stopped("ambiguous")},
		{name: "write refused", client: "curl", fault: refuses, argv: []string{"-fsS", "-d", "x", "{url}/x"}, want: gaveUp()},

		{name: "503 twice", client: "wget", fault: answers(503, 503, 200), argv: wget, want: recovered(3)},
		{name: "404", client: "wget", fault: answers(404), argv: wget, want: stopped("permanent")},
		{name: "401", client: "wget", fault: answers(401), argv: wget, want: stopped("config")},
		{name: "400", client: "wget", fault: answers(400), argv: post, want: stopped("correctable")},
		{name: "reset, then 200", client: "wget", fault: resets(1, 200), argv: wget, want: recovered(2)},
		{name: "lost write", client: "wget", fault: resets(9, 200), argv: post, want: stopped("ambiguous")},
		{name: "refused", client: "wget", fault: refuses, argv: wget, want: gaveUp()},
		{name: "hang", client: "wget", fault: hangs, argv: wget, flags: []string{"-t", shortLimit}, want: gaveUp()},

		{name: "503 twice", client: "git", fault: answers(503, 503, 200), argv: lsRemote, want: recovered(3)},
		{name: "404", client: "git", fault: answers(404), argv: lsRemote, want: stopped("permanent")},
		{name: "401", client: "git", fault: answers(401), argv: lsRemote, want: stopped("config")},
		{name: "reset", client: "git", fault: resets(9, 200), argv: lsRemote, want: gaveUp()},
		{name: "hang", client: "git", fault: hangs, argv: lsRemote, flags: []string{"-t", shortLimit}, want: gaveUp()},
		{name: "push, reset", client: "git", fault: resets(9, 200), argv: []string{"--git-dir", "{dir}/r", "push", "{url}/x.git", "HEAD"}, prepare: repository, want: gaveUp()},
		{name: "unknown option", client: "git", argv: []string{"ls-remote", "--frobnicate"}, want: stopped("config")},
	}
}

func shellClients() []clientCase {
	ssh := []string{"-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-p", "{port}", "127.0.0.1", "uptime"}
	keyed := []string{"-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-i", "{peer}/key", "-p", "{port}", "-l", "{user}", "127.0.0.1"}
	deploy := append(append([]string{}, ssh[:len(ssh)-1]...), "./deploy.sh")
	return []clientCase{
		{name: "closed twice", client: "ssh", fault: sshServer(2, true), argv: append(append([]string{}, keyed...), "true"), want: recovered(3)},
		{name: "wrong key", client: "ssh", fault: sshServer(0, false), argv: append(append([]string{}, keyed...), "true"), want: stopped("config")},
		{name: "no such command", client: "ssh", fault: sshServer(0, true), argv: append(append([]string{}, keyed...), "no-such-program"), want: stopped("config")},
		{name: "lost write", client: "ssh", fault: sshServer(0, true), argv: append(append([]string{}, keyed...), "curl -sd x http://127.0.0.1:{port}/; kill -9 $PPID"), want: stopped("ambiguous")},
		{name: "refused", client: "ssh", fault: refuses, argv: ssh, want: gaveUp()},
		{name: "closed at once", client: "ssh", fault: says("", 9), argv: ssh, want: gaveUp()},
		{name: "read that hangs", client: "ssh", fault: hangs, argv: ssh, flags: []string{"-t", shortLimit}, want: gaveUp()},
		{name: "work that hangs", client: "ssh", fault: hangs, argv: deploy, flags: []string{"-t", shortLimit}, want: stopped("ambiguous")},
		{name: "bad option", client: "ssh", argv: []string{"-F", "none", "-o", "Frobnicate=1", "127.0.0.1", "uptime"}, want: stopped("config")},

		{name: "crash", client: "sh", argv: []string{"-c", "kill -SEGV $$"}, want: stopped("unexpected")},
		{name: "program of its own", client: "sh", argv: []string{"-c", "exit 1"}, want: ended{"retryable_failure", "attempts_exhausted", mostAttempts}},
		{name: "missing program", client: "sh", argv: []string{"-c", "no-such-program; exit $?"}, want: stopped("config")},
		{name: "crash", client: "python3", argv: []string{"-c", "import os; os.abort()"}, want: stopped("unexpected")},
		{name: "bug", client: "python3", argv: []string{"-c", "{}['x']"}, want: stopped("unexpected")},
		{name: "malformed input", client: "python3", argv: []string{"-c", "import json; json.loads('{')"}, want: stopped("correctable")},
	}
}

func rsyncClients() []clientCase {
	pull := []string{"rsync://{host}/m/x", "{dir}/x"}
	push := []string{"{dir}/file", "rsync://{host}/m/x"}
	return []clientCase{
		{name: "busy twice", client: "rsync", fault: rsyncAfter(2), argv: []string{"rsync://{host}/m/", "{dir}/x"}, want: recovered(3)},
		{name: "refused", client: "rsync", fault: refuses, argv: pull, want: gaveUp()},
		{name: "too many connections", client: "rsync", fault: daemonSays("max connections (2) reached -- try again later"), argv: pull, want: gaveUp()},
		{name: "wrong password", client: "rsync", fault: daemonSays("auth failed on module m"), argv: pull, want: stopped("config")},
		{name: "no such module", client: "rsync", fault: daemonSays("Unknown module 'm'"), argv: pull, want: stopped("config")},
		{name: "closed at once", client: "rsync", fault: says("", 9), argv: pull, want: gaveUp()},
		{name: "push, closed", client: "rsync", fault: says("", 9), argv: push, want: gaveUp()},
		{name: "hang", client: "rsync", fault: hangs, argv: pull, flags: []string{"-t", shortLimit}, want: gaveUp()},
		{name: "missing source", client: "rsync", argv: []string{"{dir}/no/such", "{dir}/x"}, want: stopped("permanent")},
		{name: "unknown option", client: "rsync", argv: []string{"--frobnicate", "{dir}/x", "{dir}/y"}, want: stopped("config")},
	}
}

// crashingClients are ended by SIGSEGV while they wait for an answer, by a
// wrapper that retryx looks through.
func crashingClients() []clientCase {
	const after = "0.3" // seconds
	var cases []clientCase
	for client, argv := range map[string][]string{
		"curl": {"-fsS", "{url}/x"}, "wget": {"-nv", "--tries=1", "-O", "/dev/null", "{url}/x"}, "git": {"ls-remote", "{url}/x.git"},
		"ssh": {"-F", "none", "-o", "BatchMode=yes", "-p", "{port}", "127.0.0.1", "uptime"}, "rsync": {"rsync://{host}/m/x", "{dir}/x"},
		"npm": {"view", "x", "--registry", "{url}", "--cache", "{dir}/c"}, "pip": {"download", "-q", "--no-deps", "{url}/x-1.0-py3-none-any.whl"},
		"apt-get": {"update", "-o", "Dir::Etc::sourcelist={dir}/file", "-o", "Dir::Etc::sourceparts={dir}/none", "-o", "Dir::State={dir}", "-o", "Dir::Cache={dir}", "-o", "APT::Sandbox::User="},
		"psql":    {"-X", "-w", "-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-c", "select 1"}, "redis-cli": {"-h", "127.0.0.1", "-p", "{port}", "PING"},
	} {
		cases = append(cases, clientCase{
			name: "crash", client: client, needs: []string{"timeout"}, behind: []string{"timeout", "--preserve-status", "-s", "SEGV", after},
			fault: hangs, argv: argv, file: "deb [trusted=yes] {url} ./\n", want: stopped("unexpected"),
		})
	}
	return cases
}

func packageClients() []clientCase {
	npm := []string{"--registry", "{url}", "--fetch-retries=0", "--cache", "{dir}/c"}
	view := append([]string{"view", "x", "version"}, npm...)
	publish := append([]string{"publish", "{dir}", "--//{host}/:_authToken=x"}, npm...)
	pip := []string{"download", "--no-deps", "--no-input", "-q", "-d", "{dir}", "{url}/x-1.0-py3-none-any.whl"}
	const manifest = `{"name": "x", "version": "1.0.0"}`
	return []clientCase{
		{name: "503 twice", client: "npm", fault: answers(503, 503, 200), argv: view, want: recovered(3)},
		{name: "404", client: "npm", fault: answers(404), argv: view, want: stopped("permanent")},
		{name: "401", client: "npm", fault: answers(401), argv: view, want: stopped("config")},
		{name: "malformed input", client: "npm", argv: []string{"install", "--prefix", "{dir}"}, prepare: content("package.json", "{"), want: stopped("correctable")},
		{name: "hang", client: "npm", fault: hangs, argv: view, flags: []string{"-n", "1", "-t", "2s"}, want: ended{"retryable_failure", "attempts_exhausted", 1}},
		{name: "reset", client: "npm", fault: resets(9, 200), argv: view, flags: []string{"-n", "1"}, want: ended{"retryable_failure", "attempts_exhausted", 1}},
		{name: "lost write", client: "npm", fault: resets(9, 200), argv: publish, prepare: content("package.json", manifest), want: stopped("ambiguous")},

		{name: "503 twice", client: "pip", fault: wheelAfter(503, 503), argv: pip, want: recovered(3)},
		{name: "404", client: "pip", fault: answers(404), argv: pip, want: stopped("permanent")},
		{name: "401", client: "pip", fault: answers(401), argv: pip, want: stopped("config")},
		{name: "malformed input", client: "pip", argv: []string{"download", "--no-deps", "--no-index", "-q", "=1"}, want: stopped("correctable")},
		{name: "hang", client: "pip", fault: hangs, argv: pip, flags: []string{"-n", "1", "-t", "2s"}, want: ended{"retryable_failure", "attempts_exhausted", 1}},
		{name: "reset", client: "pip", fault: resets(9, 200), argv: pip, flags: []string{"-n", "1"}, want: ended{"retryable_failure", "attempts_exhausted", 1}},
	}
}

func aptClients() []clientCase {
	update := []string{
		"update", "-o", "Dir::Etc::sourcelist={dir}/file", "-o", "Dir::Etc::sourceparts={dir}/none", "-o", "Dir::State={dir}", "-o", "Dir::Cache={dir}",
		"-o", "Acquire::Retries=0", "-o", "APT::Update::Error-Mode=any", "-o", "APT::Sandbox::User=",
	}
	const source = "deb [trusted=yes] {url} ./\n"
	return []clientCase{
		{name: "503 twice", client: "apt-get", fault: aptAfter(503, 503), argv: update, file: source, want: recovered(3)},
		{name: "503", client: "apt-get", fault: answers(503), argv: update, file: source, want: gaveUp()},
		{name: "refused", client: "apt-get", fault: refuses, argv: update, file: source, want: gaveUp()},
		{name: "404", client: "apt-get", fault: answers(404), argv: update, file: source, want: stopped("permanent")},
		{name: "401", client: "apt-get", fault: answers(401), argv: update, file: source, want: stopped("config")},
		{name: "malformed source", client: "apt-get", argv: update, file: "deb\n", want: stopped("config")},
		{name: "hang", client: "apt-get", fault: hangs, argv: update, file: source, flags: []string{"-n", "2", "-t", shortLimit}, want: ended{"retryable_failure", "attempts_exhausted", 2}},
		{name: "reset", client: "apt-get", fault: resets(99, 200), argv: update, file: source, flags: []string{"-n", "2"}, want: ended{"retryable_failure", "attempts_exhausted", 2}},
		{name: "unknown option", client: "apt-get", argv: []string{"update", "--frobnicate"}, want: stopped("config")},
	}
}

func databaseClients() []clientCase {
	psql := func(sql string) []string {
		return []string{"-X", "-w", "-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-d", "app", "-c", sql}
	}
	redis := []string{"-e", "-h", "127.0.0.1", "-p", "{port}"}
	ping := append(append([]string{}, redis...), "PING")
	lpush := append(append([]string{}, redis...), "LPUSH", "k", "v")
	return []clientCase{
		{name: "starting twice", client: "psql", fault: postgresAfter(2), argv: psql("select 1"), want: recovered(3)},
		{name: "no such table", client: "psql", fault: postgres("ERROR", "42P01", `relation "t" does not exist`), argv: psql("select * from t"), want: stopped("permanent")},
		{name: "read that hangs", client: "psql", fault: hangs, argv: psql("select 1"), flags: []string{"-t", shortLimit}, want: gaveUp()},
		{name: "refused", client: "psql", fault: refuses, argv: psql("select 1"), want: gaveUp()},
		{name: "starting up", client: "psql", fault: postgres("FATAL", "57P03", "the database system is starting up"), argv: psql("select 1"), want: gaveUp()},
		{name: "wrong password", client: "psql", fault: postgres("FATAL", "28P01", `password authentication failed for user "app"`), argv: psql("select 1"), want: stopped("config")},
		{name: "malformed", client: "psql", fault: postgres("ERROR", "42601", `syntax error at or near "selec"`), argv: psql("selec 1"), want: stopped("correctable")},
		{name: "deadlock", client: "psql", fault: postgres("ERROR", "40P01", "deadlock detected"), argv: psql("update t set a = 1"), want: gaveUp()},
		{name: "read, no answer", client: "psql", fault: postgres("", "", ""), argv: psql("select 1"), want: gaveUp()},
		{name: "write, no answer", client: "psql", fault: postgres("", "", ""), argv: psql("insert into t values (1)"), want: stopped("ambiguous")},

		{name: "loading twice", client: "redis-cli", fault: redisSays("-LOADING Redis is loading the dataset in memory", 2), argv: ping, want: recovered(3)},
		{name: "no password", client: "redis-cli", fault: redisSays("-NOAUTH Authentication required.", 9), argv: ping, want: stopped("config")},
		{name: "refused", client: "redis-cli", fault: refuses, argv: ping, want: gaveUp()},
		{name: "wrong type", client: "redis-cli", fault: redisSays("-WRONGTYPE Operation against a key holding the wrong kind of value", 9), argv: lpush, want: stopped("correctable")},
		{name: "no such command", client: "redis-cli", fault: redisSays("-ERR unknown command 'FROB', with args beginning with: ", 9), argv: append(append([]string{}, redis...), "FROB"), want: stopped("correctable")},
		{name: "read that hangs", client: "redis-cli", fault: hangs, argv: ping, flags: []string{"-t", shortLimit}, want: gaveUp()},
		{name: "read, no answer", client: "redis-cli", fault: readsAndBreaks, argv: ping, want: gaveUp()},
		{name: "write, no answer", client: "redis-cli", fault: readsAndBreaks, argv: lpush, want: stopped("ambiguous")},
	}
}

// peer is what a client talks to.
type peer struct {
	address string
	files   string // what the client needs to know of it
}

func (p *peer) port() string {
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		panic(fmt.Sprintf("address %q: %v", p.address, err))
	}
	return port
}
