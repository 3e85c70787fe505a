package ruleset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Parse reads a rules file. The error joins every problem, each with the
// file's name, its line and the rule's id.
func Parse(name string, data []byte) (File, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return File{}, fmt.Errorf("read rules %s: %w", name, err)
	}
	p := parser{name: name}
	var f File
	if len(doc.Content) == 0 {
		p.fail(&doc, "the file is empty; it needs at least `tool:` or `generic:` and `rules:`")
	} else {
		f = p.file(doc.Content[0])
	}
	return f, errors.Join(p.errs...)
}

type parser struct {
	name string
	rule string // the rule at hand, for messages
	errs []error
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	where := fmt.Sprintf("%s:%d: ", p.name, max(n.Line, 1))
	if p.rule != "" {
		where += "rule " + p.rule + ": "
	}
	p.errs = append(p.errs, errors.New(where+fmt.Sprintf(format, args...)))
}

// mapping calls each for every key, and reports a node that is no mapping, a
// key that each does not know and a key that stands twice.
func (p *parser) mapping(n *yaml.Node, each func(key string, value *yaml.Node) bool) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "expected a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if seen[key] {
			p.fail(n.Content[i], "key %q stands twice", key)
		}
		seen[key] = true
		if !each(key, n.Content[i+1]) {
			p.fail(n.Content[i], "unknown key %q", key)
		}
	}
}

func (p *parser) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		p.fail(n, "expected a string")
		return ""
	}
	return n.Value
}

// words reads a list of strings; a single string is a list of one.
func (p *parser) words(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		if w := p.text(n); w != "" {
			return []string{w}
		}
		return nil
	}
	var out []string
	for _, item := range n.Content {
		out = append(out, p.text(item))
	}
	return out
}

func (p *parser) flag(n *yaml.Node) bool {
	var b bool
	if err := n.Decode(&b); err != nil {
		p.fail(n, "expected true or false")
	}
	return b
}

func (p *parser) number(n *yaml.Node) int {
	var i int
	if err := n.Decode(&i); err != nil || i < 0 {
		p.fail(n, "expected a number that is not negative")
	}
	return i
}

func (p *parser) duration(n *yaml.Node) time.Duration {
	d, err := time.ParseDuration(p.text(n))
	if err != nil || d < 0 {
		p.fail(n, "%q is no duration (write 10s, 2m)", n.Value)
	}
	return d
}

func (p *parser) exits(n *yaml.Node) []Range {
	ranges, err := ParseExits(strings.Join(p.words(n), ","))
	if err != nil {
		p.fail(n, "%v", err)
	}
	return ranges
}

// pattern reads expressions of which any may match.
func (p *parser) pattern(n *yaml.Node) Pattern {
	var out Pattern
	for _, expr := range p.words(n) {
		out = append(out, p.one(n, expr)...)
	}
	return out
}

// patterns keeps a list of expressions apart.
func (p *parser) patterns(n *yaml.Node) []Pattern {
	var out []Pattern
	for _, expr := range p.words(n) {
		out = append(out, p.one(n, expr))
	}
	return out
}

func (p *parser) one(n *yaml.Node, expr string) Pattern {
	pat, err := NewPattern(expr)
	if err != nil {
		p.fail(n, "bad pattern: %v", err)
		return nil
	}
	if re, err := Compile(expr); err != nil {
		p.fail(n, "bad pattern: %v", err)
	} else if re.MatchString("") {
		p.fail(n, "pattern %q matches an empty line", expr)
	}
	return pat
}

func (p *parser) choice(n *yaml.Node, of ...string) string {
	if w := p.text(n); slices.Contains(of, w) {
		return w
	}
	p.fail(n, "%q is none of %s", n.Value, strings.Join(of, ", "))
	return ""
}

const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyz0123456789"
	fileMarks    = "._+-"
	ruleMarks    = "-"
)

// plainName reports whether a name starts with a letter or digit and has
// nothing else in it but the marks.
func plainName(name, marks string) bool {
	return name != "" && strings.Contains(alphanumeric, name[:1]) && strings.Trim(name, alphanumeric+marks) == ""
}

func (p *parser) file(n *yaml.Node) File {
	var f File
	var rules *yaml.Node
	p.mapping(n, func(key string, v *yaml.Node) bool {
		switch key {
		case "tool":
			f.Name = p.text(v)
		case "generic":
			f.Name, f.Generic = p.text(v), true
		case "rules":
			rules = v
		default:
			return p.fileKey(&f, key, v)
		}
		return true
	})
	if !plainName(f.Name, fileMarks) {
		p.fail(n, "name %q: give `tool:` or `generic:` a name of a-z, 0-9, dot, plus, dash", f.Name)
	}
	if rules != nil {
		p.rules(&f, rules)
	}
	f.LongDash = longDash(&f)
	f.JudgesSuccess = slices.ContainsFunc(f.Rules, func(r Rule) bool {
		return slices.ContainsFunc(r.Exit, func(e Range) bool { return e.Contains(0) })
	})
	return f
}

func (p *parser) fileKey(f *File, key string, v *yaml.Node) bool {
	switch key {
	case "about": // for the reader of the file
		p.text(v)
	case "names":
		f.Names = p.words(v)
	case "marks":
		f.Marks = p.marks(v)
	case "values":
		f.Values = p.words(v)
	case "subcommands":
		f.Depth = p.number(v)
	case "secrets":
		f.Secrets = p.words(v)
	case "stdout_errors":
		f.StdoutErrors = p.flag(v)
	case "chatter":
		f.Chatter = p.pattern(v)
	case "remote":
		p.each(v, func(n *yaml.Node) { f.Remote = append(f.Remote, p.remote(n)) })
	case "effects":
		p.each(v, func(n *yaml.Node) { f.Effects = append(f.Effects, p.effect(n)) })
	default:
		return false
	}
	return true
}

func (p *parser) each(n *yaml.Node, item func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "expected a list")
		return
	}
	for _, c := range n.Content {
		item(c)
	}
}

func (p *parser) marks(n *yaml.Node) []string {
	marks := p.words(n)
	for i, m := range marks {
		if len(m) < 4 {
			p.fail(n, "mark %q is too short to betray a tool", m)
		}
		marks[i] = strings.ToLower(m)
	}
	return marks
}

// when reads the command line conditions, which stand among other keys.
func (p *parser) when(w *When, key string, v *yaml.Node) bool {
	switch key {
	case "program":
		w.Program = p.words(v)
	case "sub":
		w.Sub = p.words(v)
	case "flags":
		w.Flags = p.flagList(v)
	case "without":
		w.Without = p.flagList(v)
	case "words":
		for _, word := range p.words(v) {
			w.Words = append(w.Words, strings.ToLower(word))
		}
	default:
		return false
	}
	return true
}

func (p *parser) flagList(n *yaml.Node) []string {
	list := p.words(n)
	for _, f := range list {
		if !strings.HasPrefix(f, "-") && !strings.HasPrefix(f, "+") {
			p.fail(n, "flag %q does not start with a dash", f)
		}
	}
	return list
}

func (p *parser) remote(n *yaml.Node) Remote {
	var r Remote
	p.mapping(n, func(key string, v *yaml.Node) bool {
		if key == "except_read" {
			r.ExceptRead = p.flag(v)
			return true
		}
		return p.when(&r.When, key, v)
	})
	return r
}

func (p *parser) effect(n *yaml.Node) Effect {
	var e Effect
	p.mapping(n, func(key string, v *yaml.Node) bool {
		switch key {
		case "effect":
			e.Effect = p.choice(v, "read", "repeatable", "write", "unknown", "inner")
		case "after":
			e.After = p.number(v)
		default:
			return p.when(&e.When, key, v)
		}
		return true
	})
	if e.Effect == "" {
		p.fail(n, "an entry of effects needs `effect:`")
	}
	return e
}

// longDash reports whether a flag of the file is written -long.
func longDash(f *File) bool {
	lists := [][]string{f.Values, f.Secrets}
	for _, e := range f.Effects {
		lists = append(lists, e.Flags, e.Without)
	}
	for _, e := range f.Remote {
		lists = append(lists, e.Flags, e.Without)
	}
	for _, r := range f.Rules {
		lists = append(lists, r.When.Flags, r.When.Without)
	}
	for _, flag := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(flag, "=")
		if len(name) > 2 && name[0] == '-' && name[1] != '-' && name != "-*" {
			return true
		}
	}
	return false
}
