package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/redisstore"
)

// hang is far more than any limit: the machine may be busy.
const hang = 20 * time.Second

// failure is one way in which a server does not answer.
type failure struct {
	name     string
	address  func(t *testing.T) string
	login    redisstore.Credentials
	says     string
	unusable bool
	// timed: it ends by the limits as they are. Whoever is to be answered has
	// longer ones, as the machine may be busy.
	timed bool
}

func failures() []failure {
	at := func(s string) func(*testing.T) string { return func(*testing.T) string { return s } }
	answering := func(s string) func(*testing.T) string {
		return func(t *testing.T) string { t.Helper(); return fake(t, s) }
	}
	configured := func(commands ...[]any) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			s := startServer(t)
			for _, c := range commands {
				s.do(t, c...)
			}
			return s.url()
		}
	}
	return []failure{
		{name: "refused", address: at("redis://127.0.0.1:1"), says: "refuses connections"},
		{name: "no socket", address: at("unix:///nowhere/at/all"), says: "no such file"},
		{name: "silent", address: answering(""), says: "within", timed: true},
		{name: "slow", address: slow, says: "within", timed: true},
		{name: "reply held back", address: held, says: "within", timed: true},
		{name: "blackholed", address: blackhole, says: "within", timed: true},
		{name: "READONLY", address: configured([]any{"REPLICAOF", "127.0.0.1", "1"}), says: "read-only replica"},
		{name: "OOM", address: configured([]any{"CONFIG", "SET", "maxmemory", "1"}), says: "out of memory"},
		{name: "LOADING", address: loading, says: "loading its data"},
		{name: "LOADING, said to all", address: answering("-LOADING Redis is loading the dataset in memory\r\n"), says: "loading its data"},
		{name: "MASTERDOWN", address: answering("-MASTERDOWN Link with MASTER is down\r\n"), says: "it says: MASTERDOWN"},
		{name: "BUSY", address: answering("-BUSY Redis is busy running a script\r\n"), says: "it says: BUSY"},
		{name: "no Redis", address: answering("HTTP/1.1 400 Bad Request\r\n\r\n"), says: "ask redis://"},
		{name: "MOVED", address: answering("-MOVED 3999 10.0.0.1:6379\r\n"), says: "another node", unusable: true},
		{name: "NOPERM", address: configured([]any{"ACL", "SETUSER", "default", "-evalsha"}), says: "may not do this", unusable: true},
		{name: "NOPERM in the script", address: configured([]any{"ACL", "SETUSER", "default", "-hset"}), says: "may not do this", unusable: true},
		{name: "NOPERM for the key", address: configured([]any{"ACL", "SETUSER", "default", "resetkeys"}), says: "may not do this", unusable: true},
		{
			name: "no password", address: configured([]any{"CONFIG", "SET", "requirepass", "secret-of-theirs"}),
			says: "login was refused", unusable: true,
		},
		{
			name: "wrong password", address: configured([]any{"CONFIG", "SET", "requirepass", "secret-of-theirs"}),
			login: redisstore.Credentials{Password: "hunter2hunter2"}, says: "login was refused", unusable: true,
		},
		{
			name: "no password file", address: configured(), login: redisstore.Credentials{PasswordFile: "/nowhere/at/all"},
			says: "read password: open /nowhere/at/all", unusable: true,
		},
		{
			name: "TLS options without TLS", address: at("redis://127.0.0.1:1"), login: redisstore.Credentials{CAFile: "/x"},
			says: "not rediss://", unusable: true,
		},
	}
}

// slow is a server whose replies come long after anybody waits for them.
func slow(t *testing.T) string {
	t.Helper()
	p := startProxy(t, startServer(t).socket, nil)
	p.delay.Store(int64(time.Hour))
	return p.url()
}

func held(t *testing.T) string {
	t.Helper()
	p := startProxy(t, startServer(t).socket, nil)
	p.hold.Store(true)
	return p.url()
}

// loading is a server that reads its data slowly.
func loading(t *testing.T) string {
	t.Helper()
	s := startServer(t)
	s.do(t, "CONFIG", "SET", "rdbcompression", "no")
	s.do(t, "EVAL", "for i = 0, 1499 do redis.call('SET', i, string.rep('x', 4096)) end return 1", 0)
	s.do(t, "SAVE")
	s.args = append(s.args, "--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024")
	s.restart(t)
	if err := s.admin.Get(t.Context(), "0").Err(); err == nil || !strings.Contains(err.Error(), "LOADING") {
		t.Skipf("this server cannot be made to load slowly: %v", err)
	}
	return s.url()
}

// Property 57: whatever the server does, a decision comes in time and by the
// policy, and names the place without its secrets.
func TestProperty57Failures(t *testing.T) {
	for _, f := range failures() {
		t.Run(f.name, func(t *testing.T) {
			address := f.address(t)
			to := open
			if f.timed {
				to = strict
			}
			l := ledger(t, to(t, address, f.login), "")
			begun := time.Now()
			d := l.Withdraw(t.Context())
			took := time.Since(begun)
			t.Logf("took %v: %s", took.Round(10*time.Microsecond), d.Detail)
			if took > hang {
				t.Errorf("Withdraw() took %v, want an end", took)
			}
			if !d.Granted || d.Policy != budget.PolicyFallback || d.Cap != 3 || d.Tokens != 2 {
				t.Errorf("Withdraw() = %+v, want a grant of the fallback, 2 of 3 tokens left", d)
			}
			if !strings.Contains(d.Detail, f.says) || strings.Contains(d.Detail, "hunter2") {
				t.Errorf("Withdraw().Detail = %q, want %q and no secret", d.Detail, f.says)
			}
			store := to(t, address, f.login)
			if _, err := store.Withdraw(t.Context(), standard("a"), 1); errors.Is(err, budget.ErrUnusable) != f.unusable || err == nil {
				t.Errorf("Withdraw() = %v, ErrUnusable %v, want %v", err, !f.unusable, f.unusable)
			}
		})
	}
}

// Property 57 and the policies: the fallback pays at most 3 tokens and is then
// closed; it is sticky, so the server is waited for once; and an explicit policy
// goes before it.
func TestPolicies(t *testing.T) {
	p := startProxy(t, startServer(t).socket, nil)
	p.hold.Store(true)
	for policy, want := range map[string]struct {
		granted int
		policy  string
		store   string
	}{
		"":                  {3, budget.PolicyFallback, budget.KindFile},
		budget.PolicyClosed: {0, budget.PolicyClosed, budget.KindRedis},
		budget.PolicyLocal:  {1, budget.PolicyLocal, budget.KindMemory},
		budget.PolicyOpen:   {6, budget.PolicyOpen, budget.KindRedis},
	} {
		t.Run("policy "+policy, func(t *testing.T) {
			l := ledger(t, strict(t, p.url(), redisstore.Credentials{}), policy)
			granted, before := 0, p.asked.Load()
			for range 6 {
				d := l.Withdraw(t.Context())
				if d.Granted {
					granted++
				} else if want := map[bool]budget.Refusal{true: budget.Unavailable, false: budget.Denied}[policy == budget.PolicyClosed]; d.Refusal != want {
					t.Errorf("Withdraw() = %+v, want refusal %v", d, want)
				}
			}
			l.Settle(t.Context(), budget.Succeeded)
			if asked := p.asked.Load() - before; asked > 1 {
				t.Errorf("for six decisions the server was asked %d times, want once", asked)
			}
			got := l.Statuses()[0]
			if granted != want.granted || got.Policy != want.policy || got.Store != want.store {
				t.Errorf("%d of 6 were granted by %q in %q, want %d by %q in %q", granted, got.Policy, got.Store, want.granted, want.policy, want.store)
			}
		})
	}
}

// Several budgets and a breaker wait for a dead server once, too, before the
// first attempt and later.
func TestDeadServerIsWaitedForOnce(t *testing.T) {
	p := startProxy(t, startServer(t).socket, nil)
	p.hold.Store(true)
	l := ledger(t, strict(t, p.url(), redisstore.Credentials{}), "")
	capacity := 50
	for _, name := range []string{"b", "c", "d"} {
		l.Members = append(l.Members, budget.Member{Name: name, Named: true, Params: budget.Defaults(), Explicit: budget.Change{Capacity: &capacity}})
	}
	l.Rule = &budget.BreakerRule{Threshold: 5, Cooldown: time.Minute, Lease: time.Minute}
	if d := l.Admit(t.Context()); !d.Granted {
		t.Errorf("Admit() = %+v, want the first attempt to run", d)
	}
	if d := l.Withdraw(t.Context()); !d.Granted || d.Policy != budget.PolicyFallback {
		t.Errorf("Withdraw() = %+v, want the fallback's grant", d)
	}
	l.Settle(t.Context(), budget.Failed)
	if asked := p.asked.Load(); asked > 1 {
		t.Errorf("the server was asked %d times, want once", asked)
	}
}

// A limit is one for all the steps of a decision; a bonus alone is given up
// sooner, as it comes when the work is done. A replica that forgot the script
// makes the most steps there are: login, name, text, and all but the text once
// more. Each takes long, so that few can begin in time, on however busy a machine.
func TestLimitsHoldForAllSteps(t *testing.T) {
	const step = 80 * time.Millisecond
	for _, c := range []struct {
		name   string
		limit  time.Duration
		decide func(*redisstore.Store) error
	}{
		{"decision", redisstore.Limit, func(s *redisstore.Store) error {
			_, err := s.Withdraw(t.Context(), standard("a"), 1)
			return err
		}},
		{"bonus", redisstore.BonusLimit, func(s *redisstore.Store) error {
			_, err := s.Settle(t.Context(), standard("a"), budget.Settling{Bonus: true}, 1)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startServer(t)
			s.do(t, "REPLICAOF", "127.0.0.1", "1")
			s.do(t, "ACL", "SETUSER", "default", ">of-default")
			p := startProxy(t, s.socket, nil)
			p.delay.Store(int64(step))
			if err := c.decide(strict(t, p.url(), redisstore.Credentials{Password: "of-default"})); err == nil {
				t.Error("a decision of a replica = nil, want an error")
			}
			// The first step of a connection is its login.
			if steps := p.asked.Load() + p.dialled.Load(); time.Duration(steps-1)*step > c.limit {
				t.Errorf("%d steps of %v were begun, want an end after %v", steps, step, c.limit)
			}
		})
	}
}

// The end of the caller's context is not the server's failure.
func TestContextEnds(t *testing.T) {
	store := startServer(t).open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Withdraw(ctx, standard("a"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Withdraw() = %v, want context.Canceled", err)
	}
	withdraw(t, store, standard("a"), 2)
}

// Nothing is dialled or read before the first operation.
func TestOpenTouchesNothing(t *testing.T) {
	store := open(t, "rediss://127.0.0.1:1", redisstore.Credentials{PasswordFile: "/nowhere", CAFile: "/nowhere"})
	if store.HasConnection() || store.Kind() != budget.KindRedis {
		t.Errorf("Open() made a connection, or the kind is %q", store.Kind())
	}
}

func ledger(t *testing.T, s *redisstore.Store, policy string) *budget.Ledger {
	t.Helper()
	l := &budget.Ledger{
		Store: s, OnError: policy,
		Members: []budget.Member{{Name: "a", Named: true, Params: budget.Defaults()}},
	}
	if policy == "" {
		l.Fallback = fallback(t)
	}
	return l
}
