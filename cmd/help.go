package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpHead = `retryx runs a command again when that can help, and only then.

usage:
  retryx [flags] -- command [args...]
  retryx COMMAND [flags]

examples:
  retryx -- curl -fsS https://example.com/
  retryx -n 6 --max-elapsed 2m -b artifacts -- ./fetch.sh
  retryx --no-budget -n 60 --delay 1s --multiplier 1 -- pg_isready
  RETRYX_RUN_ID=$(retryx run-id) make deploy

commands:
`

const helpTail = `
nearly every flag is also a variable (RETRYX_MAX_ATTEMPTS) and a configuration key (max_attempts)
exit status: the command's own; 124 timed out, 125 retryx itself failed, 126 cannot be
started, 127 not found, 75 refused before the first attempt.
see also: retryx COMMAND --help, retryx plan -- command, man retryx
`

// runHelp is the text of --help: what most people look for first.
func runHelp() string {
	var b strings.Builder
	b.WriteString(helpHead)
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-*s  %s\n", helpColumn, c[0], c[1])
	}
	b.WriteByte('\n')
	for _, g := range groups() {
		fmt.Fprintf(&b, "%s:\n", g)
		for _, s := range table() {
			if s.group == g {
				fmt.Fprintf(&b, "  %s\n", s.helpLine())
			}
		}
	}
	b.WriteString(helpTail)
	return b.String()
}

// commandHelp is the text of a subcommand's --help, in the form of runHelp.
func commandHelp(c *cobra.Command) string {
	var b strings.Builder
	about := c.Long
	if about == "" {
		about = c.CommandPath() + ": " + c.Short
	}
	b.WriteString(wrapped(about, helpWidth) + "\n\nusage:\n")
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND [flags]\n", c.CommandPath())
	} else {
		fmt.Fprintf(&b, "  %s\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nexamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\ncommands:\n")
		for _, sub := range c.Commands() {
			fmt.Fprintf(&b, "  %-*s  %s\n", helpColumn, sub.Name(), sub.Short)
		}
		return b.String()
	}
	if flags := flagHelp(c.Flags()); flags != "" {
		b.WriteString("\nflags:\n" + flags)
	}
	return b.String()
}

// flagHelp lists the flags of a subcommand. Those of a run are many, and stand in
// the help of the run.
func flagHelp(fs *pflag.FlagSet) string {
	var b strings.Builder
	ofRun := fs.Lookup("max-attempts") != nil
	fs.VisitAll(func(f *pflag.Flag) {
		isRuns := slices.ContainsFunc(table(), func(s setting) bool { return s.name == f.Name })
		if f.Name != "help" && (!ofRun || !isRuns) {
			fmt.Fprintf(&b, "  %s\n", flagLine(f))
		}
	})
	if ofRun {
		b.WriteString("  and every flag of a run; see retryx --help\n")
	}
	return b.String()
}

// flagLine is a flag as the table's are shown.
func flagLine(f *pflag.Flag) string {
	unit, usage := pflag.UnquoteUsage(f)
	if f.NoOptDefVal != "" { // a switch, which takes no word behind it
		unit = ""
	}
	s := setting{name: f.Name, short: f.Shorthand, unit: strings.ToUpper(unit), def: f.DefValue, usage: usage}
	if s.def == "false" || s.def == "[]" {
		s.def = ""
	}
	return s.helpLine()
}

const helpWidth = 88

// wrapped breaks the lines of a text that are longer than width bytes.
func wrapped(text string, width int) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		for len(line) > width {
			at := strings.LastIndexByte(line[:width+1], ' ')
			if at <= 0 {
				break
			}
			b.WriteString(line[:at] + "\n")
			line = line[at+1:]
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// newHelpCommand is help as a word: retryx help budget show.
func newHelpCommand(env Env, root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "explain a command", Example: "  retryx help budget show",
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []cobra.Completion
			for _, c := range about.Commands() {
				if !c.IsAvailableCommand() {
					continue
				}
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if len(args) == 0 || (err == nil && about.Name() == "run") {
				return printHelp(env.Stdout, runHelp())
			}
			if err != nil || len(rest) > 0 {
				word := args[len(args)-max(len(rest), 1)]
				return &usageError{[]string{fmt.Sprintf("help: there is no command %q%s; retryx help lists them", word, didYouMean(word, subcommandNames(about)))}}
			}
			return printHelp(env.Stdout, commandHelp(about))
		},
	}
}

func printHelp(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print help: %w", err)
	}
	return nil
}

// helpFlag prints what --help asks for. The library takes no error from it.
func helpFlag(env Env, status *int, text func(*cobra.Command) string) func(*cobra.Command, []string) {
	return func(c *cobra.Command, _ []string) {
		if err := printHelp(env.Stdout, text(c)); err != nil {
			*status = complain(env, err)
		}
	}
}

const helpColumn = 28

func (s setting) helpLine() string {
	return fmt.Sprintf("%-*s  %s", helpColumn, s.spelling(), s.help())
}

// spelling is the flag as it is typed; short ones stand in a column of their
// own.
func (s setting) spelling() string {
	text := "    --" + s.name
	if s.short != "" {
		text = "-" + s.short + ", --" + s.name
	}
	if s.unit != "" {
		text += " " + s.unit
	}
	return text
}

// help says what the flag does and what it is when nobody sets it.
func (s setting) help() string {
	if s.def == "" || s.kind != text {
		return s.usage
	}
	return s.usage + " (" + s.def + ")"
}

// commands says what each subcommand does.
func commands() [][2]string {
	return [][2]string{
		{"budget list|show|set|reset", "show and set budgets"},
		{"classify", "judge a failure without running anything"},
		{"rules list|show|test", "list and show the rules, test rules of your own"},
		{"plan", "show what a run would do, without running anything"},
		{"report", "sum up the steps of a run"},
		{"history", "list past outcomes"},
		{"stats", "count past outcomes"},
		{"config show|check|init|path", "show, check and start a configuration"},
		{"run-id", "print a new run id"},
		{"completion SHELL", "print completions for bash, zsh, fish or powershell"},
		{"man", "print the manual page"},
		{"version", "print the version"},
	}
}
