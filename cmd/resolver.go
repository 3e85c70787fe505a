package cmd

// Precedence: flags stand over the environment, the environment over the
// configuration. What is wrong is collected, so that one error names it all.

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// origin is where a value came from.
type origin struct {
	kind  originKind
	layer int    // of the configuration: file or profile, the higher the stronger
	where string // the flag, the variable, or file:line
}

type originKind int

const (
	fromDefault originKind = iota
	fromConfig
	fromEnv
	fromFlag
)

func (o origin) given() bool { return o.kind != fromDefault }

// compare is negative when a value from o gives way to one from other, and 0 when
// both come from one source.
func (o origin) compare(other origin) int {
	return cmp.Or(cmp.Compare(o.kind, other.kind), cmp.Compare(o.layer, other.layer))
}

// usageError is bad input. It names every problem, and nothing has run.
type usageError struct{ problems []string }

func (e *usageError) Error() string { return strings.Join(e.problems, "\n") }

// resolver finds each value by precedence, flags over environment over
// configuration, and collects what is wrong.
type resolver struct {
	flags    *pflag.FlagSet
	vars     map[string]string // the environment
	conf     *configuration
	files    *viper.Viper // what the configuration files say; nil until a value of theirs counts
	now      time.Time
	problems []string
	empty    []string // flags whose lack of a value was told
}

func newResolver(flags *pflag.FlagSet, vars map[string]string, conf *configuration, now time.Time) *resolver {
	return &resolver{flags: flags, vars: vars, conf: conf, now: now}
}

// origin says where the value of a setting comes from.
func (r *resolver) origin(name string) origin {
	f := r.flags.Lookup(name)
	if f.Changed {
		return origin{kind: fromFlag, where: "--" + name}
	}
	s := f.Value.(flagValue).row()
	if env := s.env(); env != "" && r.vars[env] != "" {
		return origin{kind: fromEnv, where: env}
	}
	if line, ok := r.conf.lines[s.key()]; ok {
		return origin{fromConfig, r.conf.layers[s.key()], line + ": " + s.key()}
	}
	return origin{where: "--" + name}
}

// fromFiles is the value of a setting in the configuration files.
func (r *resolver) fromFiles(name string) any {
	if r.files == nil {
		r.files = viper.New()
		_ = r.files.MergeConfigMap(r.conf.values) // into nothing, so nothing can clash
	}
	return r.files.Get(r.row(name).key())
}

func (r *resolver) row(name string) *setting { return r.flags.Lookup(name).Value.(flagValue).row() }

func (r *resolver) problem(name, format string, args ...any) {
	if slices.Contains(r.empty, name) {
		return // said already
	}
	r.problems = append(r.problems, r.origin(name).where+": "+fmt.Sprintf(format, args...))
}

// text is the value in force.
func (r *resolver) text(name string) string {
	if rival, overruled := r.overruled(name); overruled {
		return rival.instead(name)
	}
	if leader, follows := r.follows(name); follows {
		name = leader
	}
	return r.said(name)
}

// said is the value of the strongest source.
func (r *resolver) said(name string) string {
	switch from := r.origin(name); from.kind {
	case fromEnv:
		return r.vars[from.where]
	case fromConfig:
		return fmt.Sprint(r.fromFiles(name))
	case fromFlag, fromDefault:
	}
	return r.flags.Lookup(name).Value.String()
}

// list is the values in force.
func (r *resolver) list(name string) []string {
	if _, overruled := r.overruled(name); overruled {
		return nil
	}
	return r.listed(name)
}

// listed is the values of the strongest source.
func (r *resolver) listed(name string) []string {
	switch from := r.origin(name); from.kind {
	case fromEnv: // one entry a line, as an expression may hold any other separator
		return strings.FieldsFunc(r.vars[from.where], func(c rune) bool { return c == '\n' })
	case fromConfig:
		entries, _ := r.fromFiles(name).([]any)
		out := make([]string, 0, len(entries))
		for _, e := range entries {
			out = append(out, fmt.Sprint(e))
		}
		return out
	case fromFlag, fromDefault:
	}
	return r.flags.Lookup(name).Value.(*listValue).values
}

func (r *resolver) toggle(name string) bool {
	v := r.text(name)
	on, err := parseToggle(v)
	if err != nil {
		r.problem(name, "%s", err)
	}
	return on
}

func (r *resolver) choice(name string) string {
	v := r.text(name)
	if v == "" {
		return v
	}
	if err := checkChoice(v, r.row(name).choices); err != nil {
		r.problem(name, "%s", err)
	}
	return v
}

func (r *resolver) duration(name string) time.Duration {
	v := r.text(name)
	if v == "" {
		return 0
	}
	d, err := parseDuration(v)
	if err != nil {
		r.problem(name, "%s", err)
	}
	return d
}

func (r *resolver) integer(name string, least int64) int64 {
	n, err := parseInteger(r.text(name), least)
	if err != nil {
		r.problem(name, "%s", err)
	}
	return n
}

func (r *resolver) patterns(name string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, p := range r.list(name) {
		re, err := parsePattern(p)
		if err != nil {
			r.problem(name, "%s", err)
			continue
		}
		out = append(out, re)
	}
	return out
}

// refuseEmpty finds flags without a value that need one. An empty variable is
// one that is not set, but "--timeout $T" with an empty T is a mistake, and would
// be a run without a limit. No store is a choice.
func (r *resolver) refuseEmpty() {
	r.flags.VisitAll(func(f *pflag.Flag) {
		v, ours := f.Value.(flagValue)
		if !ours || !f.Changed || f.Value.String() != "" {
			return
		}
		if row := v.row(); row.kind == text && row.name != "budget-store" {
			r.problem(row.name, "wants a value%s", instead(row.def))
			r.empty = append(r.empty, row.name)
		}
	})
}

func instead(def string) string {
	if def == "" {
		return ""
	}
	return "; without the flag it is " + def
}

func (r *resolver) multiplier() float64 {
	f, err := parseMultiplier(r.text("multiplier"))
	if err != nil {
		r.problem("multiplier", "%s", err)
	}
	return f
}
