package cmd

// retryx plan: what a run would do, without running anything. It reads the same
// settings, asks the same code for waits and decisions, looks into the budgets
// and writes nothing.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// runOrigin is why a run budget pays.
const runOrigin = "the budget of the whole run"

func newPlanCommand(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan [flags] -- command [args...]",
		Short: "show what a run would do",
		Long: `Nothing is run and nothing is written. The answer says how the command is read,
which failures are retried, how long the waits are, how long the whole can take,
which budgets pay and what ends a run that fails again and again. It takes every
flag of a run.`,
		Example: `  retryx plan -- curl -fsS https://example.com/
  retryx plan -n 60 --delay 1s --multiplier 1 -- pg_isready
  retryx plan --timeout 30s --max-elapsed 2m --format json -- npm publish`,
		Args: cobra.ArbitraryArgs,
	}
	define(c.Flags(), table())
	c.Flags().SetInterspersed(false)
	format := addFormat(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		problems := format.problems()
		if len(args) == 0 {
			problems = append(problems, "plan: want a command: retryx plan -- curl -fsS URL")
		}
		p, err := newPlan(env, c.Flags(), args, problems)
		if err != nil {
			return err
		}
		warn(env.Stderr, p.warnings)
		if format.text == "json" {
			return printJSON(env.Stdout, p.document())
		}
		return printRows(env.Stdout, p.rows())
	}
	return c
}

// plan is what a run would do.
type plan struct {
	settings *settings
	policy   exec.Policy
	command  []string
	read     classify.Command
	effect   classify.Effect
	at       ceilings
	budgets  []planned // in the order in which they pay
	guard    *planned  // the one whose record keeps the breaker, if one was asked for
	end      ended
	advice   []string
	warnings []string
	redact   *redactor
}

// planned is a budget of the plan.
type planned struct {
	account
	origin string // why it pays
	policy string // its store fails, and this is what acts
}

// newPlan reads everything that a run would read. Its error names every problem,
// those included that the caller has found already.
func newPlan(env Env, flags *pflag.FlagSet, command []string, problems []string) (*plan, error) {
	vars, now := env.variables(), time.Now()
	s, conf, err := readTogether(vars, flags, now, problems)
	if err != nil {
		return nil, err
	}
	in := inherit(vars)
	in.bound(&s.policy)
	p := &plan{settings: s, policy: s.policy, command: command, read: classify.ReadWith(command, s.ruleFiles)}
	p.warnings = slices.Concat(conf.warnings, in.warnings)
	p.redact = newRedactor(env.Environ, p.read.SecretFlags, s.redact)
	p.redact.observe(p.command, p.read.Argv)
	p.read.Tool = p.redact.name(p.read.Tool)
	p.effect = classify.New(p.read, classify.Options{Effect: s.effect}).Effect()
	p.at = ceilings{exec.NoCeiling, exec.NoCeiling}
	if s.policy.MaxElapsed > 0 {
		p.at.elapsed = s.policy.MaxElapsed
	}
	if !s.policy.Deadline.IsZero() {
		p.at.deadline = s.policy.Deadline.Sub(now)
	}
	at := findPlaces(vars, s)
	members := memberOf(s, in, at, p.read.Tool)
	ledger := newLedger(s, conf, at, members)
	ledger.Run = runBudget(s, firstOf(s.runID, in.runID), in)
	p.peek(ledger, members)
	p.foresee(ledger.Rule, slices.Concat(in.cancelFiles, s.cancelFiles))
	p.advise()
	return p, nil
}

// peek looks into the budgets that would pay.
func (p *plan) peek(l *budget.Ledger, m membership) {
	for _, member := range l.Members {
		key := budget.Account{Space: budget.Named, Name: member.Name, Params: member.Explicit.Apply(member.Params)}
		b := planned{account: account{name: member.Name}, origin: originOf(member.Name, p.settings, m)}
		b.peek(l, key, member.Named)
		if b.policy == "" {
			b.record.Configure(member.Explicit) // as a run does before its first attempt
		}
		p.budgets = append(p.budgets, b)
	}
	if l.Rule != nil && len(p.budgets) > 0 {
		p.guard = new(p.budgets[0])
	}
	if l.Run == nil {
		return
	}
	key := budget.Account{Space: budget.Runs, Name: l.Run.ID, Params: budget.Params{Capacity: l.Run.Capacity}}
	run := planned{account: account{name: "run:" + l.Run.ID}, origin: runOrigin}
	if l.Run.ID == "" { // of a run that has not begun: nobody has that name
		run.name = "run"
	}
	run.peek(l, key, true)
	if l.Run.Existing && (!run.found || run.err != nil) { // nobody gave the run one
		return
	}
	p.budgets = append(p.budgets, run)
	slices.SortFunc(p.budgets, func(a, b planned) int { return cmp.Compare(a.name, b.name) })
}

// originOf says why a budget pays.
func originOf(name string, s *settings, m membership) string {
	switch {
	case slices.Contains(s.budgets, name) && slices.Contains(m.own, name):
		return "named"
	case slices.Contains(m.own, name):
		return "named after the tool, as none was named"
	}
	return "inherited from the retryx above"
}

// peek reads a balance. When the store fails it finds out which policy would
// act, as the ledger does on the first retry.
func (b *planned) peek(l *budget.Ledger, key budget.Account, named bool) {
	ctx := context.Background()
	b.kind = l.Store.Kind()
	b.record, b.found, b.err = l.Store.Peek(ctx, key)
	if b.err == nil || b.found {
		return
	}
	b.policy, key = l.StandIn(key, named, b.err)
	switch b.policy {
	case budget.PolicyLocal:
		b.kind, b.record = budget.KindMemory, budget.NewRecord(key.Params, budget.Stamp{})
	case budget.PolicyFallback:
		r, _, err := l.Fallback.Peek(ctx, key)
		if err != nil {
			b.policy = budget.PolicyClosed
			return
		}
		b.kind, b.record = l.Fallback.Kind(), r
	}
}

// foresee finds out what would end the run.
func (p *plan) foresee(breaker *budget.BreakerRule, cancelFiles []string) {
	s := exec.Snapshot{Point: exec.BeforeFirst, LeftElapsed: p.at.elapsed, LeftDeadline: p.at.deadline}
	if token := (news{watched: cancelFiles}).token(); token != nil {
		if _, set := token(); set {
			s.Cancelled = exec.CancelledByToken
		}
	}
	if p.guard != nil && p.guard.policy == "" {
		k := p.guard.record.Breaker
		k.Recent = slices.Clone(k.Recent)
		if !k.Ask(p.guard.record.Clock.Boot, *breaker, 1).Granted {
			s.Grant = &budget.Decision{Refusal: budget.BreakerOpen, Budget: p.guard.name}
		}
	}
	if d := exec.Decide(p.policy, s); d.Action != exec.Start {
		p.end = ended{Decision: d}
		return
	}
	payers := make([]payer, len(p.budgets))
	for i, b := range p.budgets {
		payers[i] = payer{label: b.name, record: b.record, policy: b.policy}
	}
	p.end = foresee(p.policy, p.at, payers)
}

// advise says what somebody who asks for this may not have thought of.
func (p *plan) advise() {
	policy := p.policy
	if p.at.least() != exec.NoCeiling {
		policy.MaxElapsed = max(1, p.at.least())
	}
	for _, b := range p.budgets {
		params := b.record.Bucket.Params
		if b.policy == budget.PolicyOpen || b.policy == budget.PolicyClosed || b.origin == runOrigin {
			continue
		}
		if text := unpayable(policy, params, float64(params.Capacity)); text != "" {
			p.advice = append(p.advice, fmt.Sprintf("budget %q: %s", b.name, text))
		}
	}
	if b := p.settings.change.Bonus; b != nil && *b > bonusWarned {
		p.advice = append(p.advice, fmt.Sprintf("a bonus of %s allows that much extra load for good; 0.25 is plenty", b))
	}
}
