package cmd

// retryx classify: judge a failure that happened elsewhere, as a run would have
// judged it. Nothing is run. What the command wrote to stderr comes on stdin.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec/proc"
)

const verdictSchema = "retryx.verdict/v1"

func newClassifyCommand(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "classify [flags] -- command [args...]",
		Short: "judge a failure without running anything",
		Long: `What the command wrote to stderr is read from stdin. The answer says what kind of
failure it was, what a run would do about it, and which rule says so. The flags
that judge a run's failures work here too.

With --batch stdin holds JSON lines {"id","argv","exit","signal","timed_out",
"stderr","stdout"}; one line of JSON answers each, by the built-in rules and
those that the flags give (--rule and its shorthands, --rules, --effect,
--idempotent). A success has class null and action "stop": there is nothing to
retry.`,
		Example: `  retryx classify --exit 7 -- curl -fsS https://example.com/ < stderr.txt
  retryx classify --tool npm --exit 1 --stdout out.txt < stderr.txt
  retryx classify --timed-out -- npm publish < /dev/null
  retryx classify --batch < failures.jsonl`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	c.Flags().SetInterspersed(false)
	o := &classifyOptions{env: env, format: addFormat(c, "text", "json")}
	o.settings = share(c, func(s setting) bool {
		return s.group == groupJudge || s.name == "idempotency-key" || s.name == "redact" || s.name == "config" || s.name == "profile"
	})
	f := c.Flags()
	f.StringVar(&o.exit, "exit", "", "the exit `status`; 1 when nothing is said")
	f.StringVar(&o.signal, "signal", "", "the `signal` that ended it, by name or number")
	f.BoolVar(&o.timedOut, "timed-out", false, "it was ended for its time limit")
	f.StringVar(&o.tool, "tool", "", "the `name` of the program, when the command line is not known")
	f.StringVar(&o.stdout, "stdout", "", "a `file` with what it wrote to stdout")
	f.BoolVar(&o.batch, "batch", false, "judge JSON lines")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.batch {
			return o.judgeBatch(c.Flags(), args)
		}
		return o.judgeOne(args, emptyFlags(c.Flags()))
	}
	return c
}

type classifyOptions struct {
	env                        Env
	settings                   *pflag.FlagSet
	format                     *format
	exit, signal, tool, stdout string
	timedOut, batch            bool
}

// goesWithBatch reports whether a flag says something about every line.
func goesWithBatch(name string) bool {
	switch name {
	case "batch", "redact", "config", "profile", "rule", "rules", "effect", "idempotent",
		"retry-exit", "stop-exit", "retry-stderr", "stop-stderr", "retry-stdout", "stop-stdout":
		return true
	}
	return false
}

// judgeBatch answers JSON lines. Without flags the built-in rules judge alone,
// so that the same line gets the same answer everywhere.
func (o *classifyOptions) judgeBatch(given *pflag.FlagSet, args []string) error {
	var problems []string
	given.Visit(func(f *pflag.Flag) {
		if !goesWithBatch(f.Name) {
			problems = append(problems, fmt.Sprintf("--%s: does not go with --batch, whose lines say everything", f.Name))
		}
	})
	if len(args) > 0 {
		problems = append(problems, fmt.Sprintf("%q does not go with --batch, whose lines name their commands", args[0]))
	}
	s, err := o.read(problems)
	if err != nil {
		return err
	}
	r := newRedactor(o.env.Environ, nil, s.redact)
	said := batchOptions(given, s)
	err = classify.Batch(o.env.Stdin, o.env.Stdout, said, func(evidence string) string { return r.line(evidence, evidenceLimit) })
	if err != nil {
		return fmt.Errorf("classify --batch: %w", err)
	}
	return nil
}

// batchOptions are what the flags of a batch say.
func batchOptions(given *pflag.FlagSet, s *settings) classify.Options {
	var said classify.Options
	if given.Changed("rule") || slices.ContainsFunc(shorthands(), func(short shorthand) bool { return given.Changed(short.name) }) {
		said.Flags = s.rules
	}
	if given.Changed("rules") {
		said.Files = s.ruleFiles
	}
	if given.Changed("effect") {
		said.Effect = s.effect
	}
	if given.Changed("idempotent") {
		said.Idempotent = s.idempotent
	}
	return said
}

func (o *classifyOptions) read(problems []string) (*settings, error) {
	s, conf, err := readTogether(o.env.variables(), o.settings, time.Now(), problems)
	if err != nil {
		return nil, err
	}
	warn(o.env.Stderr, conf.warnings)
	return s, nil
}

func (o *classifyOptions) judgeOne(args, problems []string) error {
	a, more := o.attempt(args)
	s, err := o.read(slices.Concat(problems, more, o.format.problems()))
	if err != nil {
		return err
	}
	if err := o.outputs(&a); err != nil {
		return err
	}
	v := judgement(s, a)
	v.redact = newRedactor(o.env.Environ, v.command.SecretFlags, s.redact)
	v.redact.observe(a.Argv, v.command.Argv)
	v.command.Tool = v.redact.name(v.command.Tool)
	if o.format.text == "json" {
		return printJSON(o.env.Stdout, v.document())
	}
	return printRows(o.env.Stdout, v.rows())
}

// attempt is what the flags say about the failure.
func (o *classifyOptions) attempt(args []string) (classify.Attempt, []string) {
	a := classify.Attempt{Argv: args, Exit: 1, TimedOut: o.timedOut, Ended: time.Now()}
	var problems []string
	switch {
	case o.tool != "" && len(args) > 0:
		problems = append(problems, "--tool: stands for a command line that is not known; leave out one of the two")
	case o.tool != "":
		a.Argv = []string{o.tool}
	case len(args) == 0:
		problems = append(problems, "classify: say which command failed: -- curl -fsS URL, or --tool curl")
	}
	switch {
	case o.exit != "" && o.signal != "":
		problems = append(problems, "--exit: a command that a signal ended has no exit status; leave out --exit or --signal")
	case o.exit != "":
		n, err := strconv.ParseUint(o.exit, 10, 8)
		if err != nil {
			problems = append(problems, fmt.Sprintf("--exit: want a status from 0 to 255, not %q", o.exit))
		}
		a.Exit = int(n)
	case o.signal != "":
		n, err := parseSignal(o.signal)
		if err != nil {
			problems = append(problems, "--signal: "+err.Error())
		}
		a.Exit, a.Signal = -1, int(n)
	case o.timedOut:
		a.Exit, a.Signal = -1, int(syscall.SIGTERM) // what retryx sends
	}
	return a, problems
}

// parseSignal reads TERM, SIGTERM or 15.
func parseSignal(v string) (syscall.Signal, error) {
	if n, err := strconv.ParseUint(v, 10, 7); err == nil && n > 0 {
		return syscall.Signal(n), nil
	}
	s := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(v), "SIG"))
	if s == 0 {
		return 0, fmt.Errorf("%q is no signal; want a name as TERM, or a number", v)
	}
	return s, nil
}

// outputs reads what the command wrote, as much of its end as a run looks at.
func (o *classifyOptions) outputs(a *classify.Attempt) error {
	if isatty.IsTerminal(o.env.Stdin.Fd()) {
		say(o.env.Stderr, "what did the command write to stderr? end it with ctrl-d")
	}
	var err error
	if a.Stderr, err = lastOf(o.env.Stdin, proc.TailBytes); err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	if o.stdout == "" {
		return nil
	}
	f, err := os.Open(o.stdout)
	if err != nil {
		return &usageError{[]string{"--stdout: " + err.Error()}}
	}
	defer func() { _ = f.Close() }()
	if a.Stdout, err = lastOf(f, proc.TailBytes); err != nil {
		return &usageError{[]string{"--stdout: " + err.Error()}}
	}
	return nil
}

// lastOf returns the last n bytes of r in memory that its length does not change.
func lastOf(r io.Reader, n int) ([]byte, error) {
	kept := make([]byte, 0, 2*n)
	for {
		if len(kept) == cap(kept) {
			kept = append(kept[:0], kept[len(kept)-n:]...)
		}
		got, err := r.Read(kept[len(kept):cap(kept)])
		kept = kept[:len(kept)+got]
		if errors.Is(err, io.EOF) {
			return kept[max(0, len(kept)-n):], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// judgedFailure is a failure with what a run would make of it.
type judgedFailure struct {
	classify.Verdict
	attempt   classify.Attempt
	command   classify.Command
	effect    classify.Effect
	declared  bool // the effect was given, not read from the arguments
	succeeded bool // it is no failure
	action    string
	redact    *redactor
}

// judgement judges as a run does: the status is looked at first, then the rules
// and the retry set.
func judgement(s *settings, a classify.Attempt) *judgedFailure {
	v := &judgedFailure{attempt: a, command: classify.ReadWith(a.Argv, s.ruleFiles), declared: s.effect != ""}
	c := classify.New(v.command, classify.Options{
		Effect: s.effect, Idempotent: s.idempotent,
		Flags: s.rules, Env: s.envRules, Config: s.configRules, Files: s.ruleFiles,
	})
	v.effect = c.Effect()
	if !a.TimedOut && a.Signal == 0 && classify.Contains(s.success, a.Exit) {
		var failed bool
		v.Verdict, failed = c.SuccessRuleMatch(a)
		v.succeeded = !failed
	} else {
		v.Verdict = c.Classify(a)
	}
	v.action = "stop"
	switch {
	case v.succeeded:
		v.action = "none"
	case slices.Contains(s.policy.RetryOn, v.Class):
		v.action = "retry"
	case v.Class == classify.Ambiguous:
		v.action = "check"
	}
	return v
}

// shownVerdict is the JSON of one judgement.
type shownVerdict struct {
	Schema       string  `json:"schema"`
	Succeeded    bool    `json:"succeeded"`
	Class        *string `json:"class"` // null: it is a success
	Action       string  `json:"action"`
	Rule         *string `json:"rule"` // null: nothing matched
	Why          *string `json:"why"`
	Source       *string `json:"source"`
	Evidence     *string `json:"evidence"`
	RetryAfterMS *int64  `json:"retry_after_ms"` // stated in the output
	LeastWaitMS  *int64  `json:"least_wait_ms"`  // the rule's
	Tool         string  `json:"tool"`
	Subcommand   *string `json:"subcommand"`
	Effect       string  `json:"effect"`
	Declared     bool    `json:"effect_declared"` // by --effect, not read from the arguments
}

func (v *judgedFailure) document() shownVerdict {
	doc := shownVerdict{
		Schema: verdictSchema, Succeeded: v.succeeded, Class: filled(string(v.Class)), Action: v.action,
		Rule: filled(v.Rule), Why: filled(v.Why), Source: filled(v.Source), Evidence: filled(v.evidence()),
		Tool: printable(v.command.Tool), Subcommand: filled(printable(v.command.Subcommand)),
		Effect: effectWord(v.effect), Declared: v.declared,
	}
	if v.RetryAfter > 0 {
		doc.RetryAfterMS = new(ceilMS(v.RetryAfter))
	}
	if v.MinWait > 0 {
		doc.LeastWaitMS = new(ceilMS(v.MinWait))
	}
	return doc
}

func (v *judgedFailure) evidence() string { return v.redact.line(v.Evidence, evidenceLimit) }

func (v *judgedFailure) rows() []row {
	if v.succeeded {
		return []row{{"class", fmt.Sprintf("none: status %d is a success and no rule says otherwise", v.attempt.Exit)}, {"action", v.action}}
	}
	rows := []row{
		{"class", string(v.Class)},
		{"action", v.actionWords()},
		{"rule", orNone(v.Rule, "none: nothing was recognised")},
	}
	for _, r := range []row{{"why", v.Why}, {"source", v.Source}, {"evidence", v.evidence()}, {"wait", v.waitWords()}} {
		if r.text != "" {
			rows = append(rows, r)
		}
	}
	return append(rows, row{"effect", effectWords(v.effect, v.declared, v.command)})
}

func orNone(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

func (v *judgedFailure) actionWords() string {
	if v.action == "check" {
		return "check: it may have happened; stop, or let --reconcile ask"
	}
	return v.action
}

func (v *judgedFailure) waitWords() string {
	switch {
	case v.RetryAfter > 0:
		return shortDuration(v.RetryAfter) + ", as the output says"
	case v.MinWait > 0:
		return "at least " + shortDuration(v.MinWait) + ", as the rule says"
	}
	return ""
}

// effectWords says what the command does to the world, and who says so.
func effectWords(e classify.Effect, declared bool, c classify.Command) string {
	switch {
	case declared:
		return effectWord(e) + ", as --effect says"
	case e == classify.EffectUnknown:
		return "unknown; say --effect read, repeatable or write"
	}
	return fmt.Sprintf("%s, as the arguments of %s say", e, printable(c.Tool))
}
