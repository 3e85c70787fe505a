package cmd

// Flags that cannot be read. The parser stops at the first one, so it is asked
// again without that one until nothing is left to say: one error names every
// problem.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError makes a usage error of a flag that cobra could not read, and of every
// other problem of that command line.
func flagError(env Env, c *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	var problems []string
	for args := route(env.Args); err != nil && !errors.Is(err, pflag.ErrHelp); {
		if text := flagProblem(c, err); !slices.Contains(problems, text) {
			problems = append(problems, text)
		}
		unknown, ok := errors.AsType[*pflag.NotExistError](err)
		if !ok {
			break
		}
		at := slices.IndexFunc(args, func(arg string) bool { return holdsFlag(arg, unknown) })
		if at < 0 {
			break
		}
		args = slices.Delete(slices.Clone(args), at, at+1)
		c, err = parsedAnew(env, args)
	}
	if c.Flags().Lookup("max-attempts") != nil { // a run's, or those of its plan
		if _, _, err := resolveSettings(env.variables(), c.Flags(), time.Now()); !collect(&problems, err) {
			return err
		}
	}
	return &usageError{problems}
}

// parsedAnew is the command of a line, with its flags read as far as they can be.
// It runs nothing.
func parsedAnew(env Env, args []string) (*cobra.Command, error) {
	var status int
	c, rest, err := newRoot(env, &status, args[0]).Find(args)
	if err != nil {
		return c, nil //nolint:nilerr // what is no command has been found out before
	}
	return c, c.ParseFlags(rest)
}

// holdsFlag reports whether a word is where the parser met a flag that it does
// not know.
func holdsFlag(arg string, unknown *pflag.NotExistError) bool {
	if cluster := unknown.GetSpecifiedShortnames(); cluster != "" {
		return strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, cluster)
	}
	name, _, _ := strings.Cut(arg, "=")
	return name == "--"+unknown.GetSpecifiedName()
}

func flagProblem(c *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err.Error()
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := unknown.GetSpecifiedName()
	text := "unknown flag " + flagSpelling(name)
	switch near := nearest(name, names); {
	case near != "":
		return text + fmt.Sprintf("; did you mean %s?", flagSpelling(near))
	case c.Flags().Lookup("max-attempts") != nil:
		return text + "; flags of the command stand after it: retryx -- command " + flagSpelling(name)
	default:
		return text + "; " + c.CommandPath() + " --help lists what there is"
	}
}

func flagSpelling(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// emptyFlags finds the flags of a subcommand's own that were given no value: with
// --run-id "$ID" and an empty ID the answer would be about somebody else's run.
// Those that a run has too are the resolver's.
func emptyFlags(flags *pflag.FlagSet) []string {
	var problems []string
	flags.Visit(func(f *pflag.Flag) {
		if _, ofRun := f.Value.(flagValue); ofRun || f.Name == "format" || !isEmpty(f.Value) {
			return // they say so themselves
		}
		problems = append(problems, "--"+f.Name+": wants a value")
	})
	return problems
}

func isEmpty(v pflag.Value) bool {
	if values, ok := v.(pflag.SliceValue); ok {
		return len(values.GetSlice()) == 0
	}
	return v.String() == ""
}
