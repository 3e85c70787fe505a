package cmd

// How a plan is shown: the same numbers as words and as JSON.

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const (
	planSchema = "retryx.plan/v1"

	waitsInWords = 8
	waitsInJSON  = 50
)

// planDocument is the JSON of a plan. Times that nothing bounds are null.
type planDocument struct {
	Schema     string   `json:"schema"`
	Command    []string `json:"command"`
	Tool       string   `json:"tool"`
	Subcommand *string  `json:"subcommand"`
	Effect     string   `json:"effect"`
	Declared   bool     `json:"effect_declared"` // by --effect, not read from the arguments
	Idempotent bool     `json:"idempotent"`

	Retried     []string      `json:"retried"`
	MaxAttempts int           `json:"max_attempts"`
	Jitter      string        `json:"jitter"`
	Waits       []plannedWait `json:"waits"`     // the first ones
	WaitsAll    plannedWait   `json:"waits_all"` // all of them together

	MaxRetryAfterMS int64   `json:"max_retry_after_ms"`
	TimeoutMS       *int64  `json:"timeout_ms"`
	KillAfterMS     int64   `json:"kill_after_ms"`
	MaxElapsedMS    *int64  `json:"max_elapsed_ms"`
	Deadline        *string `json:"deadline"`
	WorstCaseMS     *int64  `json:"worst_case_ms"`
	WorstStatedMS   *int64  `json:"worst_case_stated_ms"` // when every wait is stated, and as long as is allowed

	Budgets  []plannedBudget  `json:"budgets"`
	Breaker  *breakerDocument `json:"breaker"` // null: none was asked for, or a retryx above is its probe
	End      plannedEnd       `json:"end"`
	Advice   []string         `json:"advice"`
	Warnings []string         `json:"warnings"`
}

type plannedWait struct {
	DelayMS int64 `json:"delay_ms"` // before jitter; decorrelated jitter does without
	LeastMS int64 `json:"least_ms"`
	MostMS  int64 `json:"most_ms"`
}

type plannedBudget struct {
	Name        string  `json:"name"`
	Origin      string  `json:"origin"`
	Store       string  `json:"store"`
	Exists      bool    `json:"exists"`
	Policy      *string `json:"policy"` // not null: its store fails, and this acts
	Error       *string `json:"error"`
	Tokens      float64 `json:"tokens"`
	Capacity    int     `json:"capacity"`
	Refill      string  `json:"refill"`
	Bonus       float64 `json:"bonus"`
	NextTokenMS *int64  `json:"next_token_ms"`
	Bound       string  `json:"bound"`
}

// plannedEnd is what ends a run whose attempts all fail at once in the same
// transient way.
type plannedEnd struct {
	Row      *int    `json:"row"` // of the decision table; null: not foreseen
	Outcome  *string `json:"outcome"`
	Reason   *string `json:"reason"`
	Attempts int     `json:"attempts"`
	Budget   *string `json:"budget"` // that refuses
}

func (p *plan) document() planDocument {
	x := p.policy
	all := allWaits(x.Backoff, x.MaxAttempts-1)
	doc := planDocument{
		Schema: planSchema, Command: p.redact.argv(p.command), Tool: printable(p.read.Tool), Subcommand: filled(printable(p.read.Subcommand)),
		Effect: effectWord(p.effect), Declared: p.settings.effect != "", Idempotent: p.settings.idempotent,
		Retried: p.retried(), MaxAttempts: x.MaxAttempts, Jitter: string(x.Backoff.Jitter), WaitsAll: all.document(), Waits: []plannedWait{},
		MaxRetryAfterMS: ceilMS(x.MaxRetryAfter), TimeoutMS: waitOf(x.Timeout), KillAfterMS: ceilMS(x.KillAfter), MaxElapsedMS: waitOf(x.MaxElapsed),
		WorstCaseMS: bounded(worstCase(x, p.at.least(), 0)), WorstStatedMS: bounded(worstCase(x, p.at.least(), x.MaxRetryAfter)),
		Budgets: []plannedBudget{}, End: p.end.document(), Advice: listed(p.advice), Warnings: listed(p.warnings),
	}
	for _, w := range firstWaits(x.Backoff, x.MaxAttempts-1, waitsInJSON) {
		doc.Waits = append(doc.Waits, w.document())
	}
	if !x.Deadline.IsZero() {
		doc.Deadline = new(instant(x.Deadline))
	}
	for _, b := range p.budgets {
		doc.Budgets = append(doc.Budgets, b.document())
	}
	if g := p.guard; g != nil {
		v := g.record.BreakerView()
		doc.Breaker = &breakerDocument{Budget: g.name, State: v.State.String(), Failures: v.Failures, RetryMS: ceilMS(v.Retry)}
	}
	return doc
}

func bounded(d time.Duration) *int64 {
	if d == unbounded {
		return nil
	}
	return new(ceilMS(d))
}

func (w wait) document() plannedWait {
	return plannedWait{ceilMS(w.computed), w.least.Milliseconds(), ceilMS(w.most)}
}

func (b *planned) document() plannedBudget {
	a := b.account.document()
	return plannedBudget{
		Name: a.Name, Origin: b.origin, Store: a.Store, Exists: a.Exists, Policy: filled(b.policy), Error: a.Error,
		Tokens: a.Tokens, Capacity: a.Capacity, Refill: a.Refill, Bonus: a.Bonus, NextTokenMS: a.NextTokenMS, Bound: b.bound(),
	}
}

func (e ended) document() plannedEnd {
	doc := plannedEnd{Attempts: e.attempts, Budget: filled(e.refused)}
	if !e.beyond {
		doc.Row, doc.Outcome, doc.Reason = new(e.Row), filled(string(e.Label)), filled(string(e.Reason))
	}
	return doc
}

func (p *plan) retried() []string {
	var names []string
	for _, c := range p.policy.RetryOn {
		names = append(names, string(c))
	}
	return listed(names)
}

func (p *plan) rows() []row {
	rows := []row{
		{"command", commandLine(p.redact.argv(p.command))},
		{"tool", p.toolWords()},
		{"effect", effectWords(p.effect, p.settings.effect != "", p.read)},
	}
	if p.effect == classify.EffectWrite && !p.settings.idempotent {
		rows = append(rows, row{"", "not declared idempotent: a failure after which it may have happened is ambiguous"})
	}
	rows = append(rows, row{"retried", orList(p.retried())}, row{"attempts", p.attemptWords()})
	rows = append(rows, p.waitRows()...)
	rows = append(rows, p.limitRows()...)
	for _, b := range p.budgets {
		rows = append(rows, b.planRows()...)
	}
	if len(p.budgets) == 0 {
		rows = append(rows, row{"budget", "none: retries are free"})
	}
	if g := p.guard; g != nil {
		rows = append(rows, row{"breaker", fmt.Sprintf("kept by budget %s: %s", g.name, breakerWords(g.record.BreakerView()))})
	}
	rows = append(rows, p.end.rows()...)
	for _, text := range p.advice {
		rows = append(rows, row{"advice", text})
	}
	return rows
}

func (p *plan) toolWords() string {
	text := printable(strings.TrimSpace(p.read.Tool + " " + p.read.Subcommand))
	if len(p.read.Argv) > 0 && !slices.Equal(p.read.Argv, p.command) {
		text += ", found behind " + printable(path.Base(p.command[0]))
	}
	return text
}

func (p *plan) attemptWords() string {
	text := fmt.Sprintf("%d at most", p.policy.MaxAttempts)
	if p.policy.Correct {
		text += fmt.Sprintf(", and %d more after corrections", p.policy.MaxCorrections)
	}
	return text
}

func (p *plan) waitRows() []row {
	b, retries := p.policy.Backoff, p.policy.MaxAttempts-1
	if retries == 0 {
		return []row{{"waits", "none, as nothing is retried"}}
	}
	computed, spread := []string{}, []string{}
	for _, w := range firstWaits(b, retries, waitsInWords) {
		computed = append(computed, shortDuration(w.computed))
		spread = append(spread, shortDuration(w.least)+" to "+shortDuration(w.most))
	}
	all := allWaits(b, retries)
	rows := []row{{"waits", series(computed, retries)}}
	withJitter := fmt.Sprintf("with %s jitter %s", b.Jitter, series(spread, retries))
	switch b.Jitter {
	case exec.JitterNone:
	case exec.JitterDecorrelated: // it does not know the computed delay
		rows = []row{{"waits", withJitter}}
	case exec.JitterFull, exec.JitterEqual:
		rows = append(rows, row{"", withJitter})
	}
	return append(rows,
		row{"", fmt.Sprintf("%s to %s in all", shortDuration(all.least), shortDuration(all.most))},
		row{"", "a longer wait that the failing side states is kept, up to " + shortDuration(p.policy.MaxRetryAfter)})
}

// series joins the first of n entries and leaves out those at the end that are
// like the one before.
func series(first []string, n int) string {
	for len(first) > 1 && first[len(first)-1] == first[len(first)-2] {
		first = first[:len(first)-1]
	}
	if len(first) < n {
		first = append(first, "and so on")
	}
	return strings.Join(first, ", ")
}

func (p *plan) limitRows() []row {
	x := p.policy
	attempt := "none for an attempt (--timeout)"
	if x.Timeout > 0 {
		attempt = fmt.Sprintf("%s an attempt, TERM then and KILL %s later", shortDuration(x.Timeout), shortDuration(x.KillAfter))
	}
	whole := "none for the whole (--max-elapsed, --deadline)"
	switch {
	case !x.Deadline.IsZero() && x.MaxElapsed > 0:
		whole = fmt.Sprintf("%s for the whole, and no later than %s", shortDuration(x.MaxElapsed), instant(x.Deadline))
	case !x.Deadline.IsZero():
		whole = "the whole ends by " + instant(x.Deadline)
	case x.MaxElapsed > 0:
		whole = shortDuration(x.MaxElapsed) + " for the whole"
	}
	rows := []row{{"limits", attempt}, {"", whole}, {"worst", p.worstWords()}}
	if len(p.settings.hooks) > 0 {
		rows = append(rows, row{"", fmt.Sprintf("and up to %s for each run of a hook", shortDuration(p.settings.hookTime))})
	}
	return rows
}

// worstWords says how long the whole takes at most, with and without a limit of
// an attempt.
func (p *plan) worstWords() string {
	x, left := p.policy, p.at.least()
	plain, stated := worstCase(x, left, 0), worstCase(x, left, x.MaxRetryAfter)
	if plain == unbounded {
		waits := allWaits(x.Backoff, x.MaxAttempts-1).most
		return fmt.Sprintf("unbounded, as an attempt may take any time; with --timeout T it is %d x (T + %s) + %s",
			x.MaxAttempts, shortDuration(x.KillAfter), shortDuration(waits))
	}
	text := shortDuration(plain)
	if stated > plain {
		text += fmt.Sprintf(", or %s if the failing side states every wait", shortDuration(stated))
	}
	if left == exec.NoCeiling {
		text += "; unbounded without --timeout"
	}
	return text
}

func (b *planned) planRows() []row {
	text := fmt.Sprintf("%s (%s): %s tokens", b.name, b.origin, b.holds())
	switch {
	case b.policy == budget.PolicyClosed:
		text = fmt.Sprintf("%s (%s): unavailable, so nothing is retried: %s", b.name, b.origin, b.err)
	case b.policy == budget.PolicyOpen:
		text = fmt.Sprintf("%s (%s): unavailable, so retries are free: %s", b.name, b.origin, b.err)
	case b.policy != "":
		text += fmt.Sprintf(", by policy %s: %s", b.policy, b.err)
	case b.err != nil:
		text += ": " + b.err.Error()
	case !b.found:
		text += ", no record yet"
	}
	rows := []row{{"budget", text}}
	if b.policy != budget.PolicyClosed && b.policy != budget.PolicyOpen {
		rows = append(rows, row{"", b.bound()})
	}
	return rows
}

// bound is boundOf, but that nobody resets the budget of a run.
func (b *planned) bound() string {
	if b.origin == runOrigin {
		return "in the whole run at most " + retries(b.record.Bucket.Params.Capacity)
	}
	return boundOf(b.record.Bucket.Params)
}

func (e ended) rows() []row {
	where := fmt.Sprintf("after attempt %d, if every attempt fails at once in the same transient way", e.attempts)
	switch {
	case e.beyond:
		return []row{{"ends", fmt.Sprintf("not within %d attempts that fail at once in the same transient way", e.attempts)}}
	case e.attempts == 0:
		where = "before the first attempt"
	}
	how := fmt.Sprintf("by row %d of the decision table: %s, %s", e.Row, e.Label, e.Reason)
	if e.refused != "" {
		how += fmt.Sprintf(" by budget %q after %s", e.refused, retries(max(0, e.attempts-1)))
	}
	return []row{{"ends", where}, {"", how}}
}
