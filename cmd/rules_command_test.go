package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/retryx/retryx/classify"
)

func TestRulesList(t *testing.T) {
	w := newWorkplace(t)
	all := strings.Split(strings.TrimSpace(w.ok("rules", "list")), "\n")
	builtins := slices.Collect(classify.Builtins())
	if want := 1 + len(ownRules()) + len(builtins); len(all) != want {
		t.Errorf("rules list has %d lines, want %d", len(all), want)
	}
	mine := w.ok("rules", "list", "curl")
	wantText(t, "rules list curl", mine, "curl/connect-refused", "ambiguous")
	if strings.Contains(mine, "git/") {
		t.Errorf("rules list curl = %s, want curl's alone", mine)
	}
	var doc ruleListDocument
	if err := json.Unmarshal([]byte(w.ok("rules", "list", "--format", "json")), &doc); err != nil || len(doc.Rules) != len(all)-1 {
		t.Errorf("rules list as JSON has %d rules, %v, want %d", len(doc.Rules), err, len(all)-1)
	}
	if got := w.ok("rules", "list", "apt"); !strings.Contains(got, "apt-get/") {
		t.Errorf("rules list apt = %s, want those of apt-get", got)
	}
	if got := w.ok("rules", "list", "/usr/bin/curl"); got != mine {
		t.Errorf("rules list /usr/bin/curl = %s, want curl's", got)
	}
}

// Every rule that an outcome may name can be shown, in words and as JSON.
func TestRulesShowKnowsEveryRule(t *testing.T) {
	for _, r := range allRules() {
		shown, err := ruleByID(r.ID)
		if err != nil || shown.ID != r.ID {
			t.Errorf("ruleByID(%s) = %v, %v", r.ID, shown, err)
			continue
		}
		rows := ruleRows(shown)
		if !slices.ContainsFunc(rows, func(r row) bool { return r.name == "when" }) && !slices.Contains(ruleIDs(ownRules()), r.ID) {
			t.Errorf("ruleRows(%s) = %v, want a condition", r.ID, rows)
		}
		if _, err := json.Marshal(documentOf(shown)); err != nil {
			t.Errorf("documentOf(%s): %v", r.ID, err)
		}
	}
}

// The judgements that this package makes itself are listed with the rules.
func TestOwnRulesAreAll(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`Rule\b.*"([a-z]+/[a-z-]+)"`)
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range id.FindAllStringSubmatch(string(data), -1) {
			found++
			if _, err := ruleByID(m[1]); err != nil {
				t.Errorf("%s judges by %s, which \"rules show\" does not know", name, m[1])
			}
		}
	}
	if found < 2 {
		t.Errorf("%d judgements were found in the sources, want those of child.go at least", found)
	}
}

func TestRulesShow(t *testing.T) {
	w := newWorkplace(t)
	wantText(t, "rules show", w.ok("rules", "show", "curl/connect-refused"), "class    transient", "when     the exit status is in 7", "source   curl(1)", "example  curl ")
	wantText(t, "rules show of a rule of retryx", w.ok("rules", "show", "retryx/timed-out"), "of a write that is not declared idempotent: ambiguous")
	wantText(t, "rules show as JSON", w.ok("rules", "show", "curl/connect-refused", "--format", "json"), `"exit": "7"`, ruleSchema)
}

func TestRuleRows(t *testing.T) {
	data := `tool: mine
rules:
  - id: all
    class: transient
    maybe_applied: true
    exit: "7,50-60"
    signal: [TERM]
    output: [gone away, come back]
    and: ['later']
    not: ['never']
    sub: [push]
    flags: [--hard]
    without: [--dry-run]
    words: [insert]
    effects: [write]
    wait: 10s
    rank: fallback
    why: it is busy
    source: mine(1)
    examples:
      - {argv: mine push --hard "insert", exit: 7, stderr: "gone away\nlater"}
      - {argv: mine, signal: TERM}
`
	f, err := classify.ParseFile("mine.yaml", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range ruleRows(&f.Rules[0]) {
		got = append(got, strings.TrimSpace(r.name+" "+r.text))
	}
	want := []string{
		"rule mine/all", "class transient", "of a write that is not declared idempotent: ambiguous, as it may have happened",
		"when the exit status is in 7,50-60", "and it was ended by SIGTERM", "and the output matches gone away", "or come back",
		"and the output matches later", "and the output does not match never", "and the arguments begin with push", "and a flag is --hard",
		"and no flag is --dry-run", "and an argument holds the word insert", "and the effect is write", "wait at least 10s",
		"rank fallback: answers only when no error was recognised", "why it is busy", "source mine(1)",
		`example mine push --hard '"insert"': exit status 7`, "gone away", "later", "example mine: ended by TERM",
	}
	if !slices.Equal(got, want) {
		t.Errorf("ruleRows(mine/all) =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRulesRefuses(t *testing.T) {
	w := newWorkplace(t)
	wantProblems(t, w.refused("", "rules"), "rules: want list, show or test")
	wantProblems(t, w.refused("", "rules", "list", "a", "b", "--format", "x"), `--format: want table or json, not "x"`, "rules list: want at most one tool, not 2")
	wantProblems(t, w.refused("", "rules", "show"), `rules show: want one rule, not 0; "retryx rules list" shows them`)
	wantProblems(t, w.refused("", "rules", "show", "start/faild"), `rule "start/faild" does not exist; start has start/failed or start/resources; did you mean "start/failed"?`)
	wantText(t, "rules show flag/1", strings.Join(w.refused("", "rules", "show", "flag/1"), "\n"), "is one of yours")
	got := w.refused("", "rules", "list", "crul")
	wantText(t, "rules list crul", got[0], `no rules stand under "crul"`, `did you mean "curl"?`)
	wantProblems(t, w.refused("", "rules", "test"), "rules test: want a rules file")
}

func TestRulesTest(t *testing.T) {
	w := newWorkplace(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "tool: deploy.sh\nrules:\n"
	const busy = "  - id: busy\n    class: transient\n    exit: 9\n    why: w\n    source: s\n    examples:\n"
	good := write("good.yaml", head+busy+"      - {argv: ./deploy.sh, exit: 9}\n  - id: bare\n    class: config\n    exit: 8\n    why: w\n    source: s\n")
	got := w.ok("rules", "test", good)
	if want := good + ":10: rule deploy.sh/bare: has no example\n" + good + ": 2 rules (1 without an example), 1 examples, 0 wrong\n"; got != want {
		t.Errorf("rules test good = %q, want %q", got, want)
	}

	bad := write("bad.yaml", head+busy+`      - {argv: ./deploy.sh, exit: 8}
      - {argv: ./deploy.sh, exit: 9, class: config}
      - {argv: ./deploy.sh, exit: 9, stderr: "Retry-After: 30", retry_after: 20s}
      - {argv: ./other.sh, exit: 9}
      - {exit: 9}
      - {argv: ./deploy.sh, exit: 0}
      - {argv: ./deploy.sh, exit: 9, stderr: "Retry-After: 30", retry_after: 30s}
`)
	ran := w.run("", "rules", "test", bad, good)
	if ran.status != 1 || ran.stderr != "" {
		t.Errorf("rules test bad good = %d, %q, want 1", ran.status, ran.stderr)
	}
	at := bad + ":3: rule deploy.sh/busy: "
	wantText(t, "rules test bad good", ran.stdout,
		at+"example 1: judged unknown by no rule\n", at+"example 2: judged transient, want config", at+"example 3: stated wait read as 30s, want 20s\n",
		at+"example 4: judged unknown by no rule\n", at+"example 5: has no argv\n", at+"example 6: is taken for a success", "7 examples, 6 wrong\n", good+": 2 rules")

	malformed := write("malformed.yaml", head+"  - id: a\n    class: passing\n    exit: 999\n")
	problems := w.refused("", "rules", "test", malformed, good, filepath.Join(dir, "none.yaml"))
	wantText(t, "rules test malformed", strings.Join(problems, "\n"), malformed+":4: rule a: ", malformed+":5: rule a: ", "none.yaml: no such file")
}

// Every example in the help of these commands is true.
func TestExamplesOfCommands(t *testing.T) {
	w := newWorkplace(t)
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"stderr.txt": "connection refused\n", "out.txt": "", "failures.jsonl": `{"id":1,"argv":["ls"],"exit":2}` + "\n",
		"my-rules.yaml": "tool: x\nrules:\n  - id: a\n    class: config\n    exit: 3\n    why: w\n    source: s\n    examples:\n      - {argv: x, exit: 3}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.ok("budget", "set", "artifacts", "--capacity", "5")
	status, tried := 0, 0
	var try func(c *cobra.Command)
	try = func(c *cobra.Command) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			tried++
			line, input, _ := strings.Cut(strings.TrimSpace(line), " < ")
			stdin := ""
			if input != "" && input != os.DevNull {
				stdin = w.read(input)
			}
			args, found := strings.CutPrefix(line, "retryx ")
			if got := w.run(stdin, strings.Fields(args)...); !found || got.status != 0 || got.stdout == "" {
				t.Errorf("%s: example %q = %+v, want an answer", c.CommandPath(), line, got)
			}
		}
		for _, sub := range c.Commands() {
			try(sub)
		}
	}
	env := Env{Stdout: os.Stdout, Stderr: os.Stderr}
	for _, c := range []*cobra.Command{newBudgetCommand(env, &status), newPlanCommand(env), newClassifyCommand(env), newRulesCommand(env, &status)} {
		try(c)
	}
	if tried < 15 {
		t.Errorf("%d examples were tried, want at least 15", tried)
	}
}
