package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The ledger obeys these rules:
//
//   - A retry is paid for by every budget or by none. Budgets are charged in the
//     order of their names; when one refuses, those charged before get their
//     token back. A crash in between loses a token and never mints one.
//   - A token is refunded at most once, and only for a retry that never started.
//   - The store is not touched before something has to be decided or written:
//     not at all before the first attempt, unless parameters, a run budget or a
//     breaker were asked for.
//   - A store that fails never stops a first attempt and never turns a success
//     into a failure. What it does to retries is the policy, and a policy that
//     has acted stays in force for that budget until the invocation ends.
//   - A breaker whose store fails counts as closed.
//   - A run pays from its record, whoever made it: an invocation that knows its
//     run only by id looks for one when a retry is to be paid, never before. One
//     that cannot be read counts as missing, with a warning; the budgets beside
//     it then meet the same store.

// Member is one budget that an invocation is subject to.
type Member struct {
	Name     string
	Named    bool   // by a flag, the environment, a config file, or as such by a parent
	Params   Params // what its record is made with, usually Defaults
	Explicit Change // parameters that the user gave, written before the first attempt
}

// RunBudget limits the retries of a whole run.
type RunBudget struct {
	ID       string // the run's id
	Capacity int    // retries for the run, counted by whoever comes first
	Existing bool   // pay only if somebody made the run's record; Capacity is ignored
}

// Ledger is what one invocation has to do with budgets. Fill in the exported
// fields, then call the methods from one goroutine. The zero value has no
// budgets and grants everything.
type Ledger struct {
	Store     Store
	Fallback  Store // for a store on the network; nil: none
	Members   []Member
	Run       *RunBudget
	OnError   string           // PolicyClosed, PolicyLocal, PolicyOpen; empty: by origin
	Rule      *BreakerRule     // nil: no breaker
	Now       func() time.Time // nil: time.Now; its monotonic reading is used
	Dice      func() float64   // nil: math/rand
	purses    []*purse         // in the order of their labels
	guard     *purse           // the one whose record keeps the breaker
	nonce     uint64           // names this invocation to the breaker
	permit    Permit           // the last answer of the breaker
	permitted bool             // permit is an answer that was given
	leased    bool             // the lease was taken for a retry that has not started
	probing   bool             // the breaker lets nobody but this invocation run
	breaker   BreakerView      // as last seen
	pending   []*purse         // charged for a retry that may still not start
	warnings  []string         // in the order of their appearance
	begun     time.Time        // when the ledger was first used
	settled   bool             // Settle was called
	foundRun  bool             // the record of a run that somebody else made is one of the purses
}

// Admit is called before the first attempt. It writes explicit parameters, makes
// the run budget, and asks the breaker, where it may take the lease of a probe.
// The answer is a refusal only when the breaker refuses.
func (l *Ledger) Admit(ctx context.Context) Decision {
	l.begin()
	for _, p := range l.purses {
		if p.account.Space != Runs && p.change.Empty() {
			continue
		}
		a, err := l.Store.Configure(ctx, p.account, p.change)
		if err != nil {
			l.warn(ctx, p, "write parameters", err)
			continue
		}
		l.note(p, a)
	}
	d := l.Recheck(ctx)
	l.leased = false // the lease is for the first attempt, not for a retry
	return d
}

// Withdraw decides about a retry: the breaker is asked, then every budget is
// charged one token. A refusal leaves every balance as it was.
func (l *Ledger) Withdraw(ctx context.Context) Decision {
	l.begin()
	l.pending, l.leased = nil, false
	if d := l.Recheck(ctx); !d.Granted {
		return d
	}
	l.findRun(ctx)
	for _, p := range l.purses {
		refusal := l.charge(ctx, p)
		if refusal == NotRefused {
			l.pending = append(l.pending, p)
			continue
		}
		d := p.decision()
		d.Refusal = refusal
		l.Refund(ctx)
		return d
	}
	return l.grant()
}

// Recheck asks only whether the breaker lets the retry run that was paid for
// before the wait. A refusal does not refund it: call Refund.
func (l *Ledger) Recheck(ctx context.Context) Decision {
	l.begin()
	l.probing = false
	if l.guard == nil || l.guard.policy != "" {
		return Decision{Granted: true}
	}
	a, err := l.Store.Ask(ctx, l.guard.account, *l.Rule, l.nonce)
	if err != nil {
		l.warn(ctx, l.guard, "ask breaker", err)
		return Decision{Granted: true}
	}
	l.note(l.guard, a)
	l.breaker = a.Breaker
	if !a.Permit.Granted {
		d := l.guard.decision()
		d.Refusal, d.Next = BreakerOpen, a.Permit.Retry
		return d
	}
	l.permit, l.permitted = a.Permit, true
	l.probing = a.Breaker.State == BreakerHalfOpen
	l.leased = l.leased || a.Permit.Leased
	return Decision{Granted: true}
}

// Refund gives back what the last granted Withdraw took, because its retry never
// started. Further calls do nothing until the next Withdraw.
func (l *Ledger) Refund(ctx context.Context) {
	for _, p := range l.pending {
		l.refund(ctx, p)
	}
	l.pending = nil
	if l.leased {
		l.release(ctx)
	}
}

// Settle is called once, when it is known how the invocation ended; further
// calls do nothing. It deposits the bonus and tells the breaker.
func (l *Ledger) Settle(ctx context.Context, how Settlement) {
	l.begin()
	if l.settled {
		return
	}
	l.settled = true
	for _, p := range l.purses {
		l.settle(ctx, p, how)
	}
}

// Statuses returns every budget as the invocation last saw it, by name.
func (l *Ledger) Statuses() []Status {
	l.begin()
	all := make([]Status, 0, len(l.purses))
	for _, p := range l.purses {
		all = append(all, Status{
			Name: p.label, Store: l.kind(p), Policy: p.policy, Known: p.known,
			Granted: p.granted, Denied: p.denied, Refunded: p.refunded,
			Tokens: p.balance.Tokens.Tokens(), Cap: float64(p.balance.Params.Capacity), Next: p.balance.Next,
		})
	}
	return all
}

// Breaker returns the breaker as last seen, nil when none was asked for or there
// is no budget to keep it.
func (l *Ledger) Breaker() *BreakerStatus {
	l.begin()
	if l.guard == nil {
		return nil
	}
	return &BreakerStatus{
		Budget: l.guard.label, State: l.breaker.State.String(),
		Failures: l.breaker.Failures, Retry: l.breaker.Retry,
	}
}

// Probing reports whether the attempt that was last asked for is the probe of the
// breaker: nobody else may run until it is known how that ended.
func (l *Ledger) Probing() bool { return l.probing }

// Warnings returns what went wrong so far, each thing once.
func (l *Ledger) Warnings() []string { return slices.Clone(l.warnings) }

// begin turns the exported fields into purses, the first time.
func (l *Ledger) begin() {
	if !l.begun.IsZero() {
		return
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Dice == nil {
		l.Dice = rand.Float64
	}
	if l.Store == nil {
		l.Store = Unusable(KindFile, errors.New("no store"))
	}
	l.begun, l.nonce = l.Now(), 1+rand.Uint64N(1<<63)
	for _, m := range l.Members {
		l.join(m)
	}
	if l.Rule != nil && len(l.purses) > 0 {
		l.guard = l.purses[max(0, slices.IndexFunc(l.purses, func(p *purse) bool { return p.named }))]
	}
	if l.Run != nil && !l.Run.Existing {
		l.purses = append(l.purses, l.runPurse(l.Run.Capacity))
	}
	for _, p := range l.purses {
		p.assume()
	}
	l.sort()
}

func (l *Ledger) sort() {
	slices.SortFunc(l.purses, func(a, b *purse) int { return cmp.Compare(a.label, b.label) })
}

func (l *Ledger) runPurse(capacity int) *purse {
	p := &purse{label: "run:" + l.Run.ID, named: true}
	p.account = Account{Space: Runs, Name: l.Run.ID, Params: Params{Capacity: capacity}}
	return p
}

// findRun joins the budget of a run that somebody else gave one. It looks again
// for every retry until there is one, as a sibling may have made it meanwhile.
func (l *Ledger) findRun(ctx context.Context) {
	if l.Run == nil || !l.Run.Existing || l.foundRun {
		return
	}
	p := l.runPurse(0)
	r, found, err := l.Store.Peek(ctx, p.account)
	switch {
	case err != nil && !errors.Is(err, ErrUnusable): // else the other budgets say so, if there are any
		l.warn(ctx, p, "look for it", err)
	case err == nil && found:
		p.account.Params, p.balance, p.known = r.Bucket.Params, r.Balance(), true
		l.purses, l.foundRun = append(l.purses, p), true
		l.sort()
	}
}

// join adds a member; one that is there already is only made more explicit.
func (l *Ledger) join(m Member) {
	for _, p := range l.purses {
		if p.label == m.Name {
			p.named = p.named || m.Named
			return
		}
	}
	params := m.Explicit.Apply(m.Params)
	p := &purse{label: m.Name, named: m.Named, change: m.Explicit}
	p.account = Account{Space: Named, Name: m.Name, Params: params}
	l.purses = append(l.purses, p)
}

// release gives the breaker's lease back.
func (l *Ledger) release(ctx context.Context) {
	l.leased = false
	s := Settling{Breaker: true, Release: true, Rule: *l.Rule, Result: l.result(false)}
	if a, err := l.Store.Settle(ctx, l.guard.account, s, rand.Uint64()); err == nil {
		l.note(l.guard, a)
		l.breaker = a.Breaker
	}
}

func (l *Ledger) settle(ctx context.Context, p *purse, how Settlement) {
	s := Settling{Bonus: how == Succeeded && p.account.Params.Bonus > 0}
	if p == l.guard && l.permitted && p.policy == "" {
		s.Breaker, s.Release = true, how == Ignored
		s.Rule, s.Result = *l.Rule, l.result(how == Failed)
	}
	switch {
	case p.policy == PolicyFallback && s.Bonus:
		if a, err := l.Fallback.Settle(ctx, p.instead, s, rand.Uint64()); err == nil {
			l.note(p, a)
		}
	case p.policy != "":
	case s.Bonus || s.Breaker:
		a, err := l.Store.Settle(ctx, p.account, s, rand.Uint64())
		if err != nil {
			l.lost(ctx, p, s, err)
			return
		}
		l.note(p, a)
		if p == l.guard {
			l.breaker = a.Breaker
		}
	case !p.known && l.Store.Kind() == KindFile:
		l.look(ctx, p)
	}
}

// lost reports a settling that did not happen; a bonus that came at a busy
// moment is dropped without a word.
func (l *Ledger) lost(ctx context.Context, p *purse, s Settling, err error) {
	switch {
	case s.Breaker && !s.Release:
		l.warn(ctx, p, "tell breaker", err)
	case errors.Is(err, ErrUnusable):
		l.warn(ctx, p, "deposit bonus", err)
	}
}

// look reads a balance for the outcome alone.
func (l *Ledger) look(ctx context.Context, p *purse) {
	r, found, err := l.Store.Peek(ctx, p.account)
	switch {
	case err != nil:
		l.warn(ctx, p, "read", err)
	case found:
		p.balance, p.known = r.Balance(), true
	default:
		p.assume()
		p.known = true
	}
}

func (l *Ledger) result(failed bool) Result {
	return Result{Failed: failed, Generation: l.permit.Generation, Nonce: l.nonce, Dice: l.Dice()}
}

// grant is the answer when everybody paid: it shows the emptiest budget.
func (l *Ledger) grant() Decision {
	d := Decision{Granted: true}
	for _, p := range l.purses {
		if p.policy == PolicyOpen {
			continue
		}
		if q := p.decision(); d.Budget == "" || q.Tokens < d.Tokens {
			d = q
		}
	}
	for _, p := range l.purses {
		if d.Policy == "" && p.policy != "" {
			d.Policy, d.Detail = p.policy, p.detail
		}
	}
	d.Granted = true
	return d
}

// note remembers what a store said.
func (l *Ledger) note(p *purse, a Answer) {
	p.balance, p.known = a.Balance, true
	if a.Damaged != "" {
		l.add(fmt.Sprintf("budget %q: record was damaged; restarted at 0 tokens, %s", p.label, a.Damaged))
	}
}

// warn reports a failed store: each cause once per budget, and once more when a
// policy acts on it.
func (l *Ledger) warn(ctx context.Context, p *purse, verb string, err error) {
	if ctx.Err() != nil || p.policy == "" && p.warned == err.Error() {
		return
	}
	p.warned = err.Error()
	text := fmt.Sprintf("budget %q: %s: %v", p.label, verb, err)
	switch p.policy {
	case PolicyClosed:
		text += "; no retries"
	case PolicyLocal:
		text += "; counting in memory"
	case PolicyOpen:
		text += "; retries are not counted"
	case PolicyFallback:
		text += "; using a local record"
	}
	l.add(text)
}

func (l *Ledger) add(text string) {
	if !slices.Contains(l.warnings, text) {
		l.warnings = append(l.warnings, text)
	}
}
