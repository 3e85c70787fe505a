package budget_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
)

var errDisk = errors.New("no space left on device")

func members(names ...string) []budget.Member {
	var all []budget.Member
	for _, name := range names {
		all = append(all, budget.Member{Name: name, Named: true, Params: budget.Defaults()})
	}
	return all
}

func TestLedgerWithoutBudgetsGrantsEverything(t *testing.T) {
	var l budget.Ledger
	ctx := t.Context()
	for _, d := range []budget.Decision{l.Admit(ctx), l.Withdraw(ctx), l.Recheck(ctx), l.Withdraw(ctx)} {
		if d != (budget.Decision{Granted: true}) {
			t.Errorf("decision without budgets = %+v, want granted and nothing else", d)
		}
	}
	l.Refund(ctx)
	l.Settle(ctx, budget.Succeeded)
	if got := l.Statuses(); len(got) != 0 || got == nil {
		t.Errorf("Statuses() = %#v, want an empty list", got)
	}
	if got := l.Breaker(); got != nil {
		t.Errorf("Breaker() = %+v, want nil", got)
	}
}

// Admission costs nothing unless something was asked for, and a success costs one
// settling.
func TestLedgerTouchesTheStoreLate(t *testing.T) {
	m := newMemStore()
	l := budget.Ledger{Store: m, Members: members("a")}
	l.Admit(t.Context())
	if got := m.took(); got != nil {
		t.Errorf("Admit() without parameters called %q, want nothing", got)
	}
	l.Settle(t.Context(), budget.Succeeded)
	l.Settle(t.Context(), budget.Succeeded)
	if got, want := m.took(), []string{"settle a"}; !cmp.Equal(got, want) {
		t.Errorf("two Settle(Succeeded) called %q, want %q", got, want)
	}
}

// Property 7 and 11: the bonus is deposited once, and only by a success that has
// not been paid for by somebody else.
func TestLedgerBonus(t *testing.T) {
	for how, want := range map[budget.Settlement]string{
		budget.Succeeded: "[a=5.1]", budget.Unpaid: "[a=5]", budget.Failed: "[a=5]", budget.Ignored: "[a=5]",
	} {
		m := newMemStore().with(map[string]int{"a": 5})
		l := budget.Ledger{Store: m, Members: members("a")}
		l.Admit(t.Context())
		l.Settle(t.Context(), how)
		l.Settle(t.Context(), budget.Succeeded)
		if got := m.tokens("a"); got != want {
			t.Errorf("after Settle(%d) %s, want %s", how, got, want)
		}
		if s := l.Statuses()[0]; !s.Known {
			t.Errorf("after Settle(%d) the balance is unknown, want it read", how)
		}
	}
}

// All pay or none does; charges are in the order of names.
func TestLedgerAllOrNone(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 3, "b": 0, "c": 3})
	l := budget.Ledger{Store: m, Members: members("c", "a", "b")}
	d := l.Withdraw(t.Context())
	want := budget.Decision{Refusal: budget.Denied, Budget: "b", Cap: 20, Next: -1}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("Withdraw() (-want +got):\n%s", diff)
	}
	if got, want := m.took(), []string{"withdraw a", "withdraw b", "refund a"}; !cmp.Equal(got, want) {
		t.Errorf("calls = %q, want %q", got, want)
	}
	if got, want := m.tokens("a", "b", "c"), "[a=3 b=0 c=3]"; got != want {
		t.Errorf("balances = %s, want %s", got, want)
	}
}

func TestLedgerGrantShowsTheEmptiest(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 9, "b": 4})
	l := budget.Ledger{Store: m, Members: members("a", "b")}
	want := budget.Decision{Granted: true, Budget: "b", Tokens: 3, Cap: 20}
	if diff := cmp.Diff(want, l.Withdraw(t.Context())); diff != "" {
		t.Errorf("Withdraw() (-want +got):\n%s", diff)
	}
	statuses := []budget.Status{
		{Name: "a", Store: "file", Granted: 1, Tokens: 8, Cap: 20, Known: true},
		{Name: "b", Store: "file", Granted: 1, Tokens: 3, Cap: 20, Known: true},
	}
	if diff := cmp.Diff(statuses, l.Statuses()); diff != "" {
		t.Errorf("Statuses() (-want +got):\n%s", diff)
	}
}

// Property 10 and 24: a refund gives back once what one withdrawal took.
func TestLedgerRefundsOnce(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 3})
	l := budget.Ledger{Store: m, Members: members("a")}
	ctx := t.Context()
	l.Refund(ctx)
	l.Withdraw(ctx)
	l.Withdraw(ctx)
	l.Refund(ctx)
	l.Refund(ctx)
	if got, want := m.tokens("a"), "[a=2]"; got != want {
		t.Errorf("after two withdrawals and refunds %s, want %s", got, want)
	}
	if s := l.Statuses()[0]; s.Granted != 2 || s.Refunded != 1 {
		t.Errorf("status = %+v, want 2 granted, 1 refunded", s)
	}
}

// Explicit parameters, and only those, are written before the first attempt.
func TestLedgerWritesExplicitParameters(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 10})
	capacity := 4
	l := budget.Ledger{Store: m, Members: []budget.Member{
		{Name: "a", Params: budget.Defaults(), Explicit: budget.Change{Capacity: &capacity}},
		{Name: "b", Params: budget.Defaults()},
	}}
	l.Admit(t.Context())
	if got, want := m.took(), []string{"configure a"}; !cmp.Equal(got, want) {
		t.Errorf("Admit() called %q, want %q", got, want)
	}
	if got, want := m.records["a"].Bucket.Params, (budget.Params{Capacity: 4, Bonus: budget.Token / 10}); got != want {
		t.Errorf("parameters = %+v, want %+v", got, want)
	}
}

// The first capacity of a run stays, and a run budget is one more that must grant.
func TestLedgerRunBudget(t *testing.T) {
	m := newMemStore()
	ctx := t.Context()
	first := budget.Ledger{Store: m, Members: members("a"), Run: &budget.RunBudget{ID: "01J", Capacity: 2}}
	first.Admit(ctx)
	second := budget.Ledger{Store: m, Members: members("a"), Run: &budget.RunBudget{ID: "01J", Capacity: 50}}
	second.Admit(ctx)
	granted := 0
	for second.Withdraw(ctx).Granted {
		granted++
	}
	if granted != 2 {
		t.Errorf("the run paid for %d retries, want 2", granted)
	}
	d := first.Withdraw(ctx)
	if d.Granted || d.Budget != "run:01J" || d.Next >= 0 {
		t.Errorf("Withdraw() = %+v, want refused by run:01J for good", d)
	}
	if got, want := m.tokens("a"), "[a=18]"; got != want {
		t.Errorf("balance = %s, want %s: refusals by the run cost the others nothing", got, want)
	}
}

// A budget that is named twice is charged once.
func TestLedgerMergesMembers(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 3})
	l := budget.Ledger{Store: m, Members: members("a", "a")}
	l.Withdraw(t.Context())
	if got, want := m.tokens("a"), "[a=2]"; got != want {
		t.Errorf("balance = %s, want %s", got, want)
	}
}

func TestLedgerPolicies(t *testing.T) {
	unusable := budget.MarkUnusable(errDisk)
	tests := []struct {
		name    string
		named   bool
		onError string
		err     error
		policy  string
		grants  int // of 30 withdrawals
		refusal budget.Refusal
	}{
		{"named", true, "", errDisk, "closed", 0, budget.Unavailable},
		{"named, place unusable", true, "", unusable, "closed", 0, budget.Unavailable},
		{"implicit", false, "", errDisk, "local", 1, budget.Denied},
		{"implicit, place unusable", false, "", unusable, "local", 20, budget.Denied},
		{"named, told local", true, "local", unusable, "local", 20, budget.Denied},
		{"implicit, told closed", false, "closed", errDisk, "closed", 0, budget.Unavailable},
		{"told open", true, "open", errDisk, "open", 30, budget.NotRefused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemStore()
			m.fail["withdraw"] = tt.err
			start := time.Now()
			l := budget.Ledger{
				Store: m, OnError: tt.onError, Now: func() time.Time { return start },
				Members: []budget.Member{{Name: "a", Named: tt.named, Params: budget.Defaults()}},
			}
			if d := l.Admit(t.Context()); !d.Granted {
				t.Errorf("Admit() = %+v, want granted: a store never refuses a first attempt", d)
			}
			grants, last := 0, budget.NotRefused
			for range 30 {
				d := l.Withdraw(t.Context())
				if d.Policy != tt.policy || !strings.Contains(d.Detail, "no space") {
					t.Fatalf("Withdraw() = %+v, want policy %s and why", d, tt.policy)
				}
				if d.Granted {
					grants++
				}
				last = d.Refusal
			}
			if grants != tt.grants || last != tt.refusal {
				t.Errorf("%d grants, then refusal %d, want %d and %d", grants, last, tt.grants, tt.refusal)
			}
			if got := len(m.took()); got != 1 {
				t.Errorf("the store was called %d times, want once: the policy stays", got)
			}
			if s := l.Statuses()[0]; s.Policy != tt.policy || (s.Store == "memory") != (tt.policy == "local") {
				t.Errorf("status = %+v, want policy %s", s, tt.policy)
			}
			if got := l.Warnings(); len(got) != 1 || !strings.Contains(got[0], `budget "a"`) {
				t.Errorf("Warnings() = %q, want one about budget a", got)
			}
		})
	}
}

// A private bucket refills like the one it stands in for, and takes refunds.
func TestLedgerLocalBucket(t *testing.T) {
	m := newMemStore()
	m.fail[""] = errDisk
	now := time.Now()
	l := budget.Ledger{
		Store: m, OnError: budget.PolicyLocal, Now: func() time.Time { return now },
		Members: members("a"),
	}
	ctx := t.Context()
	if !l.Withdraw(ctx).Granted || l.Withdraw(ctx).Granted {
		t.Error("in use a private bucket does not pay exactly once")
	}
	now = now.Add(10 * time.Second)
	if !l.Withdraw(ctx).Granted {
		t.Error("after ten seconds at 0.1/s it does not pay")
	}
	l.Refund(ctx)
	if !l.Withdraw(ctx).Granted {
		t.Error("after a refund it does not pay")
	}
}

// A network store that cannot be reached is stood in for by three tokens of a
// local record; when they are gone retries are refused, and when it fails too.
func TestLedgerFallback(t *testing.T) {
	ctx := t.Context()
	shared, local := newMemStore(), newMemStore()
	shared.kind = budget.KindRedis
	shared.fail[""] = errors.New("connection refused")
	ledger := func(onError string) *budget.Ledger {
		return &budget.Ledger{Store: shared, Fallback: local, OnError: onError, Members: members("a")}
	}
	granted := 0
	for range 4 {
		l := ledger("")
		l.Admit(ctx)
		if d := l.Withdraw(ctx); d.Granted {
			granted++
		} else if d.Refusal != budget.Denied || d.Policy != "fallback" || d.Cap != 3 {
			t.Errorf("Withdraw() = %+v, want denied by the fallback of 3", d)
		}
	}
	if granted != 3 {
		t.Errorf("four invocations were granted %d retries, want 3", granted)
	}
	if local.records["a"] != nil || local.records["fallback/a"] == nil {
		t.Errorf("the fallback used %s, want an account apart", local.tokens("a", "fallback/a"))
	}
	if d := ledger("closed").Withdraw(ctx); d.Refusal != budget.Unavailable || d.Policy != "closed" {
		t.Errorf("Withdraw() told closed = %+v, want unavailable", d)
	}
	local.fail[""] = errDisk
	l := ledger("")
	if d := l.Withdraw(ctx); d.Refusal != budget.Unavailable || d.Policy != "closed" || !strings.Contains(d.Detail, "refused; fallback: no space") {
		t.Errorf("Withdraw() with both broken = %+v, want unavailable and why", d)
	}
}

// An end of the context is no failure of the store: nothing is decided for the
// rest, and what was charged is given back.
func TestLedgerInterrupted(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 3, "b": 3})
	ctx, cancel := context.WithCancel(t.Context())
	m.after = func(call string) {
		if call == "withdraw a" {
			cancel()
		}
	}
	l := budget.Ledger{Store: m, OnError: budget.PolicyOpen, Members: members("a", "b")}
	if d := l.Withdraw(ctx); d.Granted || d.Refusal != budget.Unavailable || d.Policy != "" {
		t.Errorf("Withdraw() interrupted = %+v, want unavailable without a policy", d)
	}
	if got, want := m.tokens("a", "b"), "[a=3 b=3]"; got != want {
		t.Errorf("balances = %s, want %s", got, want)
	}
	if got := l.Warnings(); len(got) != 0 {
		t.Errorf("Warnings() = %q, want none", got)
	}
}

// A store that breaks between charge and refund loses a token and mints none.
func TestLedgerRefundThatFails(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 3, "b": 0})
	m.fail["refund"] = errDisk
	l := budget.Ledger{Store: m, Members: members("a", "b")}
	l.Withdraw(t.Context())
	if got, want := m.tokens("a"), "[a=2]"; got != want {
		t.Errorf("balance = %s, want %s", got, want)
	}
	if s := l.Statuses()[0]; s.Granted != 1 || s.Refunded != 0 {
		t.Errorf("status = %+v, want 1 granted and none refunded", s)
	}
}

func TestLedgerWarnsOfDamage(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 3})
	m.damaged["a"] = true
	l := budget.Ledger{Store: m, Members: members("a")}
	l.Withdraw(t.Context())
	l.Withdraw(t.Context())
	want := []string{`budget "a": record was damaged; restarted at 0 tokens, its bytes are kept in x.corrupt`}
	if diff := cmp.Diff(want, l.Warnings()); diff != "" {
		t.Errorf("Warnings() (-want +got):\n%s", diff)
	}
}

// A success on a broken default store is a warning and nothing else; a bonus that
// came at a busy moment is dropped without a word.
func TestLedgerSettleOnABrokenStore(t *testing.T) {
	for err, want := range map[error]int{budget.MarkUnusable(errDisk): 1, errDisk: 0} {
		m := newMemStore()
		m.fail["settle"] = err
		l := budget.Ledger{Store: m, Members: members("a")}
		l.Settle(t.Context(), budget.Succeeded)
		if got := l.Warnings(); len(got) != want {
			t.Errorf("Warnings() after %v = %q, want %d", err, got, want)
		}
	}
}

// tripped returns a store whose budget "b" has an open breaker.
func tripped(t *testing.T) *memStore {
	t.Helper()
	m := newMemStore().with(map[string]int{"a": 9, "b": 9})
	for range 5 {
		l := withBreaker(m)
		l.Admit(t.Context())
		l.Settle(t.Context(), budget.Failed)
	}
	m.took()
	return m
}

func withBreaker(m *memStore) *budget.Ledger {
	r := rule
	all := members("b", "a")
	all = append([]budget.Member{{Name: "0", Params: budget.Defaults()}}, all...)
	return &budget.Ledger{Store: m, Rule: &r, Members: all, Dice: func() float64 { return 0.5 }}
}

// The breaker lives in the record of the first budget that was named.
func TestLedgerBreakerRefusesFirstAttempts(t *testing.T) {
	m := tripped(t)
	l := withBreaker(m)
	want := budget.Decision{Refusal: budget.BreakerOpen, Budget: "b", Tokens: 9, Cap: 20, Next: 30 * time.Second}
	if diff := cmp.Diff(want, l.Admit(t.Context())); diff != "" {
		t.Errorf("Admit() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&budget.BreakerStatus{Budget: "b", State: "open", Failures: 5, Retry: 30 * time.Second}, l.Breaker()); diff != "" {
		t.Errorf("Breaker() (-want +got):\n%s", diff)
	}
	l.Settle(t.Context(), budget.Ignored)
	if b := m.records["b"].Breaker; b.Failures != 5 || b.State != budget.BreakerIsOpen {
		t.Errorf("a refused invocation left %+v, want it uncounted", b)
	}
}

// Property 40: one probe; its retry pays like any other; its success closes.
func TestLedgerProbe(t *testing.T) {
	ctx := t.Context()
	m := tripped(t)
	m.now.Boot += 30 * second
	probe, other := withBreaker(m), withBreaker(m)
	if d := probe.Admit(ctx); !d.Granted {
		t.Fatalf("Admit() of the probe = %+v, want granted", d)
	}
	if d := other.Admit(ctx); d.Refusal != budget.BreakerOpen {
		t.Errorf("Admit() of another = %+v, want refused", d)
	}
	if !probe.Probing() || other.Probing() {
		t.Errorf("Probing() = %t of the probe, %t of another, want true, false", probe.Probing(), other.Probing())
	}
	if d := probe.Withdraw(ctx); !d.Granted {
		t.Errorf("Withdraw() of the probe = %+v, want granted", d)
	}
	if d := probe.Recheck(ctx); !d.Granted {
		t.Errorf("Recheck() of the probe = %+v, want granted", d)
	}
	probe.Settle(ctx, budget.Succeeded)
	if got := probe.Breaker().State; got != "closed" {
		t.Errorf("after the probe's success it is %s, want closed", got)
	}
	if d := other.Admit(ctx); !d.Granted || other.Probing() {
		t.Errorf("Admit() when it is closed = %+v, Probing() = %t, want granted, false", d, other.Probing())
	}
}

// A cancelled probe gives its lease back at once.
func TestLedgerCancelledProbe(t *testing.T) {
	ctx := t.Context()
	m := tripped(t)
	m.now.Boot += 30 * second
	probe := withBreaker(m)
	probe.Admit(ctx)
	probe.Settle(ctx, budget.Ignored)
	if b := m.records["b"].Breaker; b.State != budget.BreakerHalfOpen || b.Holder != 0 {
		t.Errorf("after a cancelled probe the breaker is %+v, want half-open and free", b)
	}
	if d := withBreaker(m).Admit(ctx); !d.Granted {
		t.Errorf("Admit() after a cancelled probe = %+v, want the next probe", d)
	}
}

// Row 13 before row 14: an open breaker refuses a retry before it is paid for, and
// one that opens during the wait takes nothing either.
func TestLedgerBreakerOpensMeanwhile(t *testing.T) {
	ctx := t.Context()
	m := newMemStore().with(map[string]int{"a": 9, "b": 9})
	l := withBreaker(m)
	l.Admit(ctx)
	if d := l.Withdraw(ctx); !d.Granted {
		t.Fatalf("Withdraw() = %+v, want granted", d)
	}
	for range 5 {
		other := withBreaker(m)
		other.Admit(ctx)
		other.Settle(ctx, budget.Failed)
	}
	if d := l.Recheck(ctx); d.Refusal != budget.BreakerOpen {
		t.Errorf("Recheck() = %+v, want refused by the breaker", d)
	}
	l.Refund(ctx)
	if d := l.Withdraw(ctx); d.Refusal != budget.BreakerOpen {
		t.Errorf("Withdraw() = %+v, want refused by the breaker", d)
	}
	if got, want := m.tokens("a", "b"), "[a=9 b=9]"; got != want {
		t.Errorf("balances = %s, want %s", got, want)
	}
	l.Settle(ctx, budget.Failed)
	if got := m.records["b"].Breaker.Failures; got != 5 {
		t.Errorf("a late failure counted: %d in a row, want 5", got)
	}
}

// A retry that became the probe and was then refused a token gives the lease back.
func TestLedgerRefusedProbeReleases(t *testing.T) {
	ctx := t.Context()
	m := tripped(t)
	l := withBreaker(m)
	l.Admit(ctx)
	m.now.Boot += 30 * second
	m.records["a"].Bucket.Tokens = 0
	if d := l.Withdraw(ctx); d.Refusal != budget.Denied || d.Budget != "a" {
		t.Fatalf("Withdraw() = %+v, want denied by a", d)
	}
	if b := m.records["b"].Breaker; b.State != budget.BreakerHalfOpen || b.Holder != 0 {
		t.Errorf("the breaker is %+v, want half-open and free", b)
	}
	l.Settle(ctx, budget.Failed)
	if b := m.records["b"].Breaker; b.State != budget.BreakerHalfOpen {
		t.Errorf("after the failure without a probe it is %v, want half-open", b.State)
	}
}

// A retry that became the probe, was asked about again after its wait and never
// started gives the lease back.
func TestLedgerUnstartedProbeReleases(t *testing.T) {
	ctx := t.Context()
	m := tripped(t)
	l := withBreaker(m)
	l.Admit(ctx)
	m.now.Boot += 30 * second
	if d := l.Withdraw(ctx); !d.Granted {
		t.Fatalf("Withdraw() = %+v, want the probe's permit", d)
	}
	if d := l.Recheck(ctx); !d.Granted {
		t.Fatalf("Recheck() of the probe = %+v, want granted", d)
	}
	l.Refund(ctx)
	if b := m.records["b"].Breaker; b.State != budget.BreakerHalfOpen || b.Holder != 0 {
		t.Errorf("after Refund() the breaker is %+v, want half-open and free", b)
	}
	if d := withBreaker(m).Admit(ctx); !d.Granted {
		t.Errorf("Admit() of another = %+v, want the next probe", d)
	}
}

// The lease that Admit took is the first attempt's: no refund of a retry gives
// it back, neither one that has nothing to give back nor that of a retry that
// the probe paid for and did not start.
func TestLedgerRefundKeepsTheFirstAttemptsLease(t *testing.T) {
	ctx := t.Context()
	m := tripped(t)
	m.now.Boot += 30 * second
	l := withBreaker(m)
	if d := l.Admit(ctx); !d.Granted {
		t.Fatalf("Admit() of the probe = %+v, want granted", d)
	}
	for _, step := range []string{"before any withdrawal", "after a withdrawal"} {
		l.Refund(ctx)
		if b := m.records["b"].Breaker; b.Holder == 0 {
			t.Errorf("Refund() %s left %+v, want the lease with the probe", step, b)
		}
		if d := withBreaker(m).Admit(ctx); d.Refusal != budget.BreakerOpen {
			t.Errorf("Admit() of another %s = %+v, want refused", step, d)
		}
		l.Withdraw(ctx)
	}
}

// Property 46: a breaker whose store fails is closed.
func TestLedgerBreakerStoreFails(t *testing.T) {
	m := tripped(t)
	m.fail[""] = errDisk
	l := withBreaker(m)
	if d := l.Admit(t.Context()); !d.Granted {
		t.Errorf("Admit() = %+v, want granted", d)
	}
	l.Recheck(t.Context())
	l.Settle(t.Context(), budget.Failed)
	if got := l.Breaker().State; got != "closed" {
		t.Errorf("Breaker() = %s, want closed", got)
	}
	want := []string{`budget "b": ask breaker: no space left on device`, `budget "0": read: no space left on device`, `budget "a": read: no space left on device`}
	if diff := cmp.Diff(want, l.Warnings()); diff != "" {
		t.Errorf("Warnings() are not one per budget (-want +got):\n%s", diff)
	}
}

// Whatever the order of calls and failures, no balance ever exceeds what the
// others left: a refusal and a refund restore, a failure only loses.
func TestLedgerNeverMints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemStore().with(map[string]int{"a": 5, "b": 3, "c": 7})
		total := map[string]budget.Micro{"a": 5 * budget.Token, "b": 3 * budget.Token, "c": 7 * budget.Token}
		for range rapid.IntRange(1, 8).Draw(t, "invocations") {
			l := budget.Ledger{Store: m, Members: members("a", "b", "c"), OnError: rapid.SampledFrom([]string{"", "closed", "local", "open"}).Draw(t, "policy")}
			l.Admit(t.Context())
			started := 0
			for range rapid.IntRange(0, 4).Draw(t, "retries") {
				broken := rapid.SampledFrom([]string{"", "withdraw a", "withdraw b", "refund a", "refund"}).Draw(t, "broken")
				clear(m.fail)
				if broken != "" {
					m.fail[broken] = errDisk
				}
				if !l.Withdraw(t.Context()).Granted {
					continue
				}
				if rapid.Bool().Draw(t, "starts") {
					started++
				} else {
					l.Refund(t.Context())
				}
			}
			clear(m.fail)
			for _, s := range l.Statuses() {
				paid := budget.Micro(s.Granted-s.Refunded) * budget.Token
				if s.Policy == "" && m.records[s.Name].Bucket.Tokens > total[s.Name]-paid {
					t.Fatalf("budget %s holds %s, want at most %s", s.Name, m.records[s.Name].Bucket.Tokens, total[s.Name]-paid)
				}
				if s.Policy == "" && s.Granted-s.Refunded < started {
					t.Fatalf("budget %s paid for %d retries of %d", s.Name, s.Granted-s.Refunded, started)
				}
				total[s.Name] = m.records[s.Name].Bucket.Tokens
			}
		}
	})
}

// A run that somebody gave a budget pays from it, also where only its id is
// known; the record is looked for when a retry is to be paid, not before.
func TestLedgerPaysFromAnExistingRun(t *testing.T) {
	m := newMemStore().with(map[string]int{"a": 9})
	known := func() *budget.Ledger {
		return &budget.Ledger{Store: m, Members: members("a"), Run: &budget.RunBudget{ID: "01J", Existing: true}}
	}
	early := known()
	early.Admit(t.Context())
	if d := early.Withdraw(t.Context()); !d.Granted || d.Budget != "a" {
		t.Errorf("Withdraw() without a run's record = %+v, want granted by a", d)
	}
	if got, want := m.took(), []string{"peek run/01J", "withdraw a"}; !cmp.Equal(got, want) {
		t.Errorf("calls = %q, want %q", got, want)
	}
	first := budget.Ledger{Store: m, Members: members("a"), Run: &budget.RunBudget{ID: "01J", Capacity: 2}}
	first.Admit(t.Context())
	m.took()
	if d := early.Withdraw(t.Context()); !d.Granted || d.Budget != "run:01J" || d.Tokens != 1 || d.Cap != 2 {
		t.Errorf("Withdraw() from the run's record = %+v, want 1 of 2 tokens of run:01J", d)
	}
	if got, want := m.took(), []string{"peek run/01J", "withdraw a", "withdraw run/01J"}; !cmp.Equal(got, want) {
		t.Errorf("calls = %q, want %q", got, want)
	}
	early.Withdraw(t.Context())
	if got, want := m.took(), []string{"withdraw a", "withdraw run/01J"}; !cmp.Equal(got, want) {
		t.Errorf("calls once it is found = %q, want %q", got, want)
	}
	late := known()
	if d := late.Withdraw(t.Context()); d.Refusal != budget.Denied || d.Budget != "run:01J" {
		t.Errorf("Withdraw() from the empty run = %+v, want denied by run:01J", d)
	}
	quiet := known()
	m.took()
	quiet.Admit(t.Context())
	quiet.Settle(t.Context(), budget.Succeeded)
	if got, want := m.took(), []string{"settle a"}; !cmp.Equal(got, want) {
		t.Errorf("a success called %q, want %q", got, want)
	}
}

// A run's record that cannot be read is missing, said so once; an unusable store
// is for the other budgets to report.
func TestLedgerCannotLookForTheRun(t *testing.T) {
	for name, tt := range map[string]struct {
		err      error
		warnings int
	}{"in use": {errDisk, 1}, "unusable": {budget.MarkUnusable(errDisk), 0}} {
		m := newMemStore()
		m.fail["peek"] = tt.err
		l := budget.Ledger{Store: m, Run: &budget.RunBudget{ID: "01J", Existing: true}}
		for range 2 {
			if d := l.Withdraw(t.Context()); !d.Granted {
				t.Errorf("%s: Withdraw() = %+v, want granted", name, d)
			}
		}
		if got := l.Warnings(); len(got) != tt.warnings {
			t.Errorf("%s: Warnings() = %q, want %d", name, got, tt.warnings)
		}
	}
}
