package redisstore_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/budget/redisstore"
	"github.com/retryx/retryx/statefile"
)

func standard(name string) budget.Account {
	return budget.Account{Name: name, Params: budget.Defaults()}
}

func fixed(name string, capacity int) budget.Account {
	return budget.Account{Name: name, Params: budget.Params{Capacity: capacity}}
}

func withdraw(t *testing.T, s budget.Store, a budget.Account, op uint64) budget.Answer {
	t.Helper()
	answer, err := s.Withdraw(t.Context(), a, op)
	if err != nil {
		t.Fatalf("Withdraw() = %v, want nil", err)
	}
	return answer
}

func counters(t *testing.T, s budget.Store, a budget.Account) budget.Counters {
	t.Helper()
	r, found, err := s.Peek(t.Context(), a)
	if err != nil || !found {
		t.Fatalf("Peek() = %v, %v, want a record", found, err)
	}
	return r.Counters
}

// Property 55: the server decided and the reply got lost with its connection.
// The operation is sent once more under its name and charged once.
func TestProperty55ReplyLost(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.socket, nil)
	a := fixed("a", 5)
	t.Run("once", func(t *testing.T) {
		p.cut.Store(1)
		if answer := withdraw(t, open(t, p.url(), redisstore.Credentials{}), a, 1); !answer.Granted || answer.Balance.Tokens != 4*budget.Token {
			t.Errorf("Withdraw() = %+v, want the one token that was charged", answer)
		}
	})
	t.Run("twice", func(t *testing.T) {
		p.cut.Store(2)
		store := open(t, p.url(), redisstore.Credentials{})
		if answer, err := store.Withdraw(t.Context(), a, 2); err == nil || answer.Granted {
			t.Errorf("Withdraw() = %+v, %v, want an error", answer, err)
		}
		if got := counters(t, s.open(t), a).Granted; got != 2 {
			t.Errorf("%d tokens were charged, want 2 for two operations", got)
		}
	})
	t.Run("late", func(t *testing.T) {
		p.hold.Store(true)
		store := strict(t, p.url(), redisstore.Credentials{})
		before := p.asked.Load()
		if answer, err := store.Withdraw(t.Context(), a, 3); err == nil || answer.Granted {
			t.Errorf("Withdraw() = %+v, %v, want an error", answer, err)
		}
		if _, err := store.Withdraw(t.Context(), a, 4); err == nil {
			t.Error("Withdraw() after a failure = nil, want the same error")
		}
		asked := p.asked.Load() - before
		if asked > 1 {
			t.Errorf("%d scripts were sent, want no repetition", asked)
		}
		// On a busy machine the connection may have come too late to ask, and the
		// server may still be about to decide.
		s.await(t, func() bool { return counters(t, s.open(t), a).Granted == 2+uint64(asked) })
	})
}

// An operation that a transport repeats is decided once, also a refused one, and
// the names of the last ones are remembered.
func TestOperationsAreRemembered(t *testing.T) {
	s := startServer(t)
	store, a := s.open(t), fixed("a", 3)
	for op := uint64(1); op <= 4; op++ {
		for range 3 {
			if got := withdraw(t, store, a, op).Granted; got != (op <= 3) {
				t.Errorf("Withdraw(op %d) = %v, want %v", op, got, op <= 3)
			}
		}
	}
	for range 2 {
		if answer, err := store.Refund(t.Context(), a, 5); err != nil || answer.Balance.Tokens != budget.Token {
			t.Errorf("Refund(op 5) = %+v, %v, want one token", answer, err)
		}
	}
	want := budget.Counters{Granted: 3, Denied: 1, Refunded: 1}
	if got := counters(t, store, a); got != want {
		t.Errorf("counters = %+v, want %+v", got, want)
	}
	b := fixed("b", 100)
	for op := uint64(1); op <= 16; op++ {
		withdraw(t, store, b, op)
	}
	withdraw(t, store, b, 1)
	if got := counters(t, store, b).Granted; got != 16 {
		t.Errorf("after 16 operations the first was forgotten: %d granted, want 16", got)
	}
	withdraw(t, store, b, 17)
	if text := s.do(t, "HGET", "retryx:v1:{b}", "operations").(string); len(strings.Fields(text)) != 16 {
		t.Errorf("operations = %q, want 16", text)
	}
}

// Property 56: what happens to a server between two calls costs one more round
// trip and is not seen.
func TestProperty56BetweenCalls(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.socket, nil)
	store, a := open(t, p.url(), redisstore.Credentials{}), standard("a")
	withdraw(t, store, a, 1)

	t.Run("script flush", func(t *testing.T) {
		s.do(t, "SCRIPT", "FLUSH")
		before := p.asked.Load()
		if answer := withdraw(t, store, a, 2); !answer.Granted {
			t.Errorf("Withdraw() = %+v, want a grant", answer)
		}
		if got := p.asked.Load() - before; got != 2 {
			t.Errorf("%d scripts were sent, want 2", got)
		}
		withdraw(t, store, a, 3)
		if got := p.asked.Load() - before; got != 3 {
			t.Errorf("%d scripts were sent after the next call, want 3", got)
		}
	})
	t.Run("restart", func(t *testing.T) {
		s.restart(t)
		if answer := withdraw(t, store, a, 4); !answer.Granted || answer.Balance.Tokens != 19*budget.Token {
			t.Errorf("Withdraw() = %+v, want a grant of the bucket that is full again", answer)
		}
		direct := s.open(t)
		withdraw(t, direct, a, 5)
		s.restart(t)
		withdraw(t, direct, a, 6)
	})
	t.Run("failover", func(t *testing.T) {
		other := startServer(t)
		other.do(t, "REPLICAOF", "NO", "ONE")
		withdraw(t, other.open(t), fixed("a", 20), 7)
		s.do(t, "REPLICAOF", "127.0.0.1", "1") // the old primary takes no writes any more
		p.backend.Store(other.socket)
		if answer := withdraw(t, store, a, 8); !answer.Granted || answer.Balance.Tokens != 18*budget.Token {
			t.Errorf("Withdraw() = %+v, want 18 of the new primary's 20 tokens", answer)
		}
	})
}

// Property 58: the clocks of the clients decide nothing. The same calls against
// servers an hour apart get the same answers; the client's clock is another in
// each.
func TestProperty58ClientClocks(t *testing.T) {
	s := startServer(t)
	var answers []string
	for _, offset := range []time.Duration{-time.Hour, 0, time.Hour} {
		s.do(t, "FLUSHALL")
		store, a := s.open(t), standard("a")
		store.UseClock()
		at := time.Now().Add(offset)
		all := ""
		for op := range uint64(30) {
			s.do(t, "HSET", redisstore.ClockKey, "s", at.Unix(), "us", 0)
			answer := withdraw(t, store, a, 1+op)
			all += answer.Balance.Tokens.String() + " "
			at = at.Add(time.Second)
		}
		answers = append(answers, all)
	}
	if answers[0] != answers[1] || answers[1] != answers[2] {
		t.Errorf("balances under clocks an hour apart:\n%s", strings.Join(answers, "\n"))
	}
	if strings.Contains(answers[0], "20 ") || !strings.HasPrefix(answers[0], "19 18.1 17.2 ") {
		t.Errorf("balances = %s, want 19 18.1 17.2 and so on", answers[0])
	}
}

// The time of a record is the server's own.
func TestServerTime(t *testing.T) {
	s := startServer(t)
	store, a := s.open(t), standard("a")
	before := s.admin.Time(t.Context()).Val()
	withdraw(t, store, a, 1)
	after := s.admin.Time(t.Context()).Val()
	r, _, err := store.Peek(t.Context(), a)
	if at := time.Unix(0, r.Clock.Wall); err != nil || at.Before(before) || r.Bucket.Tokens < 19*budget.Token {
		t.Errorf("record = %+v, %v, want a time from %v on", r, err, before)
	}
	written, err := s.admin.HGet(t.Context(), "retryx:v1:{a}", "t").Int64()
	if err != nil || written < before.UnixMicro() || written > after.UnixMicro() {
		t.Errorf("t = %d, %v, want microseconds between %d and %d", written, err, before.UnixMicro(), after.UnixMicro())
	}
}

// Property 60: one key with one hash tag, which is kept at least until it could
// be forgotten unnoticed.
func TestProperty60KeysAndTTL(t *testing.T) {
	s := startServer(t)
	store := s.open(t)
	run := budget.Account{Space: budget.Runs, Name: "R-1", Params: budget.Params{Capacity: 3}}
	withdraw(t, store, standard("default"), 1)
	withdraw(t, store, fixed("norefill", 3), 2)
	slow := standard("slow")
	slow.Params.Refill = 1_000_000
	withdraw(t, store, slow, 3)
	if _, err := store.Configure(t.Context(), run, budget.Change{}); err != nil {
		t.Fatal(err)
	}
	failed := budget.Settling{
		Breaker: true, Rule: budget.BreakerRule{Threshold: 5, Cooldown: time.Minute, Lease: time.Minute}, Result: budget.Result{Failed: true},
	}
	if _, err := store.Settle(t.Context(), standard("failing"), failed, 4); err != nil {
		t.Fatal(err)
	}
	keys := s.do(t, "KEYS", "*").([]any)
	got := map[string]time.Duration{}
	for _, key := range keys {
		got[key.(string)] = s.admin.PTTL(t.Context(), key.(string)).Val().Round(time.Minute)
	}
	never := time.Duration(-1).Round(time.Minute)
	want := map[string]time.Duration{
		"retryx:v1:{default}": time.Hour, "retryx:v1:{norefill}": never, "retryx:v1:{slow}": never,
		"retryx:v1:run:{R-1}": redisstore.RunKept, "retryx:v1:{failing}": 7 * 24 * time.Hour,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys and how long they stay (-want +got):\n%s", diff)
	}

	// A run that is used stays.
	s.do(t, "PEXPIRE", redisstore.KeyOf(run), (5 * 24 * time.Hour).Milliseconds())
	if _, err := store.Configure(t.Context(), run, budget.Change{}); err != nil {
		t.Fatal(err)
	}
	if left := s.admin.PTTL(t.Context(), redisstore.KeyOf(run)).Val().Round(time.Minute); left != redisstore.RunKept {
		t.Errorf("a run that was used again is kept for %v, want %v", left, redisstore.RunKept)
	}
	// Parameters that somebody chose stay, and those that are the defaults again
	// need not.
	capacity := 7
	for _, c := range []struct {
		capacity int
		want     time.Duration
	}{{7, never}, {20, time.Hour}} {
		capacity = c.capacity
		if _, err := store.Configure(t.Context(), standard("default"), budget.Change{Capacity: &capacity}); err != nil {
			t.Fatal(err)
		}
		if left := s.admin.PTTL(t.Context(), "retryx:v1:{default}").Val().Round(time.Minute); left != c.want {
			t.Errorf("with capacity %d the record is kept for %v, want %v", c.capacity, left, c.want)
		}
	}
}

// Property 60: a cluster, whose node checks the declared keys.
func TestProperty60Cluster(t *testing.T) {
	s := startProgram(t, programs()[0], freePort(t), "--cluster-enabled", "yes")
	store := s.open(t)
	if _, err := store.Withdraw(t.Context(), standard("a"), 1); err == nil || errors.Is(err, budget.ErrUnusable) || !strings.Contains(err.Error(), "CLUSTERDOWN") {
		t.Errorf("Withdraw() without slots = %v, want a failure in use", err)
	}
	s.do(t, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	s.await(t, func() bool { return strings.Contains(s.do(t, "CLUSTER", "INFO").(string), "cluster_state:ok") })
	store = s.open(t)
	a, run := standard("a"), budget.Account{Space: budget.Runs, Name: "r", Params: budget.Params{Capacity: 3}}
	withdraw(t, store, a, 1)
	withdraw(t, store, run, 2)
	if names, err := store.List(t.Context(), budget.Named); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("List() = %q, %v, want a", names, err)
	}
	if key, tag := s.do(t, "CLUSTER", "KEYSLOT", redisstore.KeyOf(a)), s.do(t, "CLUSTER", "KEYSLOT", "a"); key != tag {
		t.Errorf("the slot of %s is %v, want %v, that of its name", redisstore.KeyOf(a), key, tag)
	}
}

// Property 60: a replica that was promoted knows what was replicated.
func TestProperty60Promotion(t *testing.T) {
	port := freePort(t)
	primary := startProgram(t, programs()[0], port, "--repl-diskless-sync-delay", "0")
	replica := startServer(t)
	replica.do(t, "REPLICAOF", "127.0.0.1", port)
	a := fixed("a", 10)
	for op := range uint64(4) {
		withdraw(t, primary.open(t), a, 1+op)
	}
	replica.await(t, func() bool { return replica.admin.HGet(t.Context(), "retryx:v1:{a}", "granted").Val() == "4" })
	if r, found, err := replica.open(t).Peek(t.Context(), a); err != nil || !found || r.Bucket.Tokens != 6*budget.Token {
		t.Errorf("Peek() of a replica = %+v, %v, %v, want 6 tokens", r, found, err)
	}
	if _, err := replica.open(t).Withdraw(t.Context(), a, 9); err == nil || !strings.Contains(err.Error(), "read-only replica") {
		t.Errorf("Withdraw() of a replica = %v, want a refusal", err)
	}
	replica.do(t, "REPLICAOF", "NO", "ONE")
	if answer := withdraw(t, replica.open(t), a, 9); answer.Balance.Tokens != 5*budget.Token {
		t.Errorf("Withdraw() of the promoted replica = %+v, want 5 tokens left", answer)
	}
}

// Property 61: a server that forgets everything grants one bucket more.
func TestProperty61FlushAll(t *testing.T) {
	s := startServer(t)
	store, a := s.open(t), fixed("a", 10)
	granted := 0
	for op := range uint64(40) {
		if op == 20 {
			s.do(t, "FLUSHALL")
		}
		if withdraw(t, store, a, 1+op).Granted {
			granted++
		}
	}
	if granted != 20 {
		t.Errorf("with one FLUSHALL it paid %d, want 20: one bucket more", granted)
	}
}

// Damage pays for nothing, is told once, keeps what stood there, and is over.
func TestDamagedRecord(t *testing.T) {
	s := startServer(t)
	for name, change := range map[string][]any{
		"no number":       {"HSET", "tokens", "many"},
		"exponent":        {"HSET", "tokens", "1e6"},
		"too many":        {"HSET", "tokens", "999000000"},
		"beyond a double": {"HSET", "t", "9007199254740993"},
		"missing field":   {"HDEL", "part"},
		"outcomes":        {"HSET", "recent", "f1 x2"},
		"holder":          {"HSET", "holder", "me"},
		"endless rest":    {"HSET", "open_for", "31536000000001"},
	} {
		t.Run(name, func(t *testing.T) {
			s.do(t, "FLUSHALL")
			store, a := s.open(t), standard("a")
			withdraw(t, store, a, 1)
			s.do(t, append([]any{change[0], "retryx:v1:{a}"}, change[1:]...)...)
			if _, found, err := store.Peek(t.Context(), a); err == nil || !found || errors.Is(err, budget.ErrUnusable) {
				t.Errorf("Peek() = %v, %v, want it to tell the damage", found, err)
			}
			if answer := withdraw(t, store, a, 2); answer.Granted || !strings.Contains(answer.Damaged, "retryx:v1:{a}") {
				t.Errorf("Withdraw() = %+v, want a refusal that names the place of the old fields", answer)
			}
			if answer := withdraw(t, store, a, 3); answer.Granted || answer.Damaged != "" {
				t.Errorf("Withdraw() again = %+v, want a refusal without a word", answer)
			}
			if got := counters(t, store, a); got.Resets != 1 || got.Denied != 2 {
				t.Errorf("counters = %+v, want one reset, two refusals", got)
			}
			if kept := s.do(t, "HGET", "retryx:v1:{a}", "damaged").(string); !strings.Contains(kept, "operations 0000000000000001g") {
				t.Errorf("kept = %q, want the old fields", kept)
			}
		})
	}
}

// Times that no rule can have produced keep a breaker shut no longer than rules
// do.
func TestStuckBreaker(t *testing.T) {
	s := startServer(t)
	store, a := s.open(t), standard("a")
	rule := budget.BreakerRule{Threshold: 1, Cooldown: time.Minute, Lease: time.Minute}
	failed := budget.Settling{Breaker: true, Rule: rule, Result: budget.Result{Failed: true}}
	if _, err := store.Settle(t.Context(), a, failed, 1); err != nil {
		t.Fatal(err)
	}
	far := time.Now().Add(1000 * time.Hour).UnixMicro()
	s.do(t, "HSET", "retryx:v1:{a}", "open_until", far)
	if answer, err := store.Ask(t.Context(), a, rule, 1); err != nil || answer.Granted || answer.Permit.Retry > 6*time.Minute {
		t.Errorf("Ask() = %+v, %v, want it shut for 6 minutes at most", answer, err)
	}
	s.do(t, "HSET", "retryx:v1:{a}", "open_until", 1)
	if answer, err := store.Ask(t.Context(), a, rule, 1); err != nil || !answer.Permit.Leased {
		t.Errorf("Ask() = %+v, %v, want the lease", answer, err)
	}
	s.do(t, "HSET", "retryx:v1:{a}", "lease_end", far)
	if answer, err := store.Ask(t.Context(), a, rule, 2); err != nil || !answer.Permit.Leased {
		t.Errorf("Ask() of another = %+v, %v, want the lease that no rule can have given", answer, err)
	}
}

// A time that no clock can have said is no time: nothing is credited for it.
func TestTimeZero(t *testing.T) {
	s := startServer(t)
	store, a := s.open(t), standard("a")
	for op := range uint64(20) {
		withdraw(t, store, a, 1+op)
	}
	s.do(t, "HSET", "retryx:v1:{a}", "t", 0)
	if answer := withdraw(t, store, a, 30); answer.Granted || answer.Damaged != "" {
		t.Errorf("Withdraw() = %+v, want a refusal", answer)
	}
	if got := counters(t, store, a); got.Anomalies != 1 {
		t.Errorf("counters = %+v, want one anomaly", got)
	}
}

// A key of somebody else is not touched, and does not stop other budgets.
func TestForeignKey(t *testing.T) {
	s := startServer(t)
	store := s.open(t)
	s.do(t, "SET", "retryx:v1:{a}", "mine")
	if _, err := store.Withdraw(t.Context(), standard("a"), 1); err == nil || !strings.Contains(err.Error(), "not a budget") {
		t.Errorf("Withdraw() of a foreign key = %v, want an error that says so", err)
	}
	if got := s.do(t, "GET", "retryx:v1:{a}"); got != "mine" {
		t.Errorf("the key holds %v, want what it held", got)
	}
	withdraw(t, store, standard("b"), 2)
}

func fallback(t *testing.T) budget.Store {
	t.Helper()
	return &filestore.Store{Dir: statefile.Dir{Path: filepath.Join(t.TempDir(), "state")}}
}
