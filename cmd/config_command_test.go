package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runConfig runs a subcommand of config for the fixture's user.
func (f *configFixture) runConfig(args ...string) (stdout, stderr string, err error) {
	f.t.Helper()
	environ := []string{"XDG_CONFIG_HOME=" + f.places.environ["XDG_CONFIG_HOME"]}
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "RETRYX_") {
			environ = append(environ, kv)
		}
	}
	c := newConfigCommand(Env{Environ: environ})
	c.SilenceErrors, c.SilenceUsage = true, true
	var out, diag bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&diag)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), diag.String(), err
}

func (f *configFixture) mustRun(args ...string) (stdout, stderr string) {
	f.t.Helper()
	stdout, stderr, err := f.runConfig(args...)
	if err != nil {
		f.t.Fatalf("config %q = error %q, want none", args, err)
	}
	return stdout, stderr
}

// refused returns the problems that a subcommand names.
func (f *configFixture) refused(args ...string) []string {
	f.t.Helper()
	stdout, _, err := f.runConfig(args...)
	var usage *usageError
	if !errors.As(err, &usage) {
		f.t.Fatalf("config %q = error %v, want a usageError, as it becomes status 125", args, err)
	}
	if strings.Contains(stdout, "ok\n") && len(args) == 1 {
		f.t.Errorf("config %q wrote %q beside problems", args, stdout)
	}
	return usage.problems
}

// shownLine returns the line of a key in the text of config show, without its
// padding.
func shownLine(text, key string) string {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == key {
			return strings.Join(fields, " ")
		}
	}
	return ""
}

func TestConfigShow(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), `max_attempts: 7
budget_store: "redis://bob:hunter2hunter2@cache.internal:6379/0"
retry_exit: [7, "28-30"]
on_outcome: "curl --token abcdef123456 https://x.example/"
before_retry: "a\tb"
budgets:
  api: {capacity: 3, refill: 6/m}
rules: ["transient: exit=75"]
profiles: {ci: {delay: 3s, max_delay: 9s}}
`)
	t.Setenv("RETRYX_MAX_DELAY", "30s")
	text, _ := f.mustRun("show", "--profile", "ci")
	for _, want := range []string{
		"max_attempts 7 " + f.user() + ":1",
		"delay 3s " + f.user() + ":9",
		"max_delay 30s RETRYX_MAX_DELAY",
		"multiplier 2 default",
		"strict false default",
		"stop_exit - default",
		`retry_exit ["7" "28-30"] ` + f.user() + ":3",
		"budget_store redis://***@cache.internal:6379/0 " + f.user() + ":2",
		"on_outcome curl --token *** https://x.example/ " + f.user() + ":4",
		"budgets.api capacity 3, refill 0.1/s " + f.user() + ":7",
		"rules transient: exit=75 " + f.user() + ":8",
		"profile ci --profile",
	} {
		key, _, _ := strings.Cut(want, " ")
		if got := shownLine(text, key); got != want {
			t.Errorf("config show: line of %s = %q, want %q", key, got, want)
		}
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, "abcdef123456") {
		t.Errorf("config show wrote a secret:\n%s", text)
	}
}

func TestConfigShowJSON(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), "max_attempts: 7\nstrict: true\nretry_exit: [7]\nbudgets: {api: {bonus: 0}}\nrules: ['transient: exit=75']\n")
	f.write(f.named, "budget_store: redis://:hunter2hunter2@h/0\n")
	if err := os.Chmod(f.named, 0o666); err != nil {
		t.Fatal(err)
	}
	out, diag := f.mustRun("show", "--format", "json", "--config", f.named)
	var got shownConfiguration
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("config show --format json wrote %q: %s", out, err)
	}
	want := []shownSetting{
		{"max_attempts", "7", "config", f.user() + ":1"},
		{"delay", "1s", "default", ""},
		{"strict", true, "config", f.user() + ":2"},
		{"retry_exit", []any{"7"}, "config", f.user() + ":3"},
		{"stop_exit", []any{}, "default", ""},
		{"budget_store", "redis://***@h/0", "config", f.named + ":1"},
		{"config", f.named, "flag", "--config"},
	}
	for _, w := range want {
		i := slices.IndexFunc(got.Settings, func(s shownSetting) bool { return s.Key == w.Key })
		if i < 0 {
			t.Errorf("%s is missing", w.Key)
		} else if diff := cmp.Diff(w, got.Settings[i]); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", w.Key, diff)
		}
	}
	zero := "0"
	if diff := cmp.Diff([]shownBudget{{Name: "api", Bonus: &zero, Where: f.user() + ":4"}}, got.Budgets); diff != "" {
		t.Errorf("budgets differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]shownRule{{"transient: exit=75", f.user() + ":5"}}, got.Rules); diff != "" {
		t.Errorf("rules differ (-want +got):\n%s", diff)
	}
	if len(got.Warnings) != 1 || !strings.Contains(diag, "retryx: warning: "+got.Warnings[0]) {
		t.Errorf("warnings, stderr = %q, %q, want the mode of the named file in both", got.Warnings, diag)
	}
	if strings.Contains(out, "hunter2") || strings.Contains(out, "null,") != true {
		t.Errorf("config show --format json = %s, want no secret, and null for what no file says", out)
	}
}

// TestConfigShowHasEverySetting: what a file or a variable can say is shown.
func TestConfigShowHasEverySetting(t *testing.T) {
	f := newConfigFixture(t)
	text, _ := f.mustRun("show")
	for _, s := range table() {
		if shown := shownLine(text, s.key()) != ""; shown == s.noConfig {
			t.Errorf("config show shows %s: %v, want %v", s.key(), shown, !s.noConfig)
		}
	}
	t.Setenv("RETRYX_STEP", "build")
	text, _ = f.mustRun("show")
	if got, want := shownLine(text, "step"), "step build RETRYX_STEP"; got != want {
		t.Errorf("config show: line of step = %q, want %q", got, want)
	}
}

func TestConfigRefuses(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), "delay: 10\nprofiles: {ci: {}}\n")
	t.Setenv("RETRYX_JITTER", "ful")
	both := []string{
		f.user() + `:1: delay: "10" has no unit; write 10s for seconds or 10m for minutes`,
		`RETRYX_JITTER: want none, full, equal or decorrelated, not "ful"; did you mean "full"?`,
	}
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{"show"}, both},
		{[]string{"check"}, both},
		{[]string{"show", "--format", "jso"}, append([]string{`--format: want text or json, not "jso"; did you mean "json"?`}, both...)},
		{[]string{}, []string{"config: want check, init, path or show"}},
		{[]string{"shwo"}, []string{`config: want check, init, path or show, not "shwo"; did you mean "show"?`}},
	}
	for _, tt := range tests {
		if got := f.refused(tt.args...); !slices.Equal(withoutCompletion(got), tt.want) {
			t.Errorf("config %q = problems %q, want %q", tt.args, got, tt.want)
		}
	}
}

// withoutCompletion takes out the subcommand that cobra gives to a root, which
// config is in these tests only.
func withoutCompletion(problems []string) []string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = strings.Replace(p, "check, completion, init", "check, init", 1)
	}
	return out
}

func TestConfigCheck(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), "max_delay: 5s\n")
	f.write(f.named, "profiles:\n  slow: {delay: 10s}\n")
	if out, _ := f.mustRun("check"); !strings.HasSuffix(out, f.user()+": ok\n") {
		t.Errorf("config check = %q, want %q in the last line", out, f.user()+": ok")
	}
	if err := os.Chmod(f.named, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, diag, _ := f.runConfig("check", "--config", f.named); !strings.HasPrefix(diag, "retryx: warning: "+f.named) {
		t.Errorf("config check warns %q, want a warning about %s, which others may write", diag, f.named)
	}
	want := []string{f.user() + `:1: max_delay: must not be shorter than --delay: 5s < 10s (with profile "slow")`}
	if got := f.refused("check", "--config", f.named); !slices.Equal(got, want) {
		t.Errorf("config check --config = problems %q, want %q: each profile is tried", got, want)
	}
}

func TestConfigCheckFiles(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), "delay: nonsense\n") // not asked for
	good, bad := f.named, f.named+".bad"
	f.write(good, "delay: 1s\n")
	f.write(bad, "delay: 1\njitter: x\n")
	if out, _ := f.mustRun("check", good); out != good+": ok\n" {
		t.Errorf("config check %s = %q, want ok", good, out)
	}
	want := []string{
		bad + `:1: delay: "1" has no unit; write 1s for seconds or 1m for minutes`,
		bad + `:2: jitter: want none, full, equal or decorrelated, not "x"`,
		"/nonexistent: cannot be read: no such file or directory; check the path",
	}
	if diff := cmp.Diff(want, f.refused("check", bad, good, "/nonexistent")); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
	if err := os.Chmod(good, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, diag := f.mustRun("check", good); !strings.HasPrefix(diag, "retryx: warning: "+good) {
		t.Errorf("config check of a file that others may write warns %q, want the file's name", diag)
	}
}

func TestConfigInit(t *testing.T) {
	f := newConfigFixture(t)
	out, _ := f.mustRun("init")
	if out != f.user()+"\n" {
		t.Errorf("config init = %q, want the path %q", out, f.user())
	}
	for path, want := range map[string]os.FileMode{f.user(): 0o600, filepath.Dir(f.user()): os.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("mode of %s = %v, %v, want %v", path, info, err, want)
		}
	}
	f.mustRun("check")
	printed, _ := f.mustRun("init", "--print")
	if written, err := os.ReadFile(f.user()); err != nil || string(written) != printed {
		t.Errorf("init wrote %d bytes (%v), want what --print shows, %d bytes", len(written), err, len(printed))
	}
	mine := "delay: 9s\n#" + strings.Repeat("long ", 2000)
	f.write(f.user(), mine)
	if err := os.Chmod(f.user(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.runConfig("init"); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("config init over a file = error %v, want one that names --force", err)
	}
	if text, _ := os.ReadFile(f.user()); string(text) != mine {
		t.Errorf("the file after a refused init = %.40q, want it untouched", text)
	}
	f.mustRun("init", "--force")
	if text, _ := os.ReadFile(f.user()); string(text) != printed {
		t.Errorf("the file after init --force has %d bytes, want the %d of a fresh one", len(text), len(printed))
	}
	if info, _ := os.Stat(f.user()); info.Mode() != 0o600 {
		t.Errorf("mode after init --force = %v, want 0600", info.Mode())
	}
}

// uncommented returns the template with every setting in force.
func uncommented(template string) string {
	var b strings.Builder
	for line := range strings.Lines(template) {
		if rest, ok := strings.CutPrefix(line, "#"); ok && (rest[0] != ' ' || strings.HasPrefix(rest, "  ")) {
			line = rest
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestConfigTemplate: the file of config init is right as it is and with every
// line uncommented, but for switches that contradict another line, and leaves
// nothing out.
func TestConfigTemplate(t *testing.T) {
	file, problems := parse(t, configTemplate())
	if len(problems) > 0 || len(file.base.values) > 0 {
		t.Errorf("the template says %v with problems %q, want nothing", file.base.values, problems)
	}
	f := newConfigFixture(t)
	whole := uncommented(configTemplate())
	f.write(f.named, whole)
	both := contradictions()
	if got := f.refused("show", "--config", f.named); len(got) != len(both) {
		t.Errorf("config show with every line = problems %q, want one for each contradiction", got)
	}
	for _, c := range both {
		key := setting{name: c.toggle}.key()
		whole = strings.Replace(whole, "\n"+key+": true\n", "\n"+key+": false\n", 1)
	}
	f.write(f.named, whole)
	c := f.load(f.named, "patient")
	for _, s := range table() {
		if _, ok := c.values[s.key()]; ok == s.noConfig {
			t.Errorf("the template has %s: %v, want %v", s.key(), ok, !s.noConfig)
		}
	}
	if len(c.rules) == 0 || len(c.budgets) == 0 || len(c.profiles) != 2 {
		t.Errorf("the template has rules %v, budgets %v, profiles %v, want some of each", c.rules, c.budgets, c.profiles)
	}
	f.mustRun("check", f.named)
	for _, profile := range c.profiles {
		f.mustRun("show", "--config", f.named, "--profile", profile)
	}
}

func TestConfigPath(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.named, "delay: x\n") // path looks at places, not at what files say
	out, _ := f.mustRun("path", "--config", f.named)
	want := []string{f.user() + ": no file", f.named + ": exists"}
	if got := strings.Split(strings.TrimSpace(out), "\n"); len(got) != 3 || !slices.Equal(got[1:], want) || !strings.HasPrefix(got[0], systemConfiguration+": ") {
		t.Errorf("config path = %q, want %s and then %q", got, systemConfiguration, want)
	}
	f.write(f.user(), "")
	if err := os.Chmod(f.user(), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RETRYX_CONFIG", "/nonexistent")
	out, _ = f.mustRun("path")
	want = []string{
		f.user() + ": refused: others may write it (mode 0666); check what it says, then chmod go-w it",
		"/nonexistent: cannot be read: no such file or directory; check the path",
	}
	if got := strings.Split(strings.TrimSpace(out), "\n"); len(got) != 3 || !slices.Equal(got[1:], want) {
		t.Errorf("config path = %q, want %q at the end", got, want)
	}
}
