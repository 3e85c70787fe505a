package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retryx/retryx/budget"
)

// shells are those that completions are made for.
func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCompletionCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "print completions for a shell",
		Example: `  retryx completion bash > ~/.local/share/bash-completion/completions/retryx
  retryx completion zsh > "${fpath[1]}/_retryx"
  retryx completion fish > ~/.config/fish/completions/retryx.fish`,
		ValidArgs: shells(),
		Args:      cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells(), args[0]) {
				return &usageError{[]string{"completion: want one of " + orList(shells())}}
			}
			return writeCompletions(c.Root(), args[0], env.Stdout)
		},
	}
}

// complete tells a run's flags what their values may be.
func complete(c *cobra.Command, env Env) {
	words := func(list func() []string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return list(), cobra.ShellCompDirectiveNoFileComp
		}
	}
	dynamic := map[string]cobra.CompletionFunc{
		"budget":    words(func() []string { return knownBudgets(env) }),
		"profile":   words(func() []string { return knownProfiles(env) }),
		"retry-on":  completeClasses,
		"rules":     cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		"config":    cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		"outcome":   cobra.FixedCompletions([]string{"stderr", "none", "fd:"}, cobra.ShellCompDirectiveDefault),
		"state-dir": cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	for _, s := range table() {
		f := dynamic[s.name]
		if f == nil && !takesPath(s) {
			f = cobra.FixedCompletions(s.choices, cobra.ShellCompDirectiveNoFileComp)
		}
		if f != nil {
			// Errors only on an unknown flag, and the table defines them all.
			_ = c.RegisterFlagCompletionFunc(s.name, f)
		}
	}
	c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
}

// takesPath reports whether files are worth completing: a path, or a command of
// the shell's.
func takesPath(s setting) bool { return s.unit == "FILE" || s.unit == "PATH" || s.unit == "CMD" }

// completeClasses completes the last entry of a list.
func completeClasses(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	head := typed[:strings.LastIndexByte(typed, ',')+1]
	var out []cobra.Completion
	for _, name := range classNames() {
		if !slices.Contains(strings.Split(head, ","), name) {
			out = append(out, head+name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// knownBudgets lists what the state directory holds; a completion that cannot
// look offers nothing.
func knownBudgets(env Env) []string {
	vars := env.variables()
	s := &settings{store: vars[envBudgetStore]}
	names, err := openStore(s, findPlaces(vars, s)).List(context.Background(), budget.Named)
	if err != nil {
		return nil
	}
	return names
}

func knownProfiles(env Env) []string {
	conf, err := loadConfiguration(env.variables(), env.variables()["RETRYX_CONFIG"], "")
	if err != nil {
		return nil
	}
	return conf.profiles
}
