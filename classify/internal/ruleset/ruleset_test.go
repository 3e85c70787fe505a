package ruleset_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

const sample = `
tool: frob
names: [frob2]
values: [-o]
subcommands: 2
effects:
  - {effect: write, sub: [put], flags: ["-X=POST|PATCH"]}
  - {effect: read}
rules:
  - id: busy
    class: transient
    maybe_applied: true
    exit: "7,50-60"
    signal: [term]
    output: ['is busy', 'try|again later']
    not: gone
    wait: 10s
    rank: decisive
    why: it is busy
    source: frob(1)
    examples:
      - {argv: frob put x, exit: 7, stderr: frob is busy}
`

func TestParse(t *testing.T) {
	f, err := ruleset.Parse("frob.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := ruleset.Rule{
		ID: "frob/busy", Class: "transient", MaybeApplied: true,
		Exit: []ruleset.Range{{Lo: 7, Hi: 7}, {Lo: 50, Hi: 60}}, Signals: []string{"SIGTERM"},
		Output: ruleset.Pattern{
			{Expr: "is busy", Need: [][]string{{"is busy"}}},
			{Expr: "try", Need: [][]string{{"try"}}},
			{Expr: "again later", Need: [][]string{{"again later"}}},
		},
		Not:  ruleset.Pattern{{Expr: "gone", Need: [][]string{{"gone"}}}},
		Wait: 10 * time.Second, Rank: ruleset.Decisive, Why: "it is busy", Source: "frob(1)", Line: 10,
		Examples: []ruleset.Example{{Argv: []string{"frob", "put", "x"}, Exit: 7, Stderr: "frob is busy"}},
	}
	if d := cmp.Diff(want, f.Rules[0]); d != "" {
		t.Errorf("Parse(frob.yaml).Rules[0] differs (-want +got):\n%s", d)
	}
}

func TestParseNamesFileLineAndRule(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown key", "tool: x\nfrob: 1\nrules: []\n", `x.yaml:2: unknown key "frob"`},
		{"unknown rule key", "tool: x\nrules:\n  - id: a\n    class: config\n    exit: 1\n    frob: 1\n", `x.yaml:6: rule a: unknown key "frob"`},
		{"class", "tool: x\nrules:\n  - {id: a, class: odd, exit: 1}\n", `x.yaml:3: rule a: "odd" is none of transient`},
		{"pattern", "tool: x\nrules:\n  - {id: a, class: config, output: '('}\n", "x.yaml:3: rule a: bad pattern"},
		{"empty match", "tool: x\nrules:\n  - {id: a, class: config, output: 'a*'}\n", "x.yaml:3: rule a: pattern \"a*\" matches an empty line"},
		{"no condition", "tool: x\nrules:\n  - {id: a, class: config}\n", "x.yaml:3: rule a: a rule needs a condition"},
		{"exit", "tool: x\nrules:\n  - {id: a, class: config, exit: 300}\n", `"300" is no exit status`},
		{"wait", "tool: x\nrules:\n  - {id: a, class: config, exit: 1, wait: 10}\n", `"10" is no duration`},
		{"maybe applied", "tool: x\nrules:\n  - {id: a, class: config, exit: 1, maybe_applied: true}\n", "maybe_applied makes sense only"},
		{"status", "tool: x\nrules:\n  - {id: a, class: config, status: {words: gone}}\n", "x.yaml:3: rule a: status needs codes"},
		{"status code", "tool: x\nrules:\n  - {id: a, class: config, status: {codes: '('}}\n", "x.yaml:3: rule a: bad pattern"},
		{"twice", "tool: x\nrules:\n  - {id: a, class: config, exit: 1}\n  - {id: a, class: config, exit: 2}\n", "x.yaml:4: rule a: the id stands twice"},
		{"key twice", "tool: x\nabout: a\nabout: b\nrules: []\n", `x.yaml:3: key "about" stands twice`},
		{"flag", "tool: x\neffects: [{effect: read, flags: [foo]}]\nrules: []\n", `flag "foo" does not start with a dash`},
		{"no name", "rules: []\n", "give `tool:` or `generic:` a name"},
		{"empty", "", "the file is empty"},
		{"no yaml", "tool: [", "read rules x.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ruleset.Parse("x.yaml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse(%q) = %v, want an error with %q", tc.text, err, tc.want)
			}
		})
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	_, err := ruleset.Parse("x.yaml", []byte("tool: x\nrules:\n  - {id: a, class: odd, exit: 1}\n  - {id: b, class: config}\n"))
	for _, want := range []string{"x.yaml:3: rule a", "x.yaml:4: rule b"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(two bad rules) = %v, want an error with %q", err, want)
		}
	}
}

// A number is a status by what stands around it, and never when it counts
// something: "failed: 502 records".
func TestStatus(t *testing.T) {
	f, err := ruleset.Parse("x.yaml", []byte("tool: x\nrules:\n  - id: a\n    class: config\n    status: {codes: '502|503', words: 'bad gateway'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"HTTP/1.1 502":                        true,
		"Request failed with status code 503": true,
		"returned error: 502 for http://h/":   true,
		"got 503 from the server":             true,
		"server returned 503 errors":          true,
		"status 502 vs 200":                   true,
		"error 503 does not pass":             true,
		"code 502 process ended":              true,
		"errorCode=502, retryable":            true,
		"HTTP 502_BAD_GATEWAY":                true,
		"(HTTP 503)":                          true,
		"502: Bad Gateway":                    true,
		"fetch failed [503]":                  true,
		"api_core.exceptions.Oh: 502 no":      true,
		"check failed: 502 records rejected":  false,
		"received 503 bytes":                  false,
		"got 502 items, want 503 items":       false,
		"port 502":                            false,
		"HTTP 5021":                           false,
	} {
		matched := slices.ContainsFunc(f.Rules[0].Output, func(e ruleset.Expression) bool { return seen(t, &e, line) })
		if matched != want {
			t.Errorf("status 502 or 503 in %q: %t, want %t", line, matched, want)
		}
	}
}

func TestParseExits(t *testing.T) {
	got, err := ruleset.ParseExits("7, 28,50-60")
	want := []ruleset.Range{{Lo: 7, Hi: 7}, {Lo: 28, Hi: 28}, {Lo: 50, Hi: 60}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("ParseExits(7, 28,50-60) = %v, %v; diff:\n%s", got, err, d)
	}
	for _, bad := range []string{"", ",", "7,", "a", "256", "-1", "9-7", "1-2-3", "1.5", "0x7"} {
		if got, err := ruleset.ParseExits(bad); err == nil {
			t.Errorf("ParseExits(%q) = %v, want an error", bad, got)
		}
	}
}

func TestNewPatternLiterals(t *testing.T) {
	for _, tc := range []struct {
		expr string
		want [][]string
	}{
		{"Connection Refused", [][]string{{"connection refused"}}},
		{"(?:429|503)", [][]string{{"429", "503"}}},
		{"colou?r", [][]string{{"color", "colour"}}},
		{"returned error: 5[0-3]", [][]string{{"returned error: 50", "returned error: 51", "returned error: 52", "returned error: 53"}}},
		{"dial.{0,80}timeout", [][]string{{"timeout"}, {"dial"}}},
		{`\d+`, nil},
		{"(?:abc)*", nil},
		{"(?:abc)+", [][]string{{"abc"}}},
		{"(?:abc|.)", nil},
	} {
		p, err := ruleset.NewPattern(tc.expr)
		if err != nil || len(p) != 1 {
			t.Fatalf("NewPattern(%q) = %v, %v, want one expression", tc.expr, p, err)
		}
		if d := cmp.Diff(tc.want, p[0].Need); d != "" {
			t.Errorf("NewPattern(%q).Need differs (-want +got):\n%s", tc.expr, d)
		}
	}
}

// TestLiteralsNeverHideAMatch holds the filter to its promise: a string that an
// expression matches holds a literal of each of its sets.
func TestLiteralsNeverHideAMatch(t *testing.T) {
	for _, expr := range []string{
		"connection (?:was )?(?:reset|closed)|broken pipe", `\b(?:5\d\d|429)\b[ :]+x+`, "[Ee]rr(?:or)? [a-d]{2}z",
		"a(?:b|c)?d(?:e|fg)+h", "(?-i:E404)|x{2,3}y", `[|)\]]foo|\|bar`, "é(?:a|ü)x", `\bNo\S+E\W[A-F]{2}`,
	} {
		p, err := ruleset.NewPattern(expr)
		if err != nil {
			t.Fatal(err)
		}
		re, err := ruleset.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{
			"connection reset", "Connection was CLOSED", "BROKEN PIPE", "503 : xx", "429:x", "err abz", "ERROR ccz",
			"adeh", "abdfgeh", "E404", "xxy", "xxxy", ")foo", "|bar", "]foo", "éax", "éüx", "NoSuchE:Fa", "e404",
		} {
			matched := false
			for _, e := range p {
				if !seen(t, &e, s) {
					continue
				}
				matched = true
				for _, set := range e.Need {
					if !holdsOne(s, set) {
						t.Errorf("%q matches %q but holds none of %q", e.Expr, s, set)
					}
				}
			}
			if want := re.MatchString(s); matched != want {
				t.Errorf("the alternatives of %q match %q: %t, want %t", expr, s, matched, want)
			}
		}
	}
}

// seen reports whether an expression matches, in the way that is cheap and in
// the way that is plain, which must agree.
func seen(t *testing.T, e *ruleset.Expression, s string) bool {
	t.Helper()
	plain, err := ruleset.Compile(e.Expr)
	if err != nil {
		t.Fatal(err)
	}
	cheap, err := e.Compile()
	if err != nil {
		t.Fatal(err)
	}
	text := s
	if !e.Cased() {
		text = strings.ToLower(s)
	}
	matched := plain.MatchString(s)
	if got := cheap.MatchString(text); got != matched {
		t.Errorf("%q matches %q: %t, want %t as %q does", cheap, text, got, matched, plain)
	}
	return matched
}

func holdsOne(s string, set []string) bool {
	for _, phrase := range set {
		if strings.Contains(strings.ToLower(s), phrase) {
			return true
		}
	}
	return false
}

func TestReadDirRefuses(t *testing.T) {
	ok := &fstest.MapFile{Data: []byte("tool: a\nnames: [c]\nrules: []\n")}
	for name, dir := range map[string]fstest.MapFS{
		"describes":      {"b.yaml": ok},
		"is taken by a.": {"a.yaml": ok, "c.yaml": {Data: []byte("tool: c\nrules: []\n")}},
	} {
		if _, err := ruleset.ReadDir(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("ReadDir(%v) = %v, want an error with %q", dir, err, name)
		}
	}
}
