package cmd

// How one rule is shown: the same conditions as words and as JSON.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/retryx/retryx/classify"
)

// ruleDocument is the JSON of one rule. A condition that is null or empty is none.
type ruleDocument struct {
	Schema       string            `json:"schema,omitempty"`
	ID           string            `json:"id"`
	Class        *string           `json:"class"`         // null: what the command says
	MaybeApplied bool              `json:"maybe_applied"` // a write becomes ambiguous
	Why          string            `json:"why"`
	Source       string            `json:"source"`
	Rank         string            `json:"rank"`
	LeastWaitMS  *int64            `json:"least_wait_ms"`
	Exit         *string           `json:"exit"` // as 7,28,50-60
	Signals      []string          `json:"signals"`
	Stderr       []string          `json:"stderr"` // one of these matches a line
	Stdout       []string          `json:"stdout"`
	Output       []string          `json:"output"`
	And          [][]string        `json:"and"` // and one of each of these
	Not          []string          `json:"not"`
	Empty        bool              `json:"empty"`
	Sub          []string          `json:"sub"`
	Flags        []string          `json:"flags"`
	Without      []string          `json:"without"`
	Words        []string          `json:"words"`
	Effects      []string          `json:"effects"`
	Examples     []exampleDocument `json:"examples"`
}

type exampleDocument struct {
	Argv   []string `json:"argv"`
	Exit   *int     `json:"exit"`
	Signal *string  `json:"signal"`
	Stderr string   `json:"stderr"`
	Stdout string   `json:"stdout"`
	Class  string   `json:"class"`
}

type ruleListDocument struct {
	Schema string         `json:"schema"`
	Rules  []ruleDocument `json:"rules"`
}

func ruleList(rules []classify.Rule) ruleListDocument {
	doc := ruleListDocument{Schema: rulesSchema, Rules: []ruleDocument{}}
	for i := range rules {
		doc.Rules = append(doc.Rules, documentOf(&rules[i]))
	}
	return doc
}

func documentOf(r *classify.Rule) ruleDocument {
	m := matchesOf(r)
	doc := ruleDocument{
		ID: r.ID, Class: filled(r.Class), MaybeApplied: r.MaybeApplied, Why: r.Why, Source: r.Source,
		Rank: rankName(r), LeastWaitMS: waitOf(r.Wait),
		Exit: filled(exitList(r.Exit)), Signals: listed(r.Signals),
		Stderr: m.stderr, Stdout: m.stdout, Output: m.output, And: m.and, Not: m.not, Empty: r.Empty,
		Sub: listed(r.When.Sub), Flags: listed(r.When.Flags), Without: listed(r.When.Without), Words: listed(r.When.Words),
		Effects: listed(r.Effects), Examples: []exampleDocument{},
	}
	for _, e := range r.Examples {
		shown := exampleDocument{Argv: listed(e.Argv), Signal: filled(e.Signal), Stderr: e.Stderr, Stdout: e.Stdout, Class: orNone(e.Class, r.Class)}
		if e.Signal == "" {
			shown.Exit = new(e.Exit)
		}
		doc.Examples = append(doc.Examples, shown)
	}
	return doc
}

// matches are the expressions of a rule: of each list one must match a line, of
// the last none.
type matches struct {
	stderr, stdout, output []string
	and                    [][]string
	not                    []string
}

func matchesOf(r *classify.Rule) matches {
	patterns := r.And[:0:0]
	patterns = append(patterns, r.Stderr, r.Stdout, r.Output, r.Not)
	patterns = append(patterns, r.And...)
	lists := [][]string{}
	for _, p := range patterns {
		list := []string{}
		for _, e := range p {
			list = append(list, e.Expr)
		}
		lists = append(lists, list)
	}
	return matches{lists[0], lists[1], lists[2], lists[4:], lists[3]}
}

// listed is an empty list instead of null.
func listed(list []string) []string { return append([]string{}, list...) }

// rankName is the rank as rules files spell it, in the order of their strength.
func rankName(r *classify.Rule) string {
	return [...]string{"normal", "decisive", "fallback", "guess"}[r.Rank]
}

func rankWords(r *classify.Rule) string {
	return map[string]string{
		"decisive": "decisive: right wherever in the output it stands",
		"fallback": "fallback: answers only when no error was recognised",
		"guess":    "guess: answers only when nothing else does",
	}[rankName(r)]
}

// exitList writes ranges as ParseExitList reads them.
func exitList(ranges []classify.Range) string {
	var parts []string
	for _, r := range ranges {
		if r.Lo == r.Hi {
			parts = append(parts, strconv.Itoa(r.Lo))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", r.Lo, r.Hi))
	}
	return strings.Join(parts, ",")
}

func ruleRows(r *classify.Rule) []row {
	rows := []row{{"rule", r.ID}, {"class", orNone(r.Class, "what the command says")}}
	if r.MaybeApplied {
		rows = append(rows, row{"", "of a write that is not declared idempotent: ambiguous, as it may have happened"})
	}
	rows = append(rows, conditionRows(r)...)
	if r.Wait > 0 {
		rows = append(rows, row{"wait", "at least " + shortDuration(r.Wait)})
	}
	for _, more := range []row{{"rank", rankWords(r)}, {"why", r.Why}, {"source", r.Source}} {
		if more.text != "" {
			rows = append(rows, more)
		}
	}
	return append(rows, exampleRows(r)...)
}

// conditions are written one below the other; all must hold.
type conditions struct{ rows []row }

// add adds a condition that any entry of a list fulfils; none is no condition.
func (c *conditions) add(what string, list ...string) {
	for i, entry := range list {
		switch {
		case i > 0:
			c.rows = append(c.rows, row{"", "or " + entry})
		case len(c.rows) > 0:
			c.rows = append(c.rows, row{"and", what + " " + entry})
		default:
			c.rows = append(c.rows, row{"when", what + " " + entry})
		}
	}
}

func conditionRows(r *classify.Rule) []row {
	var c conditions
	m := matchesOf(r)
	if len(r.Exit) > 0 {
		c.add("the exit status is in", exitList(r.Exit))
	}
	c.add("it was ended by", r.Signals...)
	c.add("stderr matches", m.stderr...)
	c.add("stdout matches", m.stdout...)
	c.add("the output matches", m.output...)
	for _, list := range m.and {
		c.add("the output matches", list...)
	}
	c.add("the output does not match", m.not...)
	if r.Empty {
		c.add("there is", "no output")
	}
	c.add("the arguments begin with", r.When.Sub...)
	c.add("a flag is", r.When.Flags...)
	c.add("no flag is", r.When.Without...)
	c.add("an argument holds the word", r.When.Words...)
	c.add("the effect is", r.Effects...)
	return c.rows
}

func exampleRows(r *classify.Rule) []row {
	var rows []row
	for _, e := range r.Examples {
		how := fmt.Sprintf("exit status %d", e.Exit)
		if e.Signal != "" {
			how = "ended by " + e.Signal
		}
		rows = append(rows, row{"example", fmt.Sprintf("%s: %s", commandLine(e.Argv), how)})
		for line := range strings.Lines(printable(e.Stderr + "\n" + e.Stdout)) {
			if text := strings.TrimRight(line, "\n"); text != "" {
				rows = append(rows, row{"", "  " + text})
			}
		}
	}
	return rows
}

// commandLine writes arguments as a shell would read them.
func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = printable(a)
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`&|;<>()*?[]{}#~!") {
			words[i] = "'" + strings.ReplaceAll(words[i], "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
