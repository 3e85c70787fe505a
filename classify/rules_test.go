package classify

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/retryx/retryx/classify/internal/gosource"
	"github.com/retryx/retryx/classify/internal/ruleset"
)

// rulesOnDisk reads the files as they stand, so that an author sees the effect
// of an edit without generating. Files that do not parse are reported by
// TestRulesParse alone.
func rulesOnDisk(t *testing.T) *tables {
	t.Helper()
	var files []ruleset.File
	for _, path := range rulePaths(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := ruleset.Parse(filepath.Base(path), data); err == nil {
			files = append(files, f)
		}
	}
	ruleset.Sort(files)
	tab := &tables{files: files}
	for _, n := range ruleset.Names(files) {
		tab.names = append(tab.names, toolName{n.Name, n.File})
	}
	return tab
}

func rulePaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("rules/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("Glob(rules/*.yaml) = %v, %v, want files", paths, err)
	}
	return paths
}

func TestRulesParse(t *testing.T) {
	if _, err := ruleset.ReadDir(os.DirFS("rules")); err != nil {
		t.Error(err)
	}
}

// TestExamples judges every example of every rule: a tool's rule must answer
// itself, a generic one must match, and the class must be what the example says.
func TestExamples(t *testing.T) {
	tab := rulesOnDisk(t)
	for _, f := range tab.files {
		t.Run(f.Name, func(t *testing.T) {
			for _, r := range f.Rules {
				if len(r.Examples) == 0 {
					t.Errorf("%s has no example", r.ID)
				}
				for i, ex := range r.Examples {
					tryExample(t, tab, &r, i, ex)
				}
			}
		})
	}
}

func tryExample(t *testing.T, tab *tables, r *Rule, i int, ex ruleset.Example) {
	t.Helper()
	if len(ex.Argv) == 0 {
		t.Errorf("%s, example %d has no argv", r.ID, i+1)
		return
	}
	want := Class(ex.Class)
	if want == "" {
		want = Class(r.Class)
	}
	a := Attempt{Argv: ex.Argv, Exit: ex.Exit, Signal: signalNumber(ex.Signal), Stderr: []byte(ex.Stderr), Stdout: []byte(ex.Stdout)}
	c := New(tab.read(ex.Argv), Options{})
	got := c.Classify(a)
	if ex.Exit == 0 {
		got, _ = c.SuccessRuleMatch(a)
	}
	_, matches := c.matcher(a).try(r, nil)
	answers := got.Rule == r.ID || isGeneric(tab, r.ID) && matches
	if !answers || got.Class != want {
		t.Errorf("Classify(%s, example %d) = %s by %q on %q, want %s by %q", r.ID, i+1, got.Class, got.Rule, got.Evidence, want, r.ID)
	}
	if ex.RetryAfter != 0 && got.RetryAfter != ex.RetryAfter {
		t.Errorf("Classify(%s, example %d).RetryAfter = %v, want %v", r.ID, i+1, got.RetryAfter, ex.RetryAfter)
	}
}

// isGeneric reports whether a rule belongs to a vocabulary. Vocabularies overlap
// with each other and with tools that betray themselves, so that it is enough
// for such a rule to match.
func isGeneric(tab *tables, id string) bool {
	name, _, _ := strings.Cut(id, "/")
	return slices.ContainsFunc(tab.files, func(f ruleset.File) bool { return f.Generic && f.Name == name })
}

// TestRulesAreCheapAndExplained keeps the knowledge base fast and honest.
func TestRulesAreCheapAndExplained(t *testing.T) {
	for _, f := range rulesOnDisk(t).files {
		for _, e := range f.Chatter {
			if !cheap(e) {
				t.Errorf("%s: chatter %q has no literal of three letters", f.Name, e.Expr)
			}
		}
		for _, r := range f.Rules {
			if r.Why == "" || r.Source == "" || strings.Contains(r.Why+r.Source, "\n") {
				t.Errorf("%s needs why and source, one line each", r.ID)
			}
			for _, e := range slices.Concat(append(r.And, r.Stderr, r.Stdout, r.Output, r.Not)...) {
				if !cheap(e) {
					t.Errorf("%s: %q has no literal of three letters", r.ID, e.Expr)
				}
			}
		}
	}
}

// cheap reports whether literals keep most lines away from the expression.
func cheap(e ruleset.Expression) bool {
	const shortest = 3 // bytes; shorter ones are found in too many lines
	return slices.ContainsFunc(e.Need, func(set []string) bool {
		return !slices.ContainsFunc(set, func(literal string) bool { return len(literal) < shortest })
	})
}

func TestGeneratedTablesAreFresh(t *testing.T) {
	files, err := ruleset.ReadDir(os.DirFS("rules"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := gosource.Print(files)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("rules_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("rules_gen.go is stale; run: go generate ./classify")
	}
}

func TestRulesMatchTheSchema(t *testing.T) {
	schema := rulesSchema(t)
	for _, path := range rulePaths(t) {
		if err := schema.Validate(yamlValue(t, path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema := rulesSchema(t)
	for _, text := range []string{
		"rules: []",
		"tool: x\ngeneric: y\nrules: []",
		"tool: x\nrules: [{id: a, class: odd, exit: 1, why: w, source: s, examples: [{argv: x}]}]",
		"tool: x\nrules: [{id: a, class: config, exit: 1, why: w, source: s}]",
		"tool: x\nfrobnicate: 1\nrules: []",
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if schema.Validate(v) == nil {
			t.Errorf("the schema accepts %q", text)
		}
	}
}

func rulesSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../docs/schema/rules.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// yamlValue reads a YAML file as the values that a JSON reader would give.
func yamlValue(t *testing.T, path string) any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestBuiltins(t *testing.T) {
	seen := map[string]bool{}
	for r := range Builtins() {
		if seen[r.ID] {
			t.Errorf("Builtins() yields %q twice", r.ID)
		}
		seen[r.ID] = true
	}
	for _, id := range []string{"curl/connect-refused", "errno/connection-refused"} {
		if !seen[id] {
			t.Errorf("Builtins() lacks %q", id)
		}
	}
}
