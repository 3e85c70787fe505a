package budget_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/retryx/retryx/budget"
)

// memStore is the smallest store: the rules of Record over a map. It logs calls
// and fails on demand.
type memStore struct {
	kind    string
	records map[string]*budget.Record
	now     budget.Stamp
	calls   []string
	fail    map[string]error // "withdraw a" or "withdraw" or "" for all
	damaged map[string]bool
	after   func(call string) // called after each call
}

func newMemStore() *memStore {
	return &memStore{
		kind: budget.KindFile, records: map[string]*budget.Record{}, fail: map[string]error{}, damaged: map[string]bool{},
		now: budget.Stamp{Domain: 1, Boot: second, Wall: epoch},
	}
}

// with makes records that hold the given tokens of 20, without refill.
func (m *memStore) with(tokens map[string]int) *memStore {
	for name, n := range tokens {
		r := budget.NewRecord(budget.Params{Capacity: 20, Bonus: budget.Token / 10}, m.now)
		r.Bucket.Tokens = budget.Micro(n) * budget.Token
		m.records[name] = &r
	}
	return m
}

func key(a budget.Account) string {
	return map[budget.Space]string{budget.Named: "", budget.Runs: "run/", budget.Fallbacks: "fallback/"}[a.Space] + a.Name
}

func (m *memStore) do(verb string, a budget.Account, decide func(*budget.Record) bool) (budget.Answer, error) {
	call := verb + " " + key(a)
	m.calls = append(m.calls, call)
	if m.after != nil {
		defer m.after(call)
	}
	for _, k := range []string{call, verb, ""} {
		if err := m.fail[k]; err != nil {
			return budget.Answer{}, err
		}
	}
	r := m.records[key(a)]
	made := r == nil
	if made {
		fresh := budget.NewRecord(a.Params, m.now)
		r = &fresh
	}
	r.Advance(m.now)
	if decide(r) && made {
		m.records[key(a)] = r
	}
	answer := budget.Answer{Balance: r.Balance(), Breaker: r.BreakerView()}
	if m.damaged[key(a)] {
		answer.Damaged = "its bytes are kept in x.corrupt"
	}
	return answer, nil
}

func (m *memStore) Kind() string { return m.kind }

func (m *memStore) Withdraw(ctx context.Context, a budget.Account, _ uint64) (budget.Answer, error) {
	if ctx.Err() != nil {
		return budget.Answer{}, ctx.Err()
	}
	granted := false
	answer, err := m.do("withdraw", a, func(r *budget.Record) bool { granted = r.Withdraw(); return true })
	answer.Granted = granted
	return answer, err
}

func (m *memStore) Refund(_ context.Context, a budget.Account, _ uint64) (budget.Answer, error) {
	return m.do("refund", a, func(r *budget.Record) bool { r.Refund(); return true })
}

func (m *memStore) Configure(_ context.Context, a budget.Account, c budget.Change) (budget.Answer, error) {
	return m.do("configure", a, func(r *budget.Record) bool { r.Configure(c); return true })
}

func (m *memStore) Ask(_ context.Context, a budget.Account, rule budget.BreakerRule, nonce uint64) (budget.Answer, error) {
	var p budget.Permit
	answer, err := m.do("ask", a, func(r *budget.Record) bool { p = r.Breaker.Ask(r.Clock.Boot, rule, nonce); return true })
	answer.Permit, answer.Granted = p, p.Granted
	return answer, err
}

func (m *memStore) Settle(_ context.Context, a budget.Account, s budget.Settling, _ uint64) (budget.Answer, error) {
	verb := "settle"
	if s.Release {
		verb = "release"
	}
	return m.do(verb, a, func(r *budget.Record) bool {
		if s.Bonus {
			r.Deposit()
		}
		if s.Breaker && s.Release {
			r.Breaker.Release(s.Result.Nonce)
		} else if s.Breaker {
			r.Breaker.Record(r.Clock.Boot, s.Rule, s.Result)
		}
		return true
	})
}

func (m *memStore) Peek(_ context.Context, a budget.Account) (budget.Record, bool, error) {
	var copied budget.Record
	_, err := m.do("peek", a, func(r *budget.Record) bool { copied = *r; return false })
	return copied, m.records[key(a)] != nil, err
}

func (m *memStore) List(context.Context, budget.Space) ([]string, error) { return nil, nil }
func (m *memStore) Reset(context.Context, budget.Account) error          { return nil }

// took empties the log and returns it.
func (m *memStore) took() []string {
	calls := m.calls
	m.calls = nil
	return calls
}

// tokens returns what the named accounts hold.
func (m *memStore) tokens(names ...string) string {
	var all []string
	for _, name := range names {
		if r := m.records[name]; r != nil {
			all = append(all, fmt.Sprintf("%s=%s", name, r.Bucket.Tokens))
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}
