package cmd

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/retryx/retryx/exec"
)

const failureSchemaFile = "../docs/schema/failure.v1.json"

// Every input of a hook obeys its schema, before the end and after it, with an
// attempt and without.
func TestHookInputObeysItsSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(failureSchemaFile)
	must(t, err)
	ended := denied()
	soFar := denied()
	soFar.Ended, soFar.Label, soFar.Reason = time.Time{}, "", ""
	none := &exec.Outcome{Label: exec.Cancelled, Reason: exec.ByCancelToken, Started: begun(), Ended: begun()}
	h := &hookRunner{redact: newRedactor(nil, nil, nil), document: func(o *exec.Outcome) *document {
		f := deniedFacts()
		f.status = endingOf(o, nil, false)
		return newDocument(o, f)
	}}
	for _, tt := range []struct {
		hook    exec.Hook
		o       *exec.Outcome
		outcome string
		attempt int
	}{
		{exec.HookReconcile, soFar, "hard_failure", 3},
		{exec.HookCorrect, soFar, "hard_failure", 3},
		{exec.HookBeforeRetry, soFar, "retryable_failure", 3},
		{exec.HookOnOutcome, ended, "retryable_failure", 3},
		{exec.HookOnOutcome, none, "cancelled", 0},
	} {
		text, err := h.input(tt.hook, tt.o)
		must(t, err)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		must(t, err)
		if err := schema.Validate(value); err != nil {
			t.Errorf("input of %s = %s is not valid: %v", tt.hook, text, err)
		}
		got := value.(map[string]any)
		if got["outcome"] != tt.outcome || got["attempt"] != json.Number(strconv.Itoa(tt.attempt)) {
			t.Errorf("input of %s has outcome %v, attempt %v, want %s, %d", tt.hook, got["outcome"], got["attempt"], tt.outcome, tt.attempt)
		}
		if ended := got["ended_at"] != nil; ended != (tt.hook == exec.HookOnOutcome) {
			t.Errorf("input of %s has ended_at %v", tt.hook, got["ended_at"])
		}
	}
}

// The schema of the hooks is the outcome's and three fields.
func TestFailureSchemaIsTheOutcomes(t *testing.T) {
	load := func(name string) map[string]any {
		data, err := os.ReadFile(name)
		must(t, err)
		var v map[string]any
		must(t, json.Unmarshal(data, &v))
		return v
	}
	outcome, failure := load(outcomeSchemaFile), load(failureSchemaFile)
	own := []string{"stderr_tail", "stdout_tail", "attempt"}
	required := func(v map[string]any) (names []string) {
		for _, name := range v["required"].([]any) {
			names = append(names, name.(string))
		}
		return names
	}
	if diff := cmp.Diff(append(required(outcome), own...), required(failure)); diff != "" {
		t.Errorf("required fields (-outcome +failure):\n%s", diff)
	}
	of, ff := outcome["properties"].(map[string]any), failure["properties"].(map[string]any)
	for name := range maps.Keys(ff) {
		if slices.Contains(own, name) || name == "schema" || name == "ended_at" {
			continue
		}
		if diff := cmp.Diff(of[name], ff[name]); diff != "" {
			t.Errorf("%s (-outcome +failure):\n%s", name, diff)
		}
	}
	for _, part := range []string{"$defs", "allOf"} {
		if diff := cmp.Diff(outcome[part], failure[part]); diff != "" {
			t.Errorf("%s (-outcome +failure):\n%s", part, diff)
		}
	}
}

func TestCorrectorsAnswer(t *testing.T) {
	for text, want := range map[string][]string{
		`["a"]`:             {"a"},
		` ["a", "", " "]`:   {"a", "", " "},
		`["a"] ["b"]`:       nil,
		`"a"`:               nil,
		`{"argv":["a"]}`:    nil,
		`["a", 1]`:          nil,
		`["a", null]`:       nil,
		`[null]`:            nil,
		`["a", "b\u0000c"]`: nil,
		`[""]`:              nil,
		`[]`:                nil,
		`null`:              nil,
		``:                  nil,
	} {
		got, err := (&hookRunner{redact: &redactor{}}).Argv([]byte(text))
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("Argv(%s) = %q, %v, want %q", text, got, err, want)
		}
	}
}
