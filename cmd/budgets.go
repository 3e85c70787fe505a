package cmd

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/budget/redisstore"
	"github.com/retryx/retryx/statefile"
)

// probeGrace is added to an attempt's timeout to make a breaker's lease: a probe
// that is still running then will not report any more.
const probeGrace = 5 * time.Second

// places is where this invocation keeps things.
type places struct {
	shared      statefile.Dir // budgets
	err         error         // why there is no place for budgets
	personal    statefile.Dir // journal, hints, cancel news: never in a directory shared with others
	personalErr error         // why there is no place for those
	login       redisstore.Credentials
}

func findPlaces(environ map[string]string, s *settings) places {
	look := statefile.Lookup{
		Flag:   s.stateDir,
		Getenv: func(name string) string { return environ[name] },
		UID:    os.Geteuid(),
	}
	var at places
	at.login = credentials(environ)
	at.shared.AllowRemote, at.personal.AllowRemote = s.remoteState, s.remoteState
	if at.shared.Path, at.err = look.Path(); at.err != nil {
		at.personalErr = at.err
		return at
	}
	at.personal.Path, at.personalErr = look.Personal(at.shared.Path)
	return at
}

// membership is which budgets an invocation is subject to.
type membership struct {
	names   []string // own ones first, as they were given; the first keeps the breaker
	named   bool     // by somebody; else after the tool
	own     []string // of names, those that this invocation brought itself
	guard   string   // whose breaker this invocation asks and tells; empty: none
	guarded []string // those of whose breaker a layer above is the probe
	shared  bool     // budgets are where the layer above has its own
}

// memberOf says which budgets pay: those named here plus the inherited ones;
// with none named, the inherited ones; else one named after the tool.
//
// A breaker lets one probe through at a time, and what runs below it is a part of
// it: that does not ask again, or it would be refused by its own lease.
func memberOf(s *settings, in inherited, at places, tool string) membership {
	m := membership{named: in.named && len(in.budgets) > 0}
	switch {
	case s.noBudget:
	case len(s.budgets) > 0:
		m.own, m.named = s.budgets, true
	case len(in.budgets) == 0:
		m.own = []string{budget.NameFor(tool)}
	}
	for _, name := range slices.Concat(m.own, in.budgets) {
		if !slices.Contains(m.names, name) {
			m.names = append(m.names, name)
		}
	}
	if m.shared = in.shares(s, at); m.shared {
		m.guarded = in.guarded
	}
	if s.breaker && len(m.names) > 0 && !slices.Contains(m.guarded, m.names[0]) {
		m.guard = m.names[0]
	}
	return m
}

// shares reports whether budgets are where the layer above has its own: a name
// means another budget elsewhere.
func (in inherited) shares(s *settings, at places) bool {
	return in.store == s.store && (s.store != "" || in.stateDir == at.shared.Path)
}

// newLedger puts the budgets together. It touches no store.
func newLedger(s *settings, conf *configuration, at places, m membership) *budget.Ledger {
	l := &budget.Ledger{OnError: s.onError}
	l.Store = openStore(s, at)
	if s.store != "" && s.onError == "" {
		l.Fallback = fileStore(at)
	}
	for _, name := range m.names {
		explicit := conf.budgets[name].Change
		if slices.Contains(m.own, name) {
			explicit = merged(explicit, s.change)
		}
		l.Members = append(l.Members, budget.Member{
			Name: name, Named: m.named, Params: budget.Defaults(), Explicit: explicit,
		})
	}
	if m.guard != "" {
		lease := budget.DefaultLease
		if s.policy.Timeout > 0 {
			lease = s.policy.Timeout + probeGrace
		}
		l.Rule = &budget.BreakerRule{Threshold: s.threshold, Cooldown: s.cooldown, Lease: lease}
	}
	return l
}

// runBudget is the budget of the run with this id: one that was asked for here,
// or, where others may have given it one, whatever they gave it.
func runBudget(s *settings, runID string, in inherited) *budget.RunBudget {
	switch {
	case s.runBudget != nil:
		return &budget.RunBudget{ID: runID, Capacity: *s.runBudget}
	case firstOf(s.runID, in.runID) != "":
		return &budget.RunBudget{ID: runID, Existing: true}
	}
	return nil
}

// merged lays what was given closer to the command over what a file says.
func merged(below, above budget.Change) budget.Change {
	if above.Capacity != nil {
		below.Capacity = above.Capacity
	}
	if above.Refill != nil {
		below.Refill = above.Refill
	}
	if above.Bonus != nil {
		below.Bonus = above.Bonus
	}
	return below
}

func fileStore(at places) budget.Store {
	if at.err != nil {
		return budget.Unusable(budget.KindFile, at.err)
	}
	return &filestore.Store{Dir: at.shared}
}

// openStore returns where budgets live. It dials nothing.
func openStore(s *settings, at places) budget.Store {
	if s.store == "" {
		return fileStore(at)
	}
	store, err := redisstore.Open(s.store, at.login)
	if err != nil {
		return budget.Unusable(budget.KindRedis, err)
	}
	return store
}

// credentials are never flags: every user of the machine could read them.
func credentials(environ map[string]string) redisstore.Credentials {
	verify := environ["RETRYX_REDIS_TLS_SKIP_VERIFY"]
	return redisstore.Credentials{
		Username:     environ["RETRYX_REDIS_USERNAME"],
		Password:     environ["RETRYX_REDIS_PASSWORD"],
		PasswordFile: environ["RETRYX_REDIS_PASSWORD_FILE"],
		CAFile:       environ["RETRYX_REDIS_CA_FILE"],
		CertFile:     environ["RETRYX_REDIS_CERT_FILE"],
		KeyFile:      environ["RETRYX_REDIS_KEY_FILE"],
		SkipVerify:   verify == "1" || verify == "true",
	}
}

// checkStore refuses an address that cannot be one, and a password where every
// user of the machine could read it.
func checkStore(address string, from origin) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("not an address; want redis://host:port, rediss://host:port or unix:///path")
	}
	switch u.Scheme {
	case "redis", "rediss":
		if u.Host == "" {
			return fmt.Errorf("%s:// names no host", u.Scheme)
		}
	case "unix":
		if u.Path == "" {
			return errors.New("unix:// names no socket")
		}
	default:
		return fmt.Errorf("want redis://, rediss:// or unix://, not %q", strings.SplitN(address, ":", 2)[0])
	}
	if _, secret := u.User.Password(); secret && from.kind == fromFlag {
		return errors.New("a password on the command line can be read by every user of the machine; put the address into RETRYX_BUDGET_STORE, or the password into RETRYX_REDIS_PASSWORD")
	}
	_, err = redisstore.Open(address, redisstore.Credentials{})
	return err
}
