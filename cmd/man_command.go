package cmd

// The manual page, written from the same table as the flags and the help, so
// that it cannot say anything else.

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newManCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "print the manual page", Args: cobra.NoArgs,
		Example: "  retryx man | man -l -",
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(env.Stdout, manual())
			return err
		},
	}
}

// page collects roff.
type page struct{ strings.Builder }

func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }
func (p *page) sub(title string)     { fmt.Fprintf(p, ".SS %s\n", roff(title)) }
func (p *page) text(s string)        { fmt.Fprintf(p, "%s\n", roff(wrapped(s, manualWidth))) }
func (p *page) par()                 { p.WriteString(".PP\n") }

func (p *page) item(head, body string) {
	fmt.Fprintf(p, ".TP\n\\fB%s\\fR\n%s\n", roff(head), roff(wrapped(body, manualWidth)))
}

func (p *page) topic(t topic) {
	p.section(t.title)
	for i, text := range t.paragraphs {
		if i > 0 {
			p.par()
		}
		p.text(text)
	}
}

// example is text that keeps its lines.
func (p *page) example(about, command string) {
	fmt.Fprintf(p, "%s\n.PP\n.RS 4\n.nf\n%s\n.fi\n.RE\n", roff(about), roff(command))
}

// roff escapes what the formatter would take for its own.
func roff(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, `\`, `\e`), "\n")
	for i, l := range lines {
		l = strings.ReplaceAll(l, "-", `\-`)
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			l = `\&` + l
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}

func manual() string {
	p := &page{}
	p.WriteString(".TH RETRYX 1 \"\" \"retryx\" \"User Commands\"\n")
	p.section("NAME")
	p.text("retryx - run a command again when that can help, and only then")
	p.section("SYNOPSIS")
	p.WriteString("\\fBretryx\\fR [\\fIflags\\fR] \\-\\- \\fIcommand\\fR [\\fIargs\\fR...]\n.br\n\\fBretryx\\fR \\fICOMMAND\\fR [\\fIflags\\fR]\n")
	describe(p)
	p.section("OPTIONS")
	for _, g := range groups() {
		p.sub(g)
		for _, s := range table() {
			if s.group == g {
				p.item(strings.TrimSpace(s.spelling()), s.help())
			}
		}
	}
	p.section("COMMANDS")
	for _, c := range commands() {
		p.item(c[0], c[1])
	}
	for _, t := range manTopics() {
		p.topic(t)
	}
	manEnding(p)
	return p.String()
}

func describe(p *page) {
	p.section("DESCRIPTION")
	p.text("retryx runs the command. When it fails, its exit status, signal, standard error and arguments are judged: what passes by itself is retried after a wait, what repeating cannot help is not. Every retry is paid for from a budget, a token bucket in a locked file that all invocations share, so that many callers of a broken service do not become its next problem. A retry that the budget refuses fails at once, on purpose.")
	p.par()
	p.text("The command keeps its standard input, output and terminal. Signals are passed on. The run ends with one line of JSON on standard error that says how it ended and why; its form is fixed by a schema.")
	p.par()
	p.text("A failure is judged as one of seven classes:")
	for _, c := range classMeanings() {
		p.item(c[0], c[1])
	}
}

// classMeanings says what each class means and what is done about it.
func classMeanings() [][2]string {
	return [][2]string{
		{"transient", "trouble that passes by itself: a refused connection, DNS, 429, 5xx, a held lock. Retried."},
		{"permanent", "repeating it unchanged cannot help: 404, disk full, a failed test. Not retried."},
		{"config", "a human must act: credentials, certificate, URL, usage. Not retried."},
		{"correctable", "the input is malformed and the caller could correct it. Not retried; see --correct."},
		{"ambiguous", "a write may or may not have happened. Not retried; see --reconcile and --idempotent."},
		{"unexpected", "a bug or a crash. Not retried."},
		{"unknown", "nothing matched. Retried, but not with --strict."},
	}
}

// exitMeanings says what each exit status means.
func exitMeanings() [][2]string {
	return [][2]string{
		{"0", "the command succeeded, or gave a status of --success-exit, which then passes through"},
		{"the command's own", "it failed, and another attempt was not worth it or not allowed; 1 where that would be 0 or a --success-exit code"},
		{"75", "refused before the first attempt: the breaker is open or the cancel token is set"},
		{"124", "the last attempt was timed out, or the deadline had passed before the first"},
		{"125", "retryx itself failed: usage, configuration, internal error"},
		{"126", "the command was found but cannot be started"},
		{"127", "the command was not found"},
		{"128+n", "the command was killed by signal n; after INT, TERM or HUP to retryx it dies by that signal itself"},
	}
}

// flagsWhere lists the options of a kind.
func flagsWhere(is func(setting) bool) string {
	var names []string
	for _, s := range table() {
		if is(s) {
			names = append(names, "--"+s.name)
		}
	}
	return together(names)
}

// together is "a, b and c".
func together(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func manEnding(p *page) {
	p.section("EXIT STATUS")
	for _, e := range exitMeanings() {
		p.item(e[0], e[1])
	}
	p.section("ENVIRONMENT")
	p.text("An option is also a variable: RETRYX_ and its name in capitals, as RETRYX_MAX_ATTEMPTS. Not so " + flagsWhere(func(s setting) bool { return s.noEnv }) + ", which are said of one command; variables of these names are the context below, where they are anything. No configuration keys are " + flagsWhere(func(s setting) bool { return s.noConfig }) + ".")
	p.text("Variables that speak of one command, " + together(ownNames()) + ", are not handed on to it: a retryx below runs another one. A hook finds its name in " + envHook + "; a retryx below it is asked for no hooks but those of its own command line.")
	p.text("The command finds these, and a retryx below takes its deadline, budgets, run, cancel files and depth from them, and asks no breaker whose probe it is a part of:")
	for _, n := range contextMeanings() {
		p.item(n[0], n[1])
	}
	p.par()
	p.text("A budget store in Redis or Valkey is reached with these, so that no secret stands on a command line:")
	for _, n := range redisMeanings() {
		p.item(n[0], n[1])
	}
	p.section("FILES")
	for _, f := range [][2]string{
		{"/etc/retryx/config.yaml", "configuration of the machine"},
		{"$XDG_CONFIG_HOME/retryx/config.yaml, ~/.config/retryx/config.yaml", "configuration of the user"},
		{"$XDG_STATE_HOME/retryx, ~/.local/state/retryx", "the state directory, unless --state-dir names another"},
		{"budgets/NAME", "the record of a budget, in the state directory"},
		{"outcomes.jsonl", "every outcome, one line each, in the state directory"},
	} {
		p.item(f[0], f[1])
	}
	p.section("EXAMPLES")
	for i, e := range manExamples() {
		if i > 0 {
			p.par()
		}
		p.example(e[0], e[1])
	}
	p.section("SEE ALSO")
	p.text("timeout(1), nohup(1), flock(1), chronic(1)")
}

func manExamples() [][2]string {
	return [][2]string{
		{"Fetch a page; retry what passes by itself.", "retryx -- curl -fsS https://example.com/"},
		{"Six attempts within two minutes, paid from the budget of the service.", "retryx -n 6 --max-elapsed 2m -b artifacts -- ./fetch.sh"},
		{"Wait for a database to come up.", "retryx --no-budget -n 60 --delay 1s --multiplier 1 -- pg_isready"},
		{"Limit each attempt to ten seconds, all of it to a minute.", "retryx -t 10s --max-elapsed 1m -- ./sync.sh"},
		{"Treat exit 3 as worth a retry and exit 4 as final.", "retryx --retry-exit 3 --stop-exit 4 -- ./job"},
		{"One clean result in a pipeline.", "page=$(retryx --stdout commit -- curl -fsS https://example.com/)"},
	}
}

// redisMeanings says what the variables of a budget store on the network hold.
func redisMeanings() [][2]string {
	return [][2]string{
		{"RETRYX_REDIS_USERNAME", "the user"},
		{"RETRYX_REDIS_PASSWORD", "the password"},
		{"RETRYX_REDIS_PASSWORD_FILE", "a file that holds the password"},
		{"RETRYX_REDIS_CA_FILE", "certificates to trust, for rediss://"},
		{"RETRYX_REDIS_CERT_FILE, RETRYX_REDIS_KEY_FILE", "a client certificate and its key"},
		{"RETRYX_REDIS_TLS_SKIP_VERIFY", "true: do not check the server's certificate"},
	}
}

// contextMeanings says what each variable of the context holds.
func contextMeanings() [][2]string {
	return [][2]string{
		{envAttempt, "the number of this attempt, from 1"},
		{envAttemptLimit, "how many attempts there may be"},
		{envRunID, "the run that this belongs to"},
		{envKey, "the same for every attempt of one invocation"},
		{envDeadline, "the end of the run, RFC 3339 in UTC"},
		{envRemaining, "milliseconds until then"},
		{envBudget, "the budgets that pay, separated by commas"},
		{envBudgetOrigin, "whether somebody named them: named or implicit"},
		{envBreaker, "those whose breaker has let this attempt through as its only probe: a retryx below does not ask it"},
		{envBudgetStore, "where they live, when not in files"},
		{envStateDir, "the state directory"},
		{envCancelFile, "files whose existence cancels the run, separated by colons"},
		{envKillAfter, "milliseconds between TERM and KILL"},
		{envDepth, "how many retryx are above"},
		{envPreviousClass, "how the attempt before this one was judged"},
		{envPreviousExit, "its exit status"},
		{envHint, "a file for lines to retryx: class=, retry_after=, reason=, stop=true"},
	}
}
