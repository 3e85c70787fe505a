package cmd

// Flags that stand for rules.

import (
	"fmt"

	"github.com/retryx/retryx/classify"
)

// readShortRules turns the rule flags and their shorthands into rules, apart by
// where they come from. Within one source stop beats retry, so their order does
// not matter.
func (r *resolver) readShortRules(s *settings) {
	add := func(name, spec string) {
		rule, err := classify.ParseRule(spec)
		if err != nil {
			r.problem(name, "%s", err)
			return
		}
		switch r.origin(name).kind {
		case fromFlag:
			s.rules = append(s.rules, rule)
		case fromEnv:
			s.envRules = append(s.envRules, rule)
		case fromConfig, fromDefault:
			s.configRules = append(s.configRules, rule)
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
