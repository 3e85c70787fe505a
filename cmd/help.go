package cmd

import (
	"fmt"
	"strings"
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
every flag is also a variable (RETRYX_ and its name in capitals) and a configuration key
exit status: the command's own; 124 timed out, 125 retryx itself failed, 126 cannot be
started, 127 not found, 75 refused before the first attempt. see also: man retryx
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
