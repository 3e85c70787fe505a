package budget

import (
	"context"
	"errors"
	"math/rand/v2"
)

// What a failed store does to retries is a policy. It is chosen when a budget's
// store first fails, and stays in force for that budget until the invocation
// ends, so that one invocation never counts in two places in turn.

// The policies for a store that fails.
const (
	PolicyClosed   = "closed"   // no retries
	PolicyLocal    = "local"    // a private bucket in memory
	PolicyOpen     = "open"     // retries are free
	PolicyFallback = "fallback" // the same name in the fallback store, at most 3 tokens
)

// fallbackTokens is the most a fallback account holds; inUseTokens is what a
// private bucket holds when a store that worked failed in use.
const (
	fallbackTokens = 3
	inUseTokens    = 1
)

// purse is one budget during one invocation.
type purse struct {
	account                   Account
	label                     string
	named                     bool
	change                    Change
	policy                    string  // "" until one acts
	instead                   Account // what pays then
	detail                    string  // why it acts
	memory                    *Record // policy local
	warned                    string  // the cause of the last warning
	balance                   Balance
	known                     bool
	granted, denied, refunded int
}

// charge takes one token from one budget.
func (l *Ledger) charge(ctx context.Context, p *purse) Refusal {
	if p.policy == "" {
		a, err := l.Store.Withdraw(ctx, p.account, rand.Uint64())
		if err == nil {
			l.note(p, a)
			return p.count(a.Granted)
		}
		if ctx.Err() != nil {
			p.detail = "interrupted"
			return Unavailable
		}
		l.fail(ctx, p, err)
	}
	switch p.policy {
	case PolicyOpen:
		return p.count(true)
	case PolicyLocal:
		p.memory.Advance(l.stamp())
		granted := p.memory.Withdraw()
		p.balance = p.memory.Balance()
		return p.count(granted)
	case PolicyFallback:
		a, err := l.Fallback.Withdraw(ctx, p.instead, rand.Uint64())
		if err == nil {
			l.note(p, a)
			return p.count(a.Granted)
		}
		p.policy, p.detail = PolicyClosed, p.detail+"; fallback: "+err.Error()
	}
	p.denied++
	return Unavailable
}

// fail puts the policy into force that fits a failed store.
func (l *Ledger) fail(ctx context.Context, p *purse, err error) {
	p.detail = err.Error()
	p.policy, p.instead = l.StandIn(p.account, p.named, err)
	if p.policy == PolicyLocal {
		m := NewRecord(p.instead.Params, l.stamp())
		p.memory, p.balance, p.known = &m, m.Balance(), true
	}
	l.warn(ctx, p, "withdraw", err)
}

// StandIn returns the policy that acts when the store has failed with err, and
// the account that pays then: under PolicyLocal one in memory, under
// PolicyFallback one in the fallback store. named is as in Member.
func (l *Ledger) StandIn(a Account, named bool, err error) (policy string, instead Account) {
	switch {
	case l.OnError != "":
		policy = l.OnError
	case l.Fallback != nil:
		policy = PolicyFallback
	case named:
		policy = PolicyClosed
	default:
		policy = PolicyLocal
	}
	switch {
	case policy == PolicyFallback:
		a.Params.Capacity = min(a.Params.Capacity, fallbackTokens)
		if a.Space == Named {
			a.Space = Fallbacks
		}
	case policy == PolicyLocal && !errors.Is(err, ErrUnusable):
		a.Params.Capacity = min(a.Params.Capacity, inUseTokens)
	}
	return policy, a
}

func (l *Ledger) refund(ctx context.Context, p *purse) {
	switch p.policy {
	case PolicyLocal:
		p.memory.Refund()
		p.balance = p.memory.Balance()
	case PolicyFallback:
		a, err := l.Fallback.Refund(ctx, p.instead, rand.Uint64())
		if err != nil {
			return
		}
		l.note(p, a)
	case "":
		a, err := l.Store.Refund(ctx, p.account, rand.Uint64())
		if err != nil {
			return
		}
		l.note(p, a)
	}
	p.refunded++
}

func (l *Ledger) kind(p *purse) string {
	switch p.policy {
	case PolicyLocal:
		return KindMemory
	case PolicyFallback:
		return l.Fallback.Kind()
	}
	return l.Store.Kind()
}

// stamp is the clock of buckets in memory.
func (l *Ledger) stamp() Stamp {
	return Stamp{Domain: 1, Boot: 1 + int64(l.Now().Sub(l.begun)), Wall: 1}
}

// assume takes the account for untouched, as a missing record is.
func (p *purse) assume() {
	r := NewRecord(p.account.Params, Stamp{})
	p.balance = r.Balance()
}

func (p *purse) count(granted bool) Refusal {
	if granted {
		p.granted++
		return NotRefused
	}
	p.denied++
	return Denied
}

func (p *purse) decision() Decision {
	return Decision{
		Budget: p.label, Tokens: p.balance.Tokens.Tokens(), Cap: float64(p.balance.Params.Capacity),
		Next: p.balance.Next, Policy: p.policy, Detail: p.detail,
	}
}
