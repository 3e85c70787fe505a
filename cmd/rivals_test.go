package cmd

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStrongerRivalCounts lets every pair of sources contradict each other: the
// stronger one is what a run does and what config show says. no_budget in a file
// once made a run with --budget on its command line retry for nothing.
func TestStrongerRivalCounts(t *testing.T) {
	sources := layers()[1:]
	for _, c := range contradictions() {
		for i, toggles := range sources {
			for j, others := range sources {
				if others == "environment" && c.other == "budget" {
					continue // is no variable
				}
				t.Run(strings.Join([]string{c.toggle, toggles, c.other, others}, " "), func(t *testing.T) {
					f := newConfigFixture(t)
					r := f.contradicted(c, toggles, others)
					s, err := r.settings()
					if i == j {
						if err == nil || !strings.Contains(err.Error(), c.problem) {
							t.Errorf("settings() = error %v, want one that says it %s", err, c.problem)
						}
						return
					}
					if err != nil {
						t.Fatalf("settings() = error %v, want none", err)
					}
					isOn, classes, budgets := i > j, []string{"unknown"}, []string{"z"}
					if isOn {
						classes, budgets = []string{"transient"}, nil
					}
					got, want := any(s.budgets), any(budgets)
					if c.toggle == "strict" {
						got, want = words(s.policy.RetryOn), classes
					} else if s.noBudget != isOn {
						t.Errorf("noBudget = %v, want %v", s.noBudget, isOn)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s differs (-want +got):\n%s", c.other, diff)
					}
					f.wantShown(r, c, max(i, j), isOn)
				})
			}
		}
	}
}

func words[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

// contradicted returns a resolver for which two sources say the two.
func (f *configFixture) contradicted(c rivals, toggles, others string) *resolver {
	f.t.Helper()
	flags, texts := runFlags(f.t), map[string]string{}
	profile := ""
	for _, said := range []struct{ source, name, value string }{{toggles, c.toggle, "true"}, {others, c.other, map[string]string{"budget": "z", "retry-on": "unknown"}[c.other]}} {
		row := flags.Lookup(said.name).Value.(flagValue).row()
		line := row.key() + ": " + said.value
		switch said.source {
		case "system":
			texts[f.places.system] += line + "\n"
		case "user":
			texts[f.user()] += line + "\n"
		case "named":
			texts[f.named] += line + "\n"
		case "profile":
			profile += line + ", "
		case "environment":
			f.places.environ[row.env()] = said.value
		case "flag":
			if err := flags.Set(said.name, said.value); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	texts[f.named] += "profiles: {ci: {" + profile + "}}\n"
	for path, text := range texts {
		f.write(path, text)
	}
	return newResolver(flags, f.places.environ, f.load(f.named, "ci"), time.Time{})
}

// wantShown checks that config show says what is in force, for both of the two
// with the same origin.
func (f *configFixture) wantShown(r *resolver, c rivals, stronger int, isOn bool) {
	f.t.Helper()
	asIs := func(s string) string { return s }
	toggle, other := r.shown(*r.row(c.toggle), asIs), r.shown(*r.row(c.other), asIs)
	if toggle.Value != isOn {
		f.t.Errorf("config show: %s is %v, want %v", c.toggle, toggle.Value, isOn)
	}
	want := []string{"config", "config", "config", "config", "environment", "flag"}[stronger]
	if toggle.Origin != want || other.Origin != want || toggle.Where != other.Where {
		f.t.Errorf("config show: origins are %s (%s) and %s (%s), want %s twice", toggle.Origin, toggle.Where, other.Origin, other.Where, want)
	}
}
