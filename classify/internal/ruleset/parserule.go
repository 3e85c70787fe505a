package ruleset

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// classes are the classes that a rule may name, in the order of their meaning.
func classes() []string {
	return []string{"transient", "permanent", "config", "correctable", "ambiguous", "unexpected"}
}

func (p *parser) rules(f *File, n *yaml.Node) {
	seen := map[string]bool{}
	p.each(n, func(item *yaml.Node) {
		r := p.oneRule(f, item)
		if seen[r.ID] {
			p.fail(item, "the id stands twice")
		}
		seen[r.ID] = true
		p.rule = ""
		f.Rules = append(f.Rules, r)
	})
}

func (p *parser) oneRule(f *File, n *yaml.Node) Rule {
	r := Rule{Line: n.Line}
	p.rule = ""
	p.mapping(n, func(key string, v *yaml.Node) bool {
		if key == "id" {
			p.rule = p.text(v)
			r.ID = f.Name + "/" + p.rule
			return true
		}
		return p.ruleKey(&r, key, v)
	})
	p.complete(&r, n)
	return r
}

func (p *parser) ruleKey(r *Rule, key string, v *yaml.Node) bool {
	switch key {
	case "class":
		r.Class = p.choice(v, classes()...)
	case "maybe_applied":
		r.MaybeApplied = p.flag(v)
	case "wait":
		r.Wait = p.duration(v)
	case "why":
		r.Why = p.text(v)
	case "source":
		r.Source = p.text(v)
	case "rank":
		r.Rank = map[string]Rank{"decisive": Decisive, "fallback": Fallback, "guess": Guess}[p.choice(v, "decisive", "fallback", "guess")]
	case "examples":
		p.each(v, func(n *yaml.Node) { r.Examples = append(r.Examples, p.example(n)) })
	default:
		return p.condition(r, key, v)
	}
	return true
}

func (p *parser) condition(r *Rule, key string, v *yaml.Node) bool {
	switch key {
	case "exit":
		r.Exit = p.exits(v)
	case "signal":
		for _, s := range p.words(v) {
			r.Signals = append(r.Signals, "SIG"+strings.TrimPrefix(strings.ToUpper(s), "SIG"))
		}
	case "stderr":
		r.Stderr = p.pattern(v)
	case "stdout":
		r.Stdout = p.pattern(v)
	case "output":
		r.Output = append(r.Output, p.pattern(v)...)
	case "status":
		r.Output = append(r.Output, p.status(v)...)
	case "and":
		r.And = p.patterns(v)
	case "not":
		r.Not = p.pattern(v)
	case "empty":
		r.Empty = p.flag(v)
	case "effects":
		r.Effects = p.words(v)
	default:
		return p.when(&r.When, key, v)
	}
	return true
}

func (p *parser) complete(r *Rule, n *yaml.Node) {
	if !plainName(p.rule, ruleMarks) {
		p.fail(n, "a rule needs an id of a-z, 0-9 and dashes")
	}
	if r.Class == "" {
		p.fail(n, "a rule needs a class")
	}
	if !r.Text() && len(r.Exit) == 0 && len(r.Signals) == 0 && !r.Empty {
		p.fail(n, "a rule needs a condition: exit, signal, stderr, stdout, output, status or empty")
	}
	if r.MaybeApplied && r.Class != "transient" {
		p.fail(n, "maybe_applied makes sense only for class transient")
	}
}

func (p *parser) example(n *yaml.Node) Example {
	ex := Example{Exit: 1}
	p.mapping(n, func(key string, v *yaml.Node) bool {
		switch key {
		case "argv":
			ex.Argv = p.argv(v)
		case "exit":
			ex.Exit = p.number(v)
		case "signal":
			ex.Signal, ex.Exit = p.text(v), -1
		case "stderr":
			ex.Stderr = p.text(v)
		case "stdout":
			ex.Stdout = p.text(v)
		case "class":
			ex.Class = p.choice(v, append(classes(), "unknown")...)
		case "retry_after":
			ex.RetryAfter = p.duration(v)
		default:
			return false
		}
		return true
	})
	return ex
}

// argv is a list of words, or one string to be split at spaces.
func (p *parser) argv(n *yaml.Node) []string {
	if n.Kind == yaml.ScalarNode {
		return strings.Fields(n.Value)
	}
	return p.words(n)
}
