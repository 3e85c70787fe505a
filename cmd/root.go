package cmd

// The command tree. A subcommand is recognised only as the very first argument:
// after any flag, and after "--", the word is the command to run. So everything
// else is handed to `run`, whose flag parsing stops at the first word.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// execute runs one command line and returns the exit status.
func execute(env Env) int {
	status := 0
	args := route(env.Args)
	root := newRoot(env, &status, args[0])
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		if args[0] == "run" {
			return refuse(env, err)
		}
		return complain(env, err)
	}
	return status
}

// route puts "run" in front of a command line that names no subcommand. What it
// returns has a first word.
func route(args []string) []string {
	completing := len(args) > 0 && isCompletion(args[0])
	head, rest := args[:0:0], args
	if completing {
		head, rest = args[:1], args[1:]
		if len(rest) <= 1 && !strings.HasPrefix(strings.Join(rest, ""), "-") {
			return args // the first word: a subcommand or a command
		}
	}
	if len(rest) > 0 && isSubcommand(rest[0]) {
		return args
	}
	return slices.Concat(head, []string{"run"}, rest)
}

func isCompletion(word string) bool {
	return word == cobra.ShellCompRequestCmd || word == cobra.ShellCompNoDescRequestCmd
}

func isSubcommand(word string) bool {
	return word == "help" || slices.ContainsFunc(rooms(), func(r room) bool { return r.name == word })
}

// room is a subcommand that is not built before it is asked for: their flags are
// hundreds, and most invocations run a command.
type room struct {
	name  string
	build func(env Env, status *int) *cobra.Command
}

func rooms() []room {
	return []room{
		{"run", newRunCommand},
		{"plan", without(newPlanCommand)},
		{"budget", newBudgetCommand},
		{"classify", without(newClassifyCommand)},
		{"rules", newRulesCommand},
		{"config", without(newConfigCommand)},
		{"history", without(newHistoryCommand)},
		{"stats", without(newStatsCommand)},
		{"report", newReportCommand},
		{"completion", without(newCompletionCommand)},
		{"man", without(newManCommand)},
		{"run-id", without(newRunIDCommand)},
		{"version", without(newVersionCommand)},
	}
}

// without is for a subcommand that has no status of its own.
func without(build func(Env) *cobra.Command) func(Env, *int) *cobra.Command {
	return func(env Env, _ *int) *cobra.Command { return build(env) }
}

// newRoot builds what the first word of a command line needs: that subcommand,
// or all of them for whoever speaks of others (help, completions).
func newRoot(env Env, status *int, word string) *cobra.Command {
	root := &cobra.Command{
		Use:               "retryx",
		Short:             "run a command again when that can help, and only then",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(env, c, err) })
	all := word == "help" || word == "completion" || isCompletion(word)
	for _, r := range rooms() {
		if !all && r.name != word {
			continue
		}
		c := r.build(env, status)
		if isCompletion(word) && (r.name == "run" || r.name == "plan") {
			complete(c, env)
		}
		root.AddCommand(c)
	}
	root.SetHelpCommand(newHelpCommand(env, root))
	root.SetHelpFunc(helpFlag(env, status, commandHelp))
	return root
}

func newRunCommand(env Env, status *int) *cobra.Command {
	c := &cobra.Command{
		Use:   "run [flags] -- command [args...]",
		Short: "run a command (the word run may be left out)",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if v, _ := c.Flags().GetBool("version"); v {
				_, err := fmt.Fprintln(env.Stdout, "retryx "+Version())
				return err
			}
			if len(args) == 0 && flagsGiven(c) {
				return &usageError{[]string{"there is no command to run; it stands after the flags: retryx -n 3 -- curl -fsS URL"}}
			}
			if len(args) == 0 {
				fmt.Fprint(env.Stderr, runHelp())
				*status = exitOwn
				return nil
			}
			*status = run(env, c.Flags(), args)
			return nil
		},
	}
	define(c.Flags(), table())
	c.Flags().Bool("version", false, "print the version")
	c.Flags().SetInterspersed(false)
	c.SetHelpFunc(helpFlag(env, status, func(*cobra.Command) string { return runHelp() }))
	return c
}

func flagsGiven(c *cobra.Command) bool { return c.Flags().NFlag() > 0 }

func newVersionCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(env.Stdout, "retryx "+Version())
			return err
		},
	}
}

func newRunIDCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "run-id", Short: "print a new run id, for RETRYX_RUN_ID", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(env.Stdout, newID())
			return err
		},
	}
}
