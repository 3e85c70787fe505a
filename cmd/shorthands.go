package cmd

// Flags that stand for rules.

import (
	"fmt"

	"github.com/retryx/retryx/classify"
)

// shortRules turns the rule flags and their shorthands into rules, and keeps
// those of variables and files apart, as they are of a lower rank. Within one
// source stop beats retry, so their order does not matter.
func (r *resolver) shortRules() (flags, others []classify.Rule) {
	add := func(name, spec string) {
		rule, err := classify.ParseRule(spec)
		switch {
		case err != nil:
			r.problem(name, "%s", err)
		case r.origin(name).kind == fromFlag:
			flags = append(flags, rule)
		default:
			others = append(others, rule)
		}
	}
	for _, spec := range r.list("rule") {
		add("rule", spec)
	}
	for _, short := range shorthands() {
		for _, v := range r.list(short.name) {
			add(short.name, short.rule(v))
		}
	}
	return flags, others
}

// shorthand is a flag that stands for a rule with one condition.
type shorthand struct {
	name  string
	class classify.Class
	test  string
}

func (s shorthand) rule(v string) string { return fmt.Sprintf("%s: %s=%s", s.class, s.test, v) }

func shorthands() []shorthand {
	return []shorthand{
		{"retry-exit", classify.Transient, "exit"},
		{"stop-exit", classify.Permanent, "exit"},
		{"retry-stderr", classify.Transient, "stderr"},
		{"stop-stderr", classify.Permanent, "stderr"},
		{"retry-stdout", classify.Transient, "stdout"},
		{"stop-stdout", classify.Permanent, "stdout"},
	}
}
