package cmd

// What the keys of a configuration file mean. Every problem is found in one
// pass, and what is right is kept.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
)

// The keys of a file that are no settings of a run.
const (
	keyProfiles = "profiles"
	keyBudgets  = "budgets"
	keyRules    = "rules"
)

// configFile is what one file says.
type configFile struct {
	base     configLayer
	profiles map[string]*configLayer
	unread   bool // it is no YAML: what it says is not known
}

// configLayer is the settings of a file, or of a profile in it.
type configLayer struct {
	values  map[string]any    // text, or []any of text
	lines   map[string]string // "file:line"
	rules   []ruleSpec        // nil when the layer says nothing of rules
	budgets map[string]budgetConfig
}

func newConfigLayer() configLayer {
	return configLayer{values: map[string]any{}, lines: map[string]string{}, budgets: map[string]budgetConfig{}}
}

// settingsByKey is what the keys of a file are looked up in.
func settingsByKey() map[string]setting {
	keys := map[string]setting{}
	for _, s := range table() {
		keys[s.key()] = s
	}
	return keys
}

// parseConfigFile reads one file with these keys and returns what was right in
// it, and every problem as "file:line: key: what; what to do".
func parseConfigFile(path string, data []byte, keys map[string]setting) (*configFile, []string) {
	file := &configFile{base: newConfigLayer(), profiles: map[string]*configLayer{}}
	p := &configParser{path: path, settings: keys}
	if !p.text(data) {
		file.unread = true
		return file, p.problems
	}
	if root := p.document(data); root != nil {
		p.layer(root, "", &file.base, file)
	} else {
		file.unread = len(p.problems) > 0
	}
	return file, p.problems
}

type configParser struct {
	path     string
	settings map[string]setting // by key
	problems []string
}

// layer reads a mapping of settings. Profiles stand in files only, not in
// profiles: file is nil there.
func (p *configParser) layer(n *yaml.Node, at string, to *configLayer, file *configFile) {
	p.entries(n, at, func(key string, k, v *yaml.Node) {
		switch path := keyPath(at, key); {
		case key == keyProfiles && file != nil:
			p.profiles(v, path, file)
		case key == keyBudgets:
			p.budgets(v, path, to)
		case key == keyRules:
			p.rules(v, path, to)
		default:
			p.setting(key, path, k, v, to)
		}
	})
}

func (p *configParser) profiles(n *yaml.Node, at string, file *configFile) {
	p.entries(n, at, func(name string, k, v *yaml.Node) {
		if name == "" {
			p.problem(k, at, "a profile needs a name; write one before the colon")
			return
		}
		l := newConfigLayer()
		file.profiles[name] = &l
		if !isNull(v) { // a profile that changes nothing yet
			p.layer(v, keyPath(at, name), &l, nil)
		}
	})
}

func (p *configParser) budgets(n *yaml.Node, at string, to *configLayer) {
	p.entries(n, at, func(name string, k, v *yaml.Node) {
		if _, err := budget.ParseName(name); err != nil {
			p.problem(k, at, "%s", err)
			return
		}
		b := budgetConfig{where: p.where(k)}
		p.entries(v, keyPath(at, name), func(key string, k, v *yaml.Node) {
			p.parameter(key, keyPath(keyPath(at, name), key), k, v, &b)
		})
		to.budgets[name] = b
	})
}

func (p *configParser) parameter(key, at string, k, v *yaml.Node, b *budgetConfig) {
	known := []string{"capacity", "refill", "bonus"}
	if !slices.Contains(known, key) {
		p.problem(k, at, "unknown key; a budget has %s%s", strings.Join(known, ", "), didYouMean(key, known))
		return
	}
	text, ok := p.scalar(v, at)
	if !ok {
		return
	}
	var err error
	switch key {
	case "capacity":
		b.Capacity, err = given(budget.ParseCapacity(text))
	case "refill":
		b.Refill, err = given(budget.ParseRefill(text))
	case "bonus":
		b.Bonus, err = given(budget.ParseBonus(text))
	}
	if err != nil {
		p.problem(v, at, "%s", err)
	}
}

// given returns a pointer to what was parsed, nil on an error.
func given[T any](v T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &v, nil
}

func (p *configParser) rules(n *yaml.Node, at string, to *configLayer) {
	to.rules = []ruleSpec{}
	for _, item := range nodeItems(n) {
		text, ok := ruleText(item)
		if !ok {
			p.problem(item, at, `want rules such as "permanent: exit=2", not %s`, describeNode(item))
			continue
		}
		if _, err := classify.ParseRule(text); err != nil {
			p.problem(item, at, "%s", err)
			continue
		}
		to.rules = append(to.rules, ruleSpec{text, p.where(item)})
	}
}

// ruleText returns a rule as text. Without quotes YAML takes the class and its
// colon for a key, which nobody who writes a rule has in mind.
func ruleText(n *yaml.Node) (string, bool) {
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		class, test := n.Content[0], resolveAlias(n.Content[1])
		return class.Value + ": " + test.Value, isText(class) && isText(test)
	}
	return n.Value, isText(n)
}

// setting reads one setting of a run.
func (p *configParser) setting(key, at string, k, v *yaml.Node, to *configLayer) {
	s, ok := p.settings[key]
	switch {
	case !ok:
		p.problem(k, at, "unknown key%s", p.suggestion(key))
		return
	case s.noConfig:
		p.problem(k, at, "cannot stand in a file; use --%s", s.name)
		return
	}
	value, ok := p.value(s, at, v)
	if ok {
		to.values[key], to.lines[key] = value, p.where(k)
	}
}

func (p *configParser) suggestion(key string) string {
	known := []string{keyProfiles, keyBudgets, keyRules}
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		if !p.settings[name].noConfig {
			known = append(known, name)
		}
	}
	if near := didYouMean(key, known); near != "" {
		return near
	}
	return `; "retryx config init --print" shows every key`
}

// value reads and checks a setting's value.
func (p *configParser) value(s setting, at string, v *yaml.Node) (any, bool) {
	switch {
	case s.kind == list:
		return p.list(s, at, v)
	case s.unit == "LIST" && v.Kind == yaml.SequenceNode:
		return p.joined(s, at, v)
	}
	text, ok := p.scalar(v, at)
	if !ok {
		return nil, false
	}
	if err := s.check(text); err != nil {
		p.problem(v, at, "%s", err)
		return nil, false
	}
	return text, true
}

// list reads entries, or one without its brackets.
func (p *configParser) list(s setting, at string, n *yaml.Node) (any, bool) {
	out, good := []any{}, true
	for _, item := range nodeItems(n) {
		text, ok := p.scalar(item, at)
		if ok {
			if err := s.check(text); err != nil {
				p.problem(item, at, "%s", err)
				ok = false
			}
		}
		out, good = append(out, text), good && ok
	}
	return out, good
}

// joined reads a YAML list where flags have commas.
func (p *configParser) joined(s setting, at string, n *yaml.Node) (any, bool) {
	entries, ok := p.list(s, at, n)
	var parts []string
	for _, e := range entries.([]any) {
		parts = append(parts, fmt.Sprint(e))
	}
	if len(parts) == 0 {
		p.problem(n, at, "is empty; write an entry or remove the line")
		return nil, false
	}
	return strings.Join(parts, ","), ok
}
