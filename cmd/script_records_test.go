package cmd_test

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkValid is: valid SCHEMA FILE [name=value...]. The file, which may be
// stdout, is one JSON value that docs/schema/SCHEMA.v1.json accepts and has
// these values, written as for outcome.
func checkValid(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: valid SCHEMA FILE [name=value...]")
	}
	schema, err := jsonschema.NewCompiler().Compile("../docs/schema/" + args[0] + ".v1.json")
	ts.Check(err)
	text := ts.ReadFile(args[1])
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	ts.Check(err)
	if err := schema.Validate(doc); (err != nil) != neg {
		ts.Fatalf("Validate(%s) = %v", text, err)
	}
	for _, want := range args[2:] {
		name, value, _ := strings.Cut(want, "=")
		if got := field(doc, name); got != value {
			ts.Fatalf("%s = %q, want %q\n%s", name, got, value, text)
		}
	}
}

// checkExposition is: exposition FILE [SAMPLE...]. The file obeys the text
// format that Prometheus reads and has these samples.
func checkExposition(ts *testscript.TestScript, _ bool, args []string) {
	samples, err := readExposition(ts.ReadFile(args[0]))
	ts.Check(err)
	for _, want := range args[1:] {
		if !samples[want] {
			ts.Fatalf("no sample %s in\n%s", want, ts.ReadFile(args[0]))
		}
	}
}

var (
	metaLine   = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\} ([0-9]+(?:\.[0-9]+)?)$`)
)

// readExposition holds a text to the rules of the format: every family has one
// HELP and one TYPE before its samples, its samples stand together, no series
// occurs twice, and a counter's name ends in _total.
func readExposition(text string) (map[string]bool, error) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the last line has no end")
	}
	family, typed := "", map[string]string{}
	seen, samples := map[string]bool{}, map[string]bool{}
	for in := bufio.NewScanner(strings.NewReader(text)); in.Scan(); {
		line := in.Text()
		if m := metaLine.FindStringSubmatch(line); m != nil {
			if m[1] == "HELP" {
				if _, again := typed[m[2]]; again {
					return nil, fmt.Errorf("a second HELP for %s", m[2])
				}
				family, typed[m[2]] = m[2], ""
				continue
			}
			if m[2] != family || typed[family] != "" {
				return nil, fmt.Errorf("TYPE out of place: %s", line)
			}
			if typed[family] = m[3]; m[3] == "counter" && !strings.HasSuffix(family, "_total") {
				return nil, fmt.Errorf("a counter without _total: %s", line)
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || m[1] != family || typed[family] == "" {
			return nil, fmt.Errorf("bad or misplaced sample: %q", line)
		}
		series := m[1] + "{" + m[2] + "}"
		if seen[series] {
			return nil, fmt.Errorf("series occurs twice: %s", series)
		}
		seen[series], samples[line] = true, true
	}
	return samples, nil
}
