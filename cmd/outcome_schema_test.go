package cmd

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const outcomeSchemaFile = "../docs/schema/outcome.v1.json"

var compiledSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(outcomeSchemaFile)
})

// validateOutcome fails the test unless line is one line of JSON that the
// outcome's schema accepts, with the schema's fields and no others.
func validateOutcome(t interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, line []byte,
) {
	t.Helper()
	schema, err := compiledSchema()
	if err != nil {
		t.Fatalf("compile %s: %v", outcomeSchemaFile, err)
	}
	text, ok := bytes.CutSuffix(line, []byte("\n"))
	if !ok || bytes.ContainsAny(text, "\r\n") {
		t.Errorf("outcome = %q, want one line", line)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("outcome %q is no JSON: %v", line, err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("outcome %s is not valid: %v", text, err)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&document{}); err != nil {
		t.Errorf("outcome %s has a field that no schema knows: %v", text, err)
	}
}

// The schema lists the fields of the document, in its order, and requires all.
func TestSchemaHasTheFieldsOfADocument(t *testing.T) {
	data, err := os.ReadFile(outcomeSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		schema object
		value  any
	}{
		{"outcome", schema.object, document{}},
		{"attempt", schema.Defs["attempt"], attemptDocument{}},
		{"budget", schema.Defs["budget"], budgetDocument{}},
		{"breaker", schema.Defs["breaker"], breakerDocument{}},
		{"correction", schema.Defs["correction"], correctionDocument{}},
		{"reconciliation", schema.Defs["reconciliation"], reconciliationDocument{}},
	} {
		fields := fieldsOf(t, tt.value)
		if diff := cmp.Diff(fields, tt.schema.Required); diff != "" {
			t.Errorf("%s: required fields differ (-document +schema):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(fields)), slices.Sorted(maps.Keys(tt.schema.Properties))); diff != "" {
			t.Errorf("%s: properties differ (-document +schema):\n%s", tt.name, diff)
		}
	}
}

// fieldsOf returns the names that a value has in JSON, in their order.
func fieldsOf(t *testing.T, v any) []string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var names []string
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// What the schema is there to refuse.
func TestSchemaRefuses(t *testing.T) {
	schema, err := compiledSchema()
	if err != nil {
		t.Fatal(err)
	}
	valid := string(newDocument(denied(), deniedFacts()).full())
	for _, tt := range []struct{ name, old, new string }{
		{"an unknown outcome", `"outcome":"retryable_failure"`, `"outcome":"failed"`},
		{"a reason that is no word", `"reason":"budget_denied"`, `"reason":"Budget denied"`},
		{"a failure with status 0", `"exit_status":7`, `"exit_status":0`},
		{"a missing field", `"breaker":null,`, ``},
		{"an unknown class", `"class":"transient"`, `"class":"temporary"`},
		{"no attempts but a class", `"attempt_count":3`, `"attempt_count":0`},
		{"a local time", `.678Z"`, `.678+01:00"`},
		{"a code and a signal", `"signal":null`, `"signal":"SIGKILL"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(valid, tt.old, tt.new, 1)
			if text == valid {
				t.Fatalf("outcome %s has no %s", valid, tt.old)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if schema.Validate(value) == nil {
				t.Errorf("Validate(%s) = nil, want an error", text)
			}
		})
	}
}
