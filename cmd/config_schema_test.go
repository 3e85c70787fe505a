package cmd

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// The schema for editors is made from the table of settings. UPDATE_SCHEMA=1
// writes it anew.

const configSchemaFile = "../docs/schema/config.v1.json"

type object = map[string]any

const (
	durationPattern = `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$`
	ratePattern     = `^(0|[0-9]+(\.[0-9]{1,6})?/[smh])$`
	sizePattern     = `^[0-9]+([KMG](iB|B)?|B)?$`
	namePattern     = `^[a-z0-9][a-z0-9._-]{0,63}$`
	rulePattern     = `^\s*[a-z]+:`
)

func textOrZero(pattern string) object {
	return object{"type": []string{"string", "integer"}, "pattern": pattern, "minimum": 0, "maximum": 0}
}

func oneOrMore(types ...string) object {
	return object{"type": append(types, "array"), "items": object{"type": types}}
}

// schemaOf describes what a setting's value looks like in YAML.
func schemaOf(s setting) object {
	var out object
	switch {
	case s.kind == toggle:
		out = object{"type": "boolean"}
	case s.choices != nil:
		out = object{"enum": s.choices}
	case s.unit == "LIST":
		out = oneOrMore("string", "integer")
	case s.kind == list:
		out = oneOrMore("string")
	case s.unit == "D":
		out = textOrZero(durationPattern)
	case s.unit == "RATE":
		out = textOrZero(ratePattern)
	case s.unit == "N":
		least := 0
		if s.check("0") != nil {
			least = 1
		}
		out = object{"type": "integer", "minimum": least}
	case s.name == "multiplier":
		out = object{"type": "number", "minimum": 1}
	case s.name == "budget-bonus":
		out = object{"type": "number", "minimum": 0, "maximum": 1}
	case s.unit == "SIZE":
		out = object{"type": []string{"string", "integer"}, "pattern": sizePattern, "minimum": 0}
	case s.unit == "T":
		out = object{"type": []string{"string", "integer"}}
	default:
		out = object{"type": "string"}
	}
	out["description"] = s.usage
	if s.def != "" {
		out["default"] = yamlValue(s.def)
	}
	return out
}

// yamlValue is what YAML takes a text for.
func yamlValue(text string) any {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	return v
}

func configSchema() object {
	properties := object{}
	for _, s := range table() {
		if !s.noConfig {
			properties[s.key()] = schemaOf(s)
		}
	}
	properties["profiles"] = object{
		"type":        "object",
		"description": "sets of the same keys by name, chosen by --profile or RETRYX_PROFILE",
		"additionalProperties": object{"anyOf": []any{
			object{"type": "null"},
			object{"allOf": []any{object{"$ref": "#"}, object{"not": object{"required": []string{"profiles"}}}}},
		}},
	}
	properties["budgets"] = object{
		"type":          "object",
		"description":   "budgets by name",
		"propertyNames": object{"pattern": namePattern},
		"additionalProperties": object{
			"type": "object", "additionalProperties": false,
			"properties": object{
				"capacity": object{"type": "integer", "minimum": 0, "maximum": 1_000_000, "default": 20, "description": "tokens that it can hold"},
				"refill":   merge(textOrZero(ratePattern), object{"default": "0.1/s", "description": "tokens that come back, per s, m or h"}),
				"bonus":    object{"type": "number", "minimum": 0, "maximum": 1, "default": 0.1, "description": "tokens that a success brings"},
			},
		},
	}
	rule := []any{
		object{"type": "string", "pattern": rulePattern},
		object{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": object{"type": "string"}},
	}
	properties["rules"] = object{
		"description": "rules of your own as for --rule: 'CLASS: [exit=LIST] [signal=LIST] [stderr=RE|stdout=RE|output=RE]'",
		"anyOf":       append([]any{object{"type": "array", "items": object{"anyOf": rule}}}, rule...),
	}
	return object{
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"title":                "configuration of retryx",
		"description":          "the files that \"retryx config path\" lists",
		"type":                 []string{"object", "null"},
		"additionalProperties": false,
		"properties":           properties,
	}
}

func merge(a, b object) object {
	maps.Copy(a, b)
	return a
}

func TestConfigSchemaIsCurrent(t *testing.T) {
	var want bytes.Buffer
	out := json.NewEncoder(&want)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(configSchema()); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_SCHEMA") != "" {
		if err := os.MkdirAll(filepath.Dir(configSchemaFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(configSchemaFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(configSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s is not what the settings say; UPDATE_SCHEMA=1 go test ./cmd writes it anew (-want +got):\n%s", configSchemaFile, diff)
	}
}

// TestConfigSchemaAgrees: the schema takes what the program takes, and refuses
// the same mistakes as far as a schema can see them.
func TestConfigSchemaAgrees(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(configSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"", "{}", configTemplate(), uncommented(configTemplate()),
		"delay: 1.5h30m", "delay: 0", "delay: 10", "delay: -1s", "delay: [1s]", "delay: 1 s", "delay: .5s", "delay: 1.s", "delay: 1µs",
		"max_attempts: 0", "max_attempts: 1", "max_attempts: 1.5", "max_attempts: zero", "max_corrections: 0", "max_corrections: -1",
		"multiplier: 1", "multiplier: 0.5", "multiplier: x", "budget_bonus: 2", "budget_bonus: 0.25",
		"jitter: ful", "jitter: full", "strict: yes", "strict: true", "ci: off",
		"retry_exit: 7", "retry_exit: [7, 50-60]", "retry_exit: {a: b}", "retry_on: [transient]", "retry_on: transient,unknown",
		"budget: api", "budget: [api, db]", "budget: {api: {}}",
		"budget_refill: 6/m", "budget_refill: 0", "budget_refill: 6", "budget_refill: 6/d", "budget_refill: 0.1234567/s",
		"stdin_limit: 4096", "stdin_limit: 64KiB", "stdin_limit: 64 KiB", "stdin_limit: 1TB", "stdin_limit: 10MB", "stdin_limit: 3G",
		"max-attempts: 3", "bogus: 1", "run_id: x", "step: x", "profile: ci", "config: x",
		"budgets: {api: {capacity: 3, refill: 1/s, bonus: 0.1}}", "budgets: {API: {capacity: 3}}", "budgets: {api: {size: 3}}",
		"budgets: {api: {capacity: -1}}", "budgets: {api: {refill: 1}}", "budgets: {api: 3}", "budgets: []",
		"profiles: {ci: {delay: 1s}}", "profiles: {ci: }", "profiles: {ci: {dela: 1s}}", "profiles: {ci: {profiles: {}}}",
		"profiles: {ci: {budgets: {a: {capacity: 1}}, rules: ['transient: exit=1']}}", "profiles: [ci]",
		"rules: ['transient: exit=7']", "rules: [transient: exit=7]", "rules: 'permanent: exit=2'", "rules: [nope]", "rules: [[x]]", "rules: {a: b, c: d}",
		"[]", "word", "on_outcome: [a]", "outcome: fd:3",
	}
	for _, text := range texts {
		_, problems := parse(t, text)
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%q is not YAML: %s", text, err)
		}
		err := schema.Validate(throughJSON(t, v))
		if (err == nil) != (len(problems) == 0) {
			t.Errorf("%.60q: the schema says %v, the program %q, want them to agree", text, err, problems)
		}
	}
}

// throughJSON turns what YAML read into what a schema checks.
func throughJSON(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConfigSchemaNames every key, so that editors can complete them.
func TestConfigSchemaNames(t *testing.T) {
	data, err := os.ReadFile(configSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for _, s := range table() {
		want := !s.noConfig || s.key() == keyRules // a list of rules, not --rules
		if _, ok := doc.Properties[s.key()]; ok != want {
			t.Errorf("the schema names %s: %v, want %v", s.key(), ok, want)
		}
	}
}
