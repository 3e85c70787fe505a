package classify

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// Rule is one judgement: conditions and the class that they prove.
type Rule = ruleset.Rule

// Rules is the content of one rules file: a tool or a generic vocabulary.
type Rules = ruleset.File

// Range is an inclusive range of exit statuses.
type Range = ruleset.Range

//go:generate go run ./internal/gen

// ParseFile reads a rules file in the format of classify/rules/README.md. The
// error joins every problem and names file, line and rule of each.
func ParseFile(name string, data []byte) (Rules, error) { return ruleset.Parse(name, data) }

// ParseExitList reads a list of exit statuses such as "7,28,50-60".
func ParseExitList(list string) ([]Range, error) { return ruleset.ParseExits(list) }

// Contains reports whether the status lies in one of the ranges.
func Contains(ranges []Range, status int) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.Contains(status) })
}

// ParseRule reads a user's rule,
//
//	CLASS: [exit=LIST] [signal=LIST] [stderr=RE|stdout=RE|output=RE]
//
// with at least one condition. The expression is RE2 with multi-line ^ and $
// and runs to the end of the string. All conditions must hold.
func ParseRule(spec string) (Rule, error) {
	class, rest, found := strings.Cut(spec, ":")
	if !found {
		return Rule{}, fmt.Errorf("read rule %q: write it as CLASS: CONDITIONS", spec)
	}
	r := Rule{Class: strings.TrimSpace(class), ExactSignal: true, Why: "a rule of yours"}
	if !Class(r.Class).ruled() {
		return Rule{}, fmt.Errorf("read rule %q: %q is no class (transient, permanent, config, correctable, ambiguous, unexpected)", spec, r.Class)
	}
	if err := conditions(&r, strings.TrimSpace(rest)); err != nil {
		return Rule{}, fmt.Errorf("read rule %q: %w", spec, err)
	}
	return r, nil
}

func conditions(r *Rule, rest string) error {
	for rest != "" {
		key, after, found := strings.Cut(rest, "=")
		if !found {
			return fmt.Errorf("%q is no condition (exit=, signal=, stderr=, stdout=, output=)", rest)
		}
		value, next, _ := strings.Cut(after, " ")
		var err error
		if key == "exit" && len(r.Exit) > 0 || key == "signal" && len(r.Signals) > 0 {
			return fmt.Errorf("%s= stands there twice; give one list, as in exit=1,2", key)
		}
		switch key {
		case "exit":
			r.Exit, err = ParseExitList(value)
		case "signal":
			r.Signals, err = signalNames(value)
		case "stderr", "stdout", "output":
			return textCondition(r, key, after)
		default:
			return fmt.Errorf("%q is no condition (exit=, signal=, stderr=, stdout=, output=)", key)
		}
		if err != nil {
			return err
		}
		rest = strings.TrimSpace(next)
	}
	if len(r.Exit) == 0 && len(r.Signals) == 0 {
		return errors.New("it needs a condition: exit=, signal=, stderr=, stdout= or output=")
	}
	return nil
}

func textCondition(r *Rule, key, expr string) error {
	if expr == "" {
		return fmt.Errorf("%s= needs an expression", key)
	}
	if _, err := regexp.Compile(expr); err != nil { // without flags of ours in the message
		return err
	}
	p := ruleset.Pattern{{Expr: expr, Whole: true}}
	switch key {
	case "stderr":
		r.Stderr = p
	case "stdout":
		r.Stdout = p
	default:
		r.Output = p
	}
	return nil
}

// made holds the rules of the built-in files that were asked for.
var made sync.Map //nolint:gochecknoglobals // they are made of constants: nobody can tell who asked first

// rulesOf returns the rules of a file. Those of the built-in ones are not made
// before a failure is to be judged.
func rulesOf(f *ruleset.File) []ruleset.Rule {
	if f.Later == nil {
		return f.Rules
	}
	rules, ok := made.Load(f)
	if !ok {
		rules, _ = made.LoadOrStore(f, f.Later())
	}
	return rules.([]ruleset.Rule)
}

// Builtins yields every built-in rule, in the order of files and rules.
func Builtins() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for i := range builtinFiles {
			for _, r := range rulesOf(&builtinFiles[i]) {
				if !yield(r) {
					return
				}
			}
		}
	}
}
