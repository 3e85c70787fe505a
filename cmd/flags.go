package cmd

// Every setting of a run, in one table. The same names are flags (as here),
// configuration keys ("-" becomes "_") and environment variables (RETRYX_ and
// the name in capitals), except where noEnv or noConfig says otherwise: the
// names of the context that travels to the child are never settings.
//
// All values are text until the resolver reads them, so that one error can name
// every problem at once, whether it stands in a flag, a variable or a file.

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/retryx/retryx/budget"
)

type kind int

const (
	text kind = iota
	toggle
	list // may be repeated
)

// setting is one row of the table.
type setting struct {
	name, short string
	kind        kind
	unit        string // what a value looks like, as the help shows it
	def         string
	usage       string
	group       string
	choices     []string
	noEnv       bool
	noConfig    bool
}

func (s setting) key() string { return strings.ReplaceAll(s.name, "-", "_") }

func (s setting) env() string {
	if s.noEnv {
		return ""
	}
	return "RETRYX_" + strings.ToUpper(s.key())
}

// The groups of the help, in its order.
const (
	groupRetry   = "how often and how long"
	groupJudge   = "what is retried"
	groupBudget  = "what a retry costs"
	groupWanted  = "whether anyone still wants it"
	groupStreams = "streams"
	groupHooks   = "hooks"
	groupReport  = "what is reported"
	groupConfig  = "configuration"
)

func groups() []string {
	return []string{groupRetry, groupJudge, groupBudget, groupWanted, groupStreams, groupHooks, groupReport, groupConfig}
}

// table returns every setting of a run. What another package uses when nobody
// says otherwise is shown as it stands there.
func table() []setting {
	params := budget.Defaults()
	return []setting{
		{name: "max-attempts", short: "n", unit: "N", def: "4", group: groupRetry, usage: "attempts in all, the first included"},
		{name: "delay", unit: "D", def: "1s", group: groupRetry, usage: "wait after the first failure"},
		{name: "max-delay", unit: "D", def: "20s", group: groupRetry, usage: "longest computed wait, never below --delay"},
		{name: "multiplier", unit: "F", def: "2", group: groupRetry, usage: "growth of the wait per failure"},
		{name: "jitter", unit: "MODE", def: "equal", group: groupRetry, usage: "spread of the wait: none, full, equal or decorrelated", choices: []string{"none", "full", "equal", "decorrelated"}},
		{name: "max-retry-after", unit: "D", def: "5m", group: groupRetry, usage: "longest wait that a server may ask for"},
		{name: "max-elapsed", unit: "D", group: groupRetry, usage: "limit of the whole run"},
		{name: "deadline", unit: "T", group: groupRetry, noEnv: true, usage: "end of the whole run: RFC 3339, a duration from now, or Unix seconds"},
		{name: "timeout", short: "t", unit: "D", group: groupRetry, usage: "limit of one attempt"},
		{name: "kill-after", unit: "D", def: "5s", group: groupRetry, usage: "time between TERM and KILL"},
		{name: "min-attempt", unit: "D", def: "0", group: groupRetry, usage: "start no retry with less time left than this"},

		{name: "retry-on", unit: "LIST", def: "transient,unknown", group: groupJudge, usage: "failure classes that are retried"},
		{name: "strict", kind: toggle, group: groupJudge, usage: "retry only what is known to pass: --retry-on transient"},
		{name: "rule", kind: list, unit: "RULE", group: groupJudge, noConfig: true, usage: "judge a failure: 'CLASS: [exit=LIST] [signal=LIST] [stderr=RE]'"},
		{name: "retry-exit", kind: list, unit: "LIST", group: groupJudge, usage: "retry these exit codes, as 7,28,50-60"},
		{name: "stop-exit", kind: list, unit: "LIST", group: groupJudge, usage: "never retry these exit codes"},
		{name: "retry-stderr", kind: list, unit: "RE", group: groupJudge, usage: "retry when stderr matches"},
		{name: "stop-stderr", kind: list, unit: "RE", group: groupJudge, usage: "never retry when stderr matches"},
		{name: "retry-stdout", kind: list, unit: "RE", group: groupJudge, usage: "retry when stdout matches"},
		{name: "stop-stdout", kind: list, unit: "RE", group: groupJudge, usage: "never retry when stdout matches"},
		{name: "success-exit", unit: "LIST", def: "0", group: groupJudge, usage: "exit codes that are a success"},
		{name: "rules", kind: list, unit: "FILE", group: groupJudge, noConfig: true, usage: "rules of your own, in the form of the built-in ones"},
		{name: "effect", unit: "KIND", group: groupJudge, usage: "what the command does: read, repeatable or write", choices: []string{"read", "repeatable", "write", "unknown"}},
		{name: "idempotent", kind: toggle, group: groupJudge, noEnv: true, usage: "running it twice does what running it once does"},

		{name: "budget", short: "b", kind: list, unit: "NAME", group: groupBudget, noEnv: true, usage: "pay retries from this budget; name the service you depend on"},
		{name: "no-budget", kind: toggle, group: groupBudget, usage: "pay from no budget of its own (waiting for a service to come up)"},
		{name: "budget-capacity", unit: "N", group: groupBudget, usage: "tokens that the budget can hold (" + strconv.Itoa(params.Capacity) + ")"},
		{name: "budget-refill", unit: "RATE", group: groupBudget, usage: "tokens that come back, as 0.1/s or 6/m (" + params.Refill.String() + ")"},
		{name: "budget-bonus", unit: "F", group: groupBudget, usage: "tokens that a success brings, 0 to 1 (" + params.Bonus.String() + ")"},
		{name: "run-budget", unit: "N", group: groupBudget, usage: "retries for the whole run that --run-id names"},
		{name: "budget-store", unit: "URL", group: groupBudget, usage: "where budgets live: redis://, rediss:// or unix://; files when empty"},
		{name: "budget-on-error", unit: "POLICY", group: groupBudget, usage: "when the store fails: closed, local or open", choices: []string{"closed", "local", "open"}},
		{name: "breaker", kind: toggle, group: groupBudget, usage: "refuse to start while the target keeps failing"},
		{name: "breaker-threshold", unit: "N", def: strconv.Itoa(budget.DefaultThreshold), group: groupBudget, usage: "failures that open the breaker"},
		{name: "breaker-cooldown", unit: "D", def: budget.DefaultCooldown.String(), group: groupBudget, usage: "how long it stays open"},
		{name: "state-dir", unit: "DIR", group: groupBudget, usage: "where budgets and the journal live"},
		{name: "allow-remote-state", kind: toggle, group: groupBudget, usage: "use a state directory on a network filesystem"},

		{name: "cancel-file", kind: list, unit: "PATH", group: groupWanted, noEnv: true, usage: "cancelled as soon as this file exists"},
		{name: "on-orphan", unit: "MODE", def: "stop", group: groupWanted, usage: "when the caller is gone: stop, kill or ignore", choices: []string{"stop", "kill", "ignore"}},
		{name: "run-id", unit: "ID", group: groupWanted, noEnv: true, noConfig: true, usage: "the run that this belongs to"},
		{name: "step", unit: "NAME", group: groupWanted, noConfig: true, usage: "its name in the run's report"},
		{name: "idempotency-key", unit: "KEY", group: groupWanted, noEnv: true, noConfig: true, usage: "the same for every attempt; declares the command idempotent"},
		{name: "expand", kind: toggle, group: groupWanted, usage: "replace {attempt}, {idempotency_key}, {deadline}, {remaining_s}, {run_id} in the arguments"},

		{name: "stdout", unit: "MODE", def: "auto", group: groupStreams, usage: "auto, stream, commit (only a success's output) or last", choices: []string{"auto", "stream", "commit", "last"}},
		{name: "stdin", unit: "MODE", def: "auto", group: groupStreams, usage: "auto, inherit, replay (the same input to every attempt) or null", choices: []string{"auto", "inherit", "replay", "null"}},
		{name: "stdin-limit", unit: "SIZE", def: "256MiB", group: groupStreams, usage: "most input that replay keeps"},
		{name: "capture", unit: "WHAT", def: "auto", group: groupStreams, usage: "what is read to judge a failure: auto, stderr, stdout, both or none", choices: []string{"auto", "stderr", "stdout", "both", "none"}},
		{name: "pty", unit: "MODE", def: "auto", group: groupStreams, usage: "give the child a terminal for its stderr: auto or never", choices: []string{"auto", "never"}},
		{name: "hold-output", kind: toggle, group: groupStreams, usage: "show the child's output only if the run fails"},

		{name: "reconcile", unit: "CMD", group: groupHooks, usage: "ask whether an ambiguous write happened: exit 0 yes, 1 no"},
		{name: "correct", unit: "CMD", group: groupHooks, usage: "ask for corrected arguments, as a JSON array"},
		{name: "max-corrections", unit: "N", def: "5", group: groupHooks, usage: "most corrections"},
		{name: "before-retry", unit: "CMD", group: groupHooks, usage: "run before every retry"},
		{name: "on-outcome", unit: "CMD", group: groupHooks, usage: "run at the end, with the outcome on its stdin"},
		{name: "hook-timeout", unit: "D", def: "30s", group: groupHooks, usage: "limit of one hook"},

		{name: "outcome", unit: "DEST", def: "stderr", group: groupReport, usage: "where the outcome goes: stderr, none, fd:N or a file"},
		{name: "outcome-on", unit: "WHEN", def: "always", group: groupReport, usage: "always or failure", choices: []string{"always", "failure"}},
		{name: "quiet", short: "q", kind: toggle, group: groupReport, usage: "no lines of our own, no outcome for a first-attempt success"},
		{name: "verbose", short: "v", kind: toggle, group: groupReport, usage: "say which rule judged a failure"},
		{name: "color", unit: "WHEN", def: "auto", group: groupReport, usage: "auto, always or never", choices: []string{"auto", "always", "never"}},
		{name: "ci", unit: "MODE", def: "auto", group: groupReport, usage: "annotations for auto, github or off", choices: []string{"auto", "github", "off"}},
		{name: "redact", kind: list, unit: "RE", group: groupReport, usage: "also hide what matches"},
		{name: "no-journal", kind: toggle, group: groupReport, usage: "keep no record of the outcome"},

		{name: "config", unit: "FILE", group: groupConfig, noConfig: true, usage: "read this configuration file too"},
		{name: "profile", unit: "NAME", group: groupConfig, noConfig: true, usage: "use a profile of the configuration"},
	}
}

// define adds the settings to a flag set. Each flag carries its row of the table.
func define(fs *pflag.FlagSet, settings []setting) {
	fs.SortFlags = false // visits go by the table
	for i := range settings {
		s := &settings[i]
		switch s.kind {
		case toggle:
			fs.VarPF(&textValue{text: "false", setting: s}, s.name, s.short, s.usage).NoOptDefVal = "true"
		case list:
			fs.VarP(&listValue{setting: s}, s.name, s.short, s.usage)
		case text:
			fs.VarP(&textValue{text: s.def, setting: s}, s.name, s.short, s.usage)
		}
	}
}

// flagValue is the value of a setting's flag.
type flagValue interface{ row() *setting }

// textValue is a flag whose text is read later, with all others.
type textValue struct {
	text string
	*setting
}

func (v *textValue) String() string     { return v.text }
func (v *textValue) Set(s string) error { v.text = s; return nil }
func (v *textValue) row() *setting      { return v.setting }
func (v *textValue) Type() string {
	if v.kind == toggle {
		return "switch"
	}
	return v.unit
}

// listValue is a flag that may be repeated; nothing in it is split.
type listValue struct {
	values []string
	*setting
}

func (v *listValue) String() string            { return strings.Join(v.values, " ") }
func (v *listValue) Set(s string) error        { v.values = append(v.values, s); return nil }
func (v *listValue) Type() string              { return v.unit }
func (v *listValue) row() *setting             { return v.setting }
func (v *listValue) Append(s string) error     { return v.Set(s) }
func (v *listValue) Replace(vs []string) error { v.values = vs; return nil }
func (v *listValue) GetSlice() []string        { return v.values }
