package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/retryx/retryx/budget"
)

// configFixture is a machine with a user, whose files may be written.
type configFixture struct {
	t      *testing.T
	places configPlaces
	named  string // what --config would name
}

func newConfigFixture(t *testing.T) *configFixture {
	t.Helper()
	dir := t.TempDir()
	return &configFixture{
		t:     t,
		named: filepath.Join(dir, "named.yaml"),
		places: configPlaces{
			system:  filepath.Join(dir, "etc", "retryx", "config.yaml"),
			environ: map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "home", ".config")},
			uid:     os.Geteuid(),
			passwd:  func(int) string { return "" },
		},
	}
}

func (f *configFixture) user() string { return f.places.user() }

// write puts a file of mode 0644 at a path.
func (f *configFixture) write(path, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// load loads what was written; it must be right.
func (f *configFixture) load(explicit, profile string) *configuration {
	f.t.Helper()
	c, err := f.places.load(explicit, profile)
	if err != nil {
		f.t.Fatalf("load(%q, %q) = error %q, want none", explicit, profile, err)
	}
	return c
}

// problems returns what is wrong with the files.
func (f *configFixture) problems(explicit, profile string) []string {
	f.t.Helper()
	c, err := f.places.load(explicit, profile)
	if c == nil {
		f.t.Fatalf("load(%q, %q) = nil, want a configuration beside any problems", explicit, profile)
	}
	var usage *usageError
	if err != nil && !errors.As(err, &usage) {
		f.t.Fatalf("load(%q, %q) = error %T, want a usageError", explicit, profile, err)
	}
	if usage == nil {
		return nil
	}
	return usage.problems
}

// parse parses one file by the name c.yaml.
func parse(t *testing.T, text string) (*configFile, []string) {
	t.Helper()
	return parseConfigFile("c.yaml", []byte(text), settingsByKey())
}

func runFlags(t *testing.T) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	define(flags, table())
	return flags
}

// layers are the sources of a value, the weakest first.
func layers() []string {
	return []string{"default", "system", "user", "named", "profile", "environment", "flag"}
}

// TestPrecedence sets a value in every pair of sources, and asks for the
// stronger one's.
func TestPrecedence(t *testing.T) {
	for low, lower := range layers() {
		for _, higher := range layers()[low+1:] {
			t.Run(lower+" below "+higher, func(t *testing.T) {
				f, flags := newConfigFixture(t), runFlags(t)
				f.set(flags, lower, 11)
				want := f.set(flags, higher, 22)
				explicit, profile := f.chosen(lower, higher)
				r := newResolver(flags, f.places.environ, f.load(explicit, profile), time.Time{})
				if got := r.text("max-attempts"); got != "22" {
					t.Errorf("text(max-attempts) = %q, want the %s value 22", got, higher)
				}
				if got := r.origin("max-attempts").where; got != want {
					t.Errorf("origin(max-attempts).where = %q, want %q", got, want)
				}
			})
		}
	}
}

// set gives max-attempts a value in a source, and returns how its origin is
// called.
func (f *configFixture) set(flags *pflag.FlagSet, source string, n int) (origin string) {
	f.t.Helper()
	text := fmt.Sprintf("\nmax_attempts: %d\n", n)
	switch source {
	case "default":
		return "--max-attempts"
	case "system":
		f.write(f.places.system, text)
		return f.places.system + ":2: max_attempts"
	case "user":
		f.write(f.user(), text)
		return f.user() + ":2: max_attempts"
	case "named":
		f.write(f.named, text)
		return f.named + ":2: max_attempts"
	case "profile": // in the weakest file, and still above the plain settings of all
		old, _ := os.ReadFile(f.places.system)
		f.write(f.places.system, fmt.Sprintf("profiles: {p: {max_attempts: %d}}%s", n, old))
		return f.places.system + ":1: max_attempts"
	case "environment":
		f.places.environ["RETRYX_MAX_ATTEMPTS"] = fmt.Sprint(n)
		return "RETRYX_MAX_ATTEMPTS"
	case "flag":
		if err := flags.Set("max-attempts", fmt.Sprint(n)); err != nil {
			f.t.Fatal(err)
		}
		return "--max-attempts"
	}
	f.t.Fatalf("no source %q", source)
	return ""
}

func (f *configFixture) chosen(sources ...string) (explicit, profile string) {
	if slices.Contains(sources, "named") {
		explicit = f.named
	}
	if slices.Contains(sources, "profile") {
		profile = "p"
	}
	return explicit, profile
}

func TestListsReplace(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.places.system, "retry_exit: [7, 28]\nstop_exit: [2]\nredact: [a]\nrules: ['transient: exit=7', 'transient: exit=8']\n")
	f.write(f.user(), "retry_exit: [35]\nstop_exit: []\nrules:\n  - 'permanent: exit=9'\n")
	c := f.load("", "")
	want := map[string]any{"retry_exit": []any{"35"}, "stop_exit": []any{}, "redact": []any{"a"}}
	if diff := cmp.Diff(want, c.values); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
	wantRules := []ruleSpec{{"permanent: exit=9", f.user() + ":4"}}
	if diff := cmp.Diff(wantRules, c.rules, cmp.AllowUnexported(ruleSpec{})); diff != "" {
		t.Errorf("rules differ (-want +got):\n%s", diff)
	}
	f.write(f.user(), "rules: []\n")
	if c := f.load("", ""); len(c.rules) != 0 {
		t.Errorf("rules = %v, want none after an empty list", c.rules)
	}
}

func TestProfilesMerge(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.places.system, `
delay: 1s
profiles:
  ci:
    delay: 2s
    max_delay: 30s
    rules: ["transient: exit=1"]
  slow: {delay: 9s}
`)
	f.write(f.user(), `
max_delay: 40s
profiles:
  ci: {max_delay: 50s, budget: [api], budgets: {api: {capacity: 3}}}
  empty:
`)
	c := f.load("", "ci")
	want := map[string]any{"delay": "2s", "max_delay": "50s", "budget": []any{"api"}}
	if diff := cmp.Diff(want, c.values); diff != "" {
		t.Errorf("values with profile ci differ (-want +got):\n%s", diff)
	}
	if got, want := c.lines["delay"], f.places.system+":5"; got != want {
		t.Errorf("lines[delay] = %q, want %q", got, want)
	}
	if len(c.rules) != 1 || c.rules[0].text != "transient: exit=1" {
		t.Errorf("rules = %v, want the profile's", c.rules)
	}
	if b := c.budgets["api"]; b.Capacity == nil || *b.Capacity != 3 {
		t.Errorf("budgets[api] = %+v, want the profile's capacity 3", b)
	}
	if diff := cmp.Diff([]string{"ci", "empty", "slow"}, c.profiles); diff != "" {
		t.Errorf("profiles differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"delay": "1s", "max_delay": "40s"}, f.load("", "").values); diff != "" {
		t.Errorf("values without profile differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"delay": "1s", "max_delay": "40s"}, f.load("", "empty").values); diff != "" {
		t.Errorf("values with the empty profile differ (-want +got):\n%s", diff)
	}
}

func TestUnknownProfile(t *testing.T) {
	const none = `profile "cii": there is no configuration file; "retryx config path" lists where one may stand`
	f := newConfigFixture(t)
	if diff := cmp.Diff([]string{none}, f.problems("", "cii")); diff != "" {
		t.Errorf("problems without files differ (-want +got):\n%s", diff)
	}
	f.write(f.user(), "delay: 1s\n")
	if got, want := f.problems("", "cii"), []string{`profile "cii": no profile is defined in ` + f.user()}; !slices.Equal(got, want) {
		t.Errorf("problems = %q, want %q", got, want)
	}
	f.write(f.user(), "profiles: {ci: {}, nightly: {}}\n")
	if got, want := f.problems("", "cii"), []string{`profile "cii": not defined; there is ci or nightly; did you mean "ci"?`}; !slices.Equal(got, want) {
		t.Errorf("problems = %q, want %q", got, want)
	}
	f.write(f.user(), "profiles: [\n")
	if got := f.problems("", "cii"); len(got) != 1 || !strings.Contains(got[0], "not YAML") {
		t.Errorf("problems = %q, want the broken file only: the profile may stand in it", got)
	}
}

func TestBudgetsMergeByName(t *testing.T) {
	f := newConfigFixture(t)
	f.write(f.places.system, "budgets:\n  api: {capacity: 5, bonus: 0.2}\n  db: {capacity: 7, refill: 0}\n")
	f.write(f.user(), "budgets:\n  api:\n    capacity: 7\n    refill: 6/m\n  db: {bonus: 0.2}\n")
	seven, perSecond, never, fifth := 7, budget.Rate(360_000_000), budget.Rate(0), budget.Token/5
	want := map[string]budgetConfig{
		"api": {Change: budget.Change{Capacity: &seven, Refill: &perSecond, Bonus: &fifth}, where: f.user() + ":2"},
		"db":  {Change: budget.Change{Capacity: &seven, Refill: &never, Bonus: &fifth}, where: f.user() + ":5"},
	}
	if diff := cmp.Diff(want, f.load("", "").budgets, cmp.AllowUnexported(budgetConfig{})); diff != "" {
		t.Errorf("budgets differ (-want +got):\n%s", diff)
	}
}

// TestEverySettingRoundTrips writes an example of every key and reads it back
// through the resolver.
func TestEverySettingRoundTrips(t *testing.T) {
	for _, s := range table() {
		t.Run(s.name, func(t *testing.T) {
			_, problems := parse(t, s.key()+": "+s.example()+"\n")
			if s.noConfig {
				if len(problems) != 1 {
					t.Errorf("problems = %q, want one: %s cannot stand in a file", problems, s.key())
				}
				return
			}
			f := newConfigFixture(t)
			f.write(f.user(), s.key()+": "+s.example()+"\n")
			r := newResolver(runFlags(t), nil, f.load("", ""), time.Now())
			if _, err := r.settings(); err != nil {
				t.Errorf("settings() = error %q, want none", err)
			}
			want := strings.Trim(s.example(), `[]"`)
			got := r.text(s.name)
			if s.kind == list {
				got = strings.Join(r.list(s.name), "|")
			}
			if got != want {
				t.Errorf("value of %s = %q, want %q", s.key(), got, want)
			}
			if o := r.origin(s.name); o.kind != fromConfig || o.where != f.user()+":1: "+s.key() {
				t.Errorf("origin(%s) = %+v, want line 1 of the file", s.name, o)
			}
		})
	}
}

// TestWaysToWrite are other spellings of values.
func TestWaysToWrite(t *testing.T) {
	tests := []struct {
		name, text, key string
		want            any
	}{
		{"a list for commas", "retry_on: [transient, unknown]", "retry_on", "transient,unknown"},
		{"a number for a list with commas", "success_exit: 3", "success_exit", "3"},
		{"numbers in a list", "retry_exit: [7, 50-60]", "retry_exit", []any{"7", "50-60"}},
		{"one entry without brackets", "budget: api", "budget", []any{"api"}},
		{"quotes", `max_attempts: "5"`, "max_attempts", "5"},
		{"zero without a unit", "min_attempt: 0", "min_attempt", "0"},
		{"a fraction", "multiplier: 1.50", "multiplier", "1.50"},
		{"a date stays as written", "deadline: 2030-01-02T03:04:05Z", "deadline", "2030-01-02T03:04:05Z"},
		{"words that older YAML takes for booleans", "ci: off", "ci", "off"},
		{"an empty value puts a setting back to nothing", `budget_store: ""`, "budget_store", ""},
		{"a block of text", "before_retry: |\n  a\n  b", "before_retry", "a\nb"},
		{"an alias", "before_retry: &c ./x.sh\non_outcome: *c", "on_outcome", "./x.sh"},
		{"carriage returns", "delay: 3s\r\n", "delay", "3s"},
		{"a byte order mark", "\ufeffdelay: 3s", "delay", "3s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file, problems := parse(t, tt.text)
			if len(problems) > 0 {
				t.Fatalf("parseConfigFile(%q) = problems %q, want none", tt.text, problems)
			}
			if diff := cmp.Diff(tt.want, file.base.values[tt.key]); diff != "" {
				t.Errorf("parseConfigFile(%q): %s differs (-want +got):\n%s", tt.text, tt.key, diff)
			}
		})
	}
}

// TestRulesWithoutQuotes: YAML takes the class for a key.
func TestRulesWithoutQuotes(t *testing.T) {
	file, problems := parse(t, "rules:\n  - transient: exit=7,28\n  - permanent: stderr=no such user\n  - 'config: exit=2'\n")
	if len(problems) > 0 {
		t.Fatalf("problems = %q, want none", problems)
	}
	want := []ruleSpec{{"transient: exit=7,28", "c.yaml:2"}, {"permanent: stderr=no such user", "c.yaml:3"}, {"config: exit=2", "c.yaml:4"}}
	if diff := cmp.Diff(want, file.base.rules, cmp.AllowUnexported(ruleSpec{})); diff != "" {
		t.Errorf("rules differ (-want +got):\n%s", diff)
	}
}

func TestFilesThatSayNothing(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only a comment\n", "---\n", "null\n", "{}\n"} {
		file, problems := parse(t, text)
		if len(problems) > 0 || len(file.base.values) > 0 {
			t.Errorf("parseConfigFile(%q) = %v, %q, want nothing and no problem", text, file.base.values, problems)
		}
	}
}
