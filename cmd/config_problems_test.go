package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAllProblemsAtOnce: one reading names everything, each with its line.
func TestAllProblemsAtOnce(t *testing.T) {
	const text = `max_attempts: zero
delay: 10
max-attempts: 3
jitter: ful
retry_exit: [7, 999, {a: b}]
strict: yes
delay: 2s
run_id: abc
stdout: [commit]
timeout:
rules:
  - nope
  - {a: b, c: d}
  - [x]
budgets:
  API: {capacity: 3}
  api: {capacity: -1, refil: 1/s, bonus: 7}
  db: 5
profiles:
  ci:
    dela: 3s
    max_delay: 1
    profiles: {}
  "": {}
bogus: 1
<<: {a: b}
? [a]
: 1
"\e[31m": 2
state_dir: state
cancel_file: ~/cancel
budget_store: http://x
redact: [""]
`
	want := []string{
		`c.yaml:1: max_attempts: want a whole number, not "zero"`,
		`c.yaml:2: delay: "10" has no unit; write 10s for seconds or 10m for minutes`,
		`c.yaml:3: max-attempts: unknown key; did you mean "max_attempts"?`,
		`c.yaml:4: jitter: want none, full, equal or decorrelated, not "ful"; did you mean "full"?`,
		`c.yaml:5: retry_exit: read exit list "999": "999" is no exit status (0 to 255)`,
		`c.yaml:5: retry_exit: want one value, not keys and values`,
		`c.yaml:6: strict: want true or false, not "yes"`,
		`c.yaml:7: delay: stands in line 2 already; remove one of them`,
		`c.yaml:8: run_id: cannot stand in a file; use --run-id`,
		`c.yaml:9: stdout: want one value, not a list`,
		`c.yaml:10: timeout: has no value; write one or remove the line`,
		`c.yaml:12: rules: read rule "nope": write it as CLASS: CONDITIONS`,
		`c.yaml:13: rules: want rules such as "permanent: exit=2", not keys and values`,
		`c.yaml:14: rules: want rules such as "permanent: exit=2", not a list`,
		`c.yaml:16: budgets: read budget name "API": want 1 to 64 of a-z 0-9 . _ - starting with a letter or digit`,
		`c.yaml:17: budgets.api.capacity: read capacity "-1": want a whole number of tokens from 0 to 1000000`,
		`c.yaml:17: budgets.api.refil: unknown key; a budget has capacity, refill, bonus; did you mean "refill"?`,
		`c.yaml:17: budgets.api.bonus: read bonus "7": want a number from 0 to 1 with at most six decimals`,
		`c.yaml:18: budgets.db: want keys and values, not "5"`,
		`c.yaml:21: profiles.ci.dela: unknown key; did you mean "delay"?`,
		`c.yaml:22: profiles.ci.max_delay: "1" has no unit; write 1s for seconds or 1m for minutes`,
		`c.yaml:23: profiles.ci.profiles: unknown key; "retryx config init --print" shows every key`,
		`c.yaml:24: profiles: a profile needs a name; write one before the colon`,
		`c.yaml:25: bogus: unknown key; "retryx config init --print" shows every key`,
		`c.yaml:26: <<: YAML merge keys are not read; write the keys out`,
		`c.yaml:27: a key must be a word, not a list`,
		`c.yaml:29: "\x1b[31m": unknown key; "retryx config init --print" shows every key`,
		`c.yaml:30: state_dir: want a path from the root, not "state", which means another place in every working directory`,
		`c.yaml:31: cancel_file: "~/cancel" would be taken as it stands, as no shell reads it; write the whole path`,
		`c.yaml:32: budget_store: want redis://, rediss:// or unix://, not "http"`,
		`c.yaml:33: redact: an empty pattern would hide everything; write one or remove it`,
	}
	_, got := parse(t, text)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}

// TestWhatIsWrongIsLeftOut: what comes beside the problems is good, so that
// nothing is named twice.
func TestWhatIsWrongIsLeftOut(t *testing.T) {
	file, problems := parse(t, "delay: 1\nmax_delay: 9s\nretry_exit: [999, 7]\nretry_on: [x, transient]\nrules: [nope, 'transient: exit=1']\nbudgets: {api: {capacity: x, refill: 0}}\n")
	if len(problems) != 5 {
		t.Errorf("problems = %q, want 5", problems)
	}
	if diff := cmp.Diff(map[string]any{"max_delay": "9s"}, file.base.values); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
	if b := file.base.budgets["api"]; b.Capacity != nil || b.Refill == nil || len(file.base.rules) != 1 {
		t.Errorf("budget, rules = %+v, %v, want the refill and the one rule that are right", b, file.base.rules)
	}
}

// TestProblemsOfAllFiles: also of several files and of profiles not in use.
func TestProblemsOfAllFiles(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.places.system, "delay: 1\n")
	f.write(f.user(), "profiles: {unused: {jitter: x}}\n")
	want := []string{
		f.places.system + `:1: delay: "1" has no unit; write 1s for seconds or 1m for minutes`,
		f.user() + `:1: profiles.unused.jitter: want none, full, equal or decorrelated, not "x"`,
		f.named + `: cannot be read: no such file or directory; check the path`,
	}
	if diff := cmp.Diff(want, f.problems(f.named, "")); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}

// TestUnknownProfileBesideProblems: a bad key hides no other mistake. What is no
// YAML may define any profile.
func TestUnknownProfileBesideProblems(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.user(), "bogus: 1\nprofiles: {ci: {}}\n")
	want := []string{f.user() + `:1: bogus: unknown key; "retryx config init --print" shows every key`, `profile "zzz": not defined; there is ci`}
	if diff := cmp.Diff(want, f.problems("", "zzz")); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
	f.write(f.user(), "a: b: c\n")
	if got := f.problems("", "zzz"); len(got) != 1 {
		t.Errorf("problems = %q, want one: the file may have the profile", got)
	}
}

func TestMalformedYAML(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"two colons", "a: b: c\n", "c.yaml:1: not YAML: mapping values are not allowed in this context"},
		{"a tab", "delay: 1s\nbudgets:\n\tapi:\n", "c.yaml:3: not YAML: found character that cannot start any token"},
		{"an open quote", "\ndelay: \"1s\n", "not YAML: found unexpected end of stream"},
		{"an open bracket", "retry_exit: [1,\n", "not YAML: did not find expected node content"},
		{"a bad indentation", "budgets:\n    api:\n  db:\n", "not YAML: did not find expected key"},
		{"an unknown anchor", "delay: *x\n", "not YAML: unknown anchor 'x' referenced"},
		{"a zero byte", "delay: 1s\n\x00", "c.yaml:2: holds a control character (U+0000); remove it"},
		{"an escape", "delay: \x1b[0m\n", "c.yaml:1: holds a control character (U+001B); remove it"},
		{"Latin-1", "# gr\xfc\xdfe\n", "c.yaml:1: is not UTF-8; save the file as UTF-8"},
		{"UTF-16", "\xff\xfed\x00", "c.yaml:1: is not UTF-8; save the file as UTF-8"},
		{"two documents", "delay: 1s\n---\ndelay: 2s\n", "c.yaml:2: a second document starts here"},
		{"a list", "- delay\n", "c.yaml:1: want keys and values, not a list"},
		{"a word", "delay\n", `c.yaml:1: want keys and values, not "delay"`},
		{"an alias to itself", "rules: [&r {a: *r}]\n", "c.yaml:1: rules: want rules such as"},
		{"a profile that holds itself", "profiles: {a: &a {profiles: *a}}\n", "c.yaml:1: profiles.a.profiles: unknown key"},
		{"far too deep", strings.Repeat("[", 20_000), "not YAML: exceeded max depth"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := parse(t, tt.text)
			if len(problems) == 0 || !strings.Contains(problems[0], tt.want) || !strings.HasPrefix(problems[0], "c.yaml:") {
				t.Errorf("parseConfigFile(%.40q) = problems %q, want one with %q", tt.text, problems, tt.want)
			}
		})
	}
}

// TestEverySettingIsChecked: whatever is no free text refuses nonsense.
func TestEverySettingIsChecked(t *testing.T) {
	free := map[string]bool{"reconcile": true, "correct": true, "before-retry": true, "on-outcome": true}
	for _, s := range table() {
		if s.noConfig {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			nonsense := `"(:"` // no pattern, number, name or path in a list with colons
			if s.name == "outcome" {
				nonsense = "stdout"
			}
			_, problems := parse(t, s.key()+": "+nonsense+"\n")
			if got := len(problems) > 0; got == free[s.name] {
				t.Errorf("parseConfigFile(%s: %s) = problems %q, want some: %v", s.key(), nonsense, problems, !free[s.name])
			}
			if _, problems := parse(t, s.key()+": {a: b}\n"); len(problems) != 1 {
				t.Errorf("parseConfigFile(%s: {a: b}) = problems %q, want one: it is the wrong type", s.key(), problems)
			}
			if _, problems := parse(t, s.key()+":\n"); len(problems) != 1 {
				t.Errorf("parseConfigFile(%s:) = problems %q, want one: it has no value", s.key(), problems)
			}
			if _, problems := parse(t, s.key()+`: "a\0b"`+"\n"); len(problems) != 1 {
				t.Errorf("parseConfigFile(%s: zero byte) = problems %q, want one", s.key(), problems)
			}
		})
	}
}

// FuzzParseConfigFile: any bytes give a configuration whose values are good, or
// problems that name the file; never a panic or an endless loop.
func FuzzParseConfigFile(f *testing.F) {
	for _, seed := range []string{
		"", configTemplate(), "delay: 1\n", "profiles: {a: &a {delay: 1s}, b: *a}\n", "rules: [&r {a: *r}]\n",
		"budgets: {a: {capacity: 1}}\n", "? [a]\n: b\n", "<<: *x\n", "a: b: c\n", "%YAML 1.1\n---\n",
	} {
		f.Add([]byte(seed))
	}
	rows := settingsByKey()
	f.Fuzz(func(t *testing.T, data []byte) {
		file, problems := parseConfigFile("c.yaml", data, rows)
		for _, p := range problems {
			if !strings.HasPrefix(p, "c.yaml:") {
				t.Errorf("problem %q does not name the file and line", p)
			}
		}
		for key, v := range file.base.values {
			if text, ok := v.(string); ok && rows[key].check(text) != nil {
				t.Errorf("value of %s = %q, which check refuses", key, text)
			}
			if file.base.lines[key] == "" {
				t.Errorf("%s has no line", key)
			}
		}
	})
}
