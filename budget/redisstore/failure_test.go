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

// slack is what a decision may take beyond the limit (property 57).
const slack = 50 * time.Millisecond

// failure is one way in which a server does not answer.
type failure struct {
	name     string
	address  func(t *testing.T) string
	login    redisstore.Credentials
	says     string
	unusable bool
	// decided: the server took the decision and nobody heard of it.
	decided bool
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
	slow := func(d time.Duration) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			p := startProxy(t, startServer(t).socket, nil)
			p.delay.Store(int64(d))
			return p.url()
		}
	}
	return []failure{
		{name: "refused", address: at("redis://127.0.0.1:1"), says: "refuses connections"},
		{name: "no socket", address: at("unix:///nowhere/at/all"), says: "no such file"},
		{name: "silent", address: answering(""), says: "no answer"},
		{name: "slow", address: slow(150 * time.Millisecond), says: "no answer"},
		{name: "slow in each step", address: slow(95 * time.Millisecond), login: redisstore.Credentials{Password: "x"}, says: ""},
		{name: "reply held back", address: held, says: "no answer", decided: true},
		{name: "blackholed", address: blackhole, says: "no connection within 100ms"},
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
	for i := range 300 {
		s.do(t, "SET", i, strings.Repeat("x", 4096))
	}
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
			l := ledger(t, address, f.login, "")
			begun := time.Now()
			d := l.Withdraw(t.Context())
			took := time.Since(begun)
			t.Logf("took %v: %s", took.Round(10*time.Microsecond), d.Detail)
			if took > redisstore.Limit+slack {
				t.Errorf("Withdraw() took %v, want at most %v", took, redisstore.Limit+slack)
			}
			if f.says == "" {
				return
			}
			if !d.Granted || d.Policy != budget.PolicyFallback || d.Cap != 3 || d.Tokens != 2 {
				t.Errorf("Withdraw() = %+v, want a grant of the fallback, 2 of 3 tokens left", d)
			}
			if !strings.Contains(d.Detail, f.says) || strings.Contains(d.Detail, "hunter2") {
				t.Errorf("Withdraw().Detail = %q, want %q and no secret", d.Detail, f.says)
			}
			store := strict(t, address, f.login)
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
			l := ledger(t, p.url(), redisstore.Credentials{}, policy)
			granted, begun := 0, time.Now()
			for range 6 {
				d := l.Withdraw(t.Context())
				if d.Granted {
					granted++
				} else if want := map[bool]budget.Refusal{true: budget.Unavailable, false: budget.Denied}[policy == budget.PolicyClosed]; d.Refusal != want {
					t.Errorf("Withdraw() = %+v, want refusal %v", d, want)
				}
			}
			l.Settle(t.Context(), budget.Succeeded)
			if took := time.Since(begun); took > redisstore.Limit+slack {
				t.Errorf("six decisions took %v, want the server to be waited for once, %v", took, redisstore.Limit+slack)
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
	l := ledger(t, fake(t, ""), redisstore.Credentials{}, "")
	capacity := 50
	for _, name := range []string{"b", "c", "d"} {
		l.Members = append(l.Members, budget.Member{Name: name, Named: true, Params: budget.Defaults(), Explicit: budget.Change{Capacity: &capacity}})
	}
	l.Rule = &budget.BreakerRule{Threshold: 5, Cooldown: time.Minute, Lease: time.Minute}
	begun := time.Now()
	if d := l.Admit(t.Context()); !d.Granted {
		t.Errorf("Admit() = %+v, want the first attempt to run", d)
	}
	if d := l.Withdraw(t.Context()); !d.Granted || d.Policy != budget.PolicyFallback {
		t.Errorf("Withdraw() = %+v, want the fallback's grant", d)
	}
	l.Settle(t.Context(), budget.Failed)
	if took := time.Since(begun); took > redisstore.Limit+slack {
		t.Errorf("it took %v, want at most %v", took, redisstore.Limit+slack)
	}
}

// A bonus alone is given up sooner: it comes when the work is done.
func TestBonusIsGivenUpSooner(t *testing.T) {
	store := strict(t, fake(t, ""), redisstore.Credentials{})
	begun := time.Now()
	if _, err := store.Settle(t.Context(), standard("a"), budget.Settling{Bonus: true}, 1); err == nil {
		t.Error("Settle() of a silent server = nil, want an error")
	}
	if took := time.Since(begun); took > redisstore.BonusLimit+slack {
		t.Errorf("Settle() took %v, want at most %v", took, redisstore.BonusLimit+slack)
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

func ledger(t *testing.T, address string, c redisstore.Credentials, policy string) *budget.Ledger {
	t.Helper()
	l := &budget.Ledger{
		Store: strict(t, address, c), OnError: policy,
		Members: []budget.Member{{Name: "a", Named: true, Params: budget.Defaults()}},
	}
	if policy == "" {
		l.Fallback = fallback(t)
	}
	return l
}
