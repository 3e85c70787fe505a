package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/retryx/retryx/cmd"
)

// Every retryx in an example does what its reader will take it to do: it is
// understood. A run is given to plan, which reads all of it and runs nothing;
// other commands are run in a home of their own.

// fence is a block of shell in a page.
var fence = regexp.MustCompile("(?ms)^```(?:sh|console)\n(.*?)^```$")

func TestExamplesOfPages(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("Glob(docs) = %v, %v", pages, err)
	}
	for _, page := range append(pages, "../README.md", "../bench/README.md") {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if os.IsNotExist(err) {
				t.Skip("there is no such page")
			}
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
				calls += understood(t, prompts(m[1]))
			}
			t.Logf("%d examples", calls)
		})
	}
}

// prompts leaves of a session what was typed.
func prompts(block string) string {
	if !strings.HasPrefix(block, "$ ") {
		return block
	}
	var typed []string
	for line := range strings.Lines(block) {
		if rest, ok := strings.CutPrefix(line, "$ "); ok {
			typed = append(typed, rest)
		}
	}
	return strings.Join(typed, "")
}

// section is the part of a help that starts with a head and ends with an empty
// line.
func section(text, head string) string {
	_, rest, _ := strings.Cut(text, "\n"+head+":\n")
	body, _, _ := strings.Cut(rest, "\n\n")
	return body
}

func TestExamplesOfHelp(t *testing.T) {
	var visit func(path ...string)
	visit = func(path ...string) {
		help := string(printed(t, append([]string{"help"}, path...)...))
		name := strings.Join(append([]string{"retryx"}, path...), " ")
		examples := section(help, "examples")
		if examples == "" && len(path) > 0 && section(help, "commands") == "" && !slices.Contains([]string{"version", "run-id"}, path[0]) {
			t.Errorf("%s --help has no examples", name)
		}
		t.Run(name, func(t *testing.T) { understood(t, examples) })
		for line := range strings.Lines(section(help, "commands")) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word != "" {
				visit(append(slices.Clone(path), word)...)
			}
		}
	}
	visit()
}

func TestExamplesOfManual(t *testing.T) {
	text := string(printed(t, "man"))
	var script strings.Builder
	for _, m := range regexp.MustCompile(`(?ms)^\.nf\n(.*?)^\.fi$`).FindAllStringSubmatch(text, -1) {
		script.WriteString(strings.NewReplacer(`\-`, "-", `\e`, `\`, `\&`, "").Replace(m[1]))
	}
	if n := understood(t, script.String()); n < 5 {
		t.Errorf("the manual has %d examples, want some", n)
	}
}

// understood checks every call of retryx in a script and returns how many there
// are.
func understood(t *testing.T, script string) int {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		t.Errorf("the example is no shell: %v\n%s", err, script)
		return 0
	}
	n := 0
	vars := map[string]string{
		"url": "https://example.com/", "HOME": ".", "PACKAGE": "left-pad", "VERSION": "1.0.0", "RETRYX_RUN_ID": "run", "RETRYX_IDEMPOTENCY_KEY": "key",
		"RETRYX_DEADLINE": "2026-01-02T03:04:05Z",
	}
	config := &expand.Config{Env: expand.FuncEnviron(func(name string) string { return vars[name] })}
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		argv, err := expand.Fields(config, call.Args...)
		if err != nil {
			t.Errorf("expand: %v\n%s", err, script)
			return true
		}
		if i := slices.Index(argv, "retryx"); i == 0 || i == 1 && (argv[0] == "exec" || argv[0] == "time") {
			n++
			var given []string
			for _, a := range call.Assigns {
				value, err := expand.Literal(config, a.Value)
				if err != nil {
					t.Errorf("expand: %v\n%s", err, script)
				}
				given = append(given, a.Name.Value+"="+value)
			}
			try(t, argv[i+1:], given)
		}
		return true
	})
	return n
}

// try runs one command line of retryx in a world that has what examples name.
func try(t *testing.T, args, environ []string) {
	t.Helper()
	dir := t.TempDir()
	world(t, dir)
	if slices.Contains(args, "budget") {
		budgets(t, dir)
	}
	t.Chdir(dir)
	for _, kv := range environ { // settings are read from the process's own
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
		defer os.Unsetenv(name)
	}
	environ = append(environ, "HOME="+dir, "PATH=/usr/bin:/bin")
	if slices.Equal(args, []string{"config", "init"}) {
		environ = append(environ, "XDG_CONFIG_HOME="+filepath.Join(dir, "new"))
	}
	asked := slices.Clone(args)
	for i, a := range asked { // what a collector's folder is here
		asked[i] = strings.Replace(a, "/var/lib/node_exporter", dir, 1)
	}
	if len(args) > 0 && (strings.HasPrefix(args[0], "-") && args[0] != "--help" || args[0] == "run") {
		asked = append([]string{"plan"}, asked[slices.Index(asked[:1], "run")+1:]...)
	}
	input := "failures.jsonl"
	if slices.Contains(args, "-") {
		input = "outcomes.jsonl"
	}
	stdin, err := os.Open(filepath.Join(dir, input))
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var files [2]*os.File
	for i, name := range []string{"out", "err"} {
		if files[i], err = os.Create(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		defer files[i].Close()
	}
	status := cmd.Main(cmd.Env{
		Args: asked, Environ: environ, Stdin: stdin, Stdout: files[0], Stderr: files[1],
	})
	said, err := os.ReadFile(files[1].Name())
	if err != nil {
		t.Fatal(err)
	}
	if status == 125 || bytes.Contains(said, []byte("there is no outcome in it")) {
		t.Errorf("retryx %s = %d, %s", strings.Join(args, " "), status, said)
	}
}

// world is a home with a configuration, a journal and the files that examples read.
func world(t *testing.T, dir string) {
	t.Helper()
	outcome := `{"schema":"retryx.outcome/v1","outcome":"success","reason":"succeeded","run_id":"run","command":["true"]}` + "\n"
	for name, text := range map[string]string{
		"outcomes.jsonl": outcome, ".local/state/retryx/outcomes.jsonl": outcome,
		"failures.jsonl":             `{"id":"1","argv":["curl"],"exit":7,"stderr":""}` + "\n",
		".config/retryx/config.yaml": "profiles:\n  ci:\n    max_attempts: 2\n  nightly:\n    max_attempts: 9\n",
		"out.txt":                    "", "stderr.txt": "",
		"my-rules.yaml": "tool: deploy.sh\nabout: ours\nrules:\n  - id: busy\n    class: transient\n    exit: [75]\n    why: it says so\n    examples:\n      - {exit: 75}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// budgets makes those that examples name.
func budgets(t *testing.T, dir string) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, name := range []string{"artifacts", "billing-api", "curl"} {
		set := cmd.Env{Args: []string{"budget", "set", name, "--capacity", "20"}, Environ: []string{"HOME=" + dir}, Stdin: null, Stdout: null, Stderr: null}
		if got := cmd.Main(set); got != 0 {
			t.Fatalf("retryx %v = %d, want 0", set.Args, got)
		}
	}
}
