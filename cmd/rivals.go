package cmd

// Switches that say something about another setting. Of two that contradict
// each other the one from the stronger source counts, as of two values of one
// setting; two from one source are refused. And two delays, of which the one that
// nobody gave follows the other.

import "cmp"

// rivals are a switch and the setting that it stands against.
type rivals struct {
	toggle, other string
	means         string // the value of the other that the switch stands for
	problem       string
}

func contradictions() [2]rivals {
	return [...]rivals{
		{"strict", "retry-on", "transient", "is --retry-on transient and cannot stand beside another --retry-on"},
		{"no-budget", "budget", "", "and --budget contradict each other; leave one out"},
	}
}

// rivalsOf returns the contradiction that a setting may be a part of.
func rivalsOf(name string) (rivals, bool) {
	for _, c := range contradictions() {
		if name == c.toggle || name == c.other {
			return c, true
		}
	}
	return rivals{}, false
}

// instead is the value of a setting that the other one overrules.
func (c rivals) instead(name string) string {
	if name == c.toggle {
		return "false"
	}
	return c.means
}

// against is the other setting of the two.
func (c rivals) against(name string) string {
	if name == c.toggle {
		return c.other
	}
	return c.toggle
}

// overruled reports whether a setting gives way to its rival.
func (r *resolver) overruled(name string) (rivals, bool) {
	c, ok := rivalsOf(name)
	if !ok || !r.opposed(c) {
		return c, false
	}
	return c, r.origin(name).compare(r.origin(c.against(name))) < 0
}

// opposed reports whether both of the two say something. A setting that nobody
// gave has its default, which gives way like any weaker value.
func (r *resolver) opposed(c rivals) bool {
	on, err := parseToggle(r.said(c.toggle))
	return on && err == nil && (r.row(c.other).kind != list || len(r.listed(c.other)) > 0)
}

// source is where the value in force comes from, and by which setting.
func (r *resolver) source(name string) (string, origin) {
	if c, overruled := r.overruled(name); overruled {
		name = c.against(name)
	}
	if leader, follows := r.follows(name); follows {
		name = leader
	}
	return name, r.origin(name)
}

// follows reports whether a delay that nobody gave is that of the other setting,
// as the longest one is never shorter than the first.
func (r *resolver) follows(name string) (leader string, follows bool) {
	order := 1
	switch name {
	case "max-delay":
		leader = "delay"
	case "delay":
		leader, order = "max-delay", -1
	default:
		return "", false
	}
	if r.origin(name).given() || !r.origin(leader).given() {
		return "", false
	}
	led, err := parseDuration(r.said(leader))
	own, _ := parseDuration(r.said(name))
	return leader, err == nil && cmp.Compare(led, own) == order
}

// refuseRivals finds contradictions that no order of sources resolves.
func (r *resolver) refuseRivals() {
	for _, c := range contradictions() {
		if r.opposed(c) && r.origin(c.toggle).compare(r.origin(c.other)) == 0 {
			r.problem(c.toggle, "%s", c.problem)
		}
	}
}
