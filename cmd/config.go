package cmd

// Configuration files, later ones over earlier ones:
//
//  1. the machine's: /etc/retryx/config.yaml;
//  2. the user's: $XDG_CONFIG_HOME/retryx/config.yaml, else
//     ~/.config/retryx/config.yaml;
//  3. the one that --config or RETRYX_CONFIG names;
//  4. the chosen profile, from the same files in the same order: it was asked
//     for, so it stands above every plain setting.
//
// Environment and flags stand above all of them. A later value replaces an
// earlier one, also when it is a list; budgets and profiles are merged by name
// and within a name key by key. Nothing is looked for in the working directory,
// as that may belong to anybody.
//
// A file is right or wrong as a whole, whichever of its profiles is in use:
// every problem is named at once, with file, line and key.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retryx/retryx/budget"
)

const systemConfiguration = "/etc/retryx/config.yaml"

// configuration is what the files say, merged.
type configuration struct {
	values   map[string]any          // text, or []any of text, by a setting's key
	lines    map[string]string       // by key: "file:line" of the value in force
	layers   map[string]int          // by key: the ordinal of the layer that gave it
	merged   int                     // layers so far
	rules    []ruleSpec              // in order
	budgets  map[string]budgetConfig // by name
	profiles []string                // every profile's name, sorted
	files    []string                // what was read, in order
	warnings []string
}

// ruleSpec is a rule in the syntax of --rule.
type ruleSpec struct {
	text  string
	where string // file:line
}

// budgetConfig is what the files say about the budget of one name.
type budgetConfig struct {
	budget.Change
	where string // file:line
}

// loadConfiguration reads the configuration files. The error is a usageError
// that names every problem; the configuration beside it holds what was right,
// so that the caller can go on to find the problems of flags and variables.
func loadConfiguration(environ map[string]string, explicit, profile string) (*configuration, error) {
	return systemPlaces(environ).load(explicit, profile)
}

func systemPlaces(environ map[string]string) configPlaces {
	return configPlaces{system: systemConfiguration, environ: environ, uid: os.Geteuid()}
}

// load reads the files of these places.
func (p configPlaces) load(explicit, profile string) (*configuration, error) {
	c := &configuration{values: map[string]any{}, lines: map[string]string{}, layers: map[string]int{}, budgets: map[string]budgetConfig{}}
	var files []*configFile
	var problems []string
	unread := false             // there may be more profiles
	var keys map[string]setting // made for the first file, if there is one
	for _, place := range p.list(explicit) {
		content, warning, err := place.read(p.uid)
		if err != nil {
			problems, unread = append(problems, err.Error()), true
			continue
		}
		if content == nil {
			continue
		}
		c.files = append(c.files, place.path)
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
		if keys == nil {
			keys = settingsByKey()
		}
		file, bad := parseConfigFile(place.path, content, keys)
		files, problems = append(files, file), append(problems, bad...)
		unread = unread || file.unread
	}
	c.mergeAll(files, profile)
	if profile != "" && !unread && !slices.Contains(c.profiles, profile) {
		problems = append(problems, c.unknownProfile(profile))
	}
	if len(problems) > 0 {
		return c, &usageError{problems}
	}
	return c, nil
}

// mergeAll puts the plain settings of all files, then the profile's, into c.
func (c *configuration) mergeAll(files []*configFile, profile string) {
	names := map[string]bool{}
	for _, f := range files {
		c.merge(&f.base)
		for name := range f.profiles {
			names[name] = true
		}
	}
	c.profiles = slices.Sorted(maps.Keys(names))
	for _, f := range files {
		if l := f.profiles[profile]; l != nil {
			c.merge(l)
		}
	}
}

// merge puts a layer over what c holds.
func (c *configuration) merge(l *configLayer) {
	c.merged++
	maps.Copy(c.values, l.values)
	maps.Copy(c.lines, l.lines)
	for key := range l.values {
		c.layers[key] = c.merged
	}
	if l.rules != nil {
		c.rules = l.rules
	}
	for name, over := range l.budgets {
		b := c.budgets[name]
		b.Capacity = cmp.Or(over.Capacity, b.Capacity)
		b.Refill = cmp.Or(over.Refill, b.Refill)
		b.Bonus = cmp.Or(over.Bonus, b.Bonus)
		b.where = over.where
		c.budgets[name] = b
	}
}

func (c *configuration) unknownProfile(name string) string {
	switch {
	case len(c.files) == 0:
		return fmt.Sprintf("profile %q: there is no configuration file; \"retryx config path\" lists where one may stand", name)
	case len(c.profiles) == 0:
		return fmt.Sprintf("profile %q: no profile is defined in %s", name, strings.Join(c.files, ", "))
	}
	return fmt.Sprintf("profile %q: not defined; there is %s%s", name, orList(c.profiles), didYouMean(name, c.profiles))
}

// resolveSettings reads flags, variables and files together, so that one error
// names every problem wherever it stands. The resolver is there whenever the
// error is a usageError.
func resolveSettings(vars map[string]string, flags *pflag.FlagSet, now time.Time) (*resolver, *settings, error) {
	named := func(flag, variable string) string {
		return cmp.Or(flags.Lookup(flag).Value.String(), vars[variable])
	}
	var problems []string
	conf, err := loadConfiguration(vars, named("config", "RETRYX_CONFIG"), named("profile", "RETRYX_PROFILE"))
	if !collect(&problems, err) {
		return nil, nil, err
	}
	r := newResolver(flags, vars, conf, now)
	s, err := r.settings()
	if !collect(&problems, err) {
		return nil, nil, err
	}
	if len(problems) > 0 {
		return r, nil, &usageError{problems}
	}
	return r, s, nil
}

// collect takes the problems out of a usage error. It reports false for an
// error of another kind.
func collect(problems *[]string, err error) bool {
	if usage, ok := errors.AsType[*usageError](err); ok {
		*problems = append(*problems, usage.problems...)
		return true
	}
	return err == nil
}
