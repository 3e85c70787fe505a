package cmd

// The context: what travels to the child in RETRYX_ variables, and what a
// nested retryx takes from them. These names are context, not settings: they
// are never bound to the flags of the same name (RETRYX_STATE_DIR and
// RETRYX_BUDGET_STORE are both). A name without a value is unset, so that a
// stale one never reaches a child. A malformed value is a warning, never an
// error: it comes from whoever called us, not from our user.

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/exec"
)

const (
	envAttempt       = "RETRYX_ATTEMPT"
	envAttemptLimit  = "RETRYX_ATTEMPT_LIMIT"
	envRunID         = "RETRYX_RUN_ID"
	envKey           = "RETRYX_IDEMPOTENCY_KEY"
	envDeadline      = "RETRYX_DEADLINE"
	envRemaining     = "RETRYX_REMAINING_MS"
	envBudget        = "RETRYX_BUDGET"
	envBudgetOrigin  = "RETRYX_BUDGET_ORIGIN"
	envBreaker       = "RETRYX_BREAKER_BUDGET"
	envBudgetStore   = "RETRYX_BUDGET_STORE"
	envStateDir      = "RETRYX_STATE_DIR"
	envCancelFile    = "RETRYX_CANCEL_FILE"
	envKillAfter     = "RETRYX_KILL_AFTER_MS"
	envDepth         = "RETRYX_DEPTH"
	envPreviousClass = "RETRYX_PREVIOUS_CLASS"
	envPreviousExit  = "RETRYX_PREVIOUS_EXIT"
	envHint          = "RETRYX_HINT"

	// envHook is the hook that we are below, which nobody but a hook is told.
	envHook = "RETRYX_HOOK"
)

// contextNames are all names of the context; the child's environment holds
// exactly those that have a value now.
func contextNames() []string {
	return []string{
		envAttempt, envAttemptLimit, envRunID, envKey, envDeadline, envRemaining, envBudget, envBudgetOrigin,
		envBreaker, envBudgetStore, envStateDir, envCancelFile, envKillAfter, envDepth, envPreviousClass, envPreviousExit, envHint,
	}
}

// ownNames are the variables of settings that speak of one command. What that
// command runs in turn is another one: the question whether it has happened, or
// that it only reads, would be answered for the wrong one, and whoever wants to
// hear of the outcome would hear of each part.
func ownNames() []string {
	return []string{"RETRYX_STEP", "RETRYX_EFFECT", "RETRYX_RECONCILE", "RETRYX_CORRECT", "RETRYX_BEFORE_RETRY", "RETRYX_ON_OUTCOME"}
}

const (
	originNamed    = "named"
	originImplicit = "implicit"

	// killStep is how much sooner an inner layer ends its child than the layer
	// around it does, so that an outer end never orphans the leaf.
	killStep     = 500 * time.Millisecond
	leastKill    = 100 * time.Millisecond
	escalate     = 200 * time.Millisecond // between a repeated signal and KILL
	escalateStep = 50 * time.Millisecond  // less per level
	deepest      = 1000                   // an inherited depth beyond this is malformed
)

// inherited is the context that retryx itself was started with.
type inherited struct {
	nested      bool // a retryx is above us
	depth       int  // our own: 0 at the top
	runID       string
	key         string
	deadline    time.Time
	budgets     []string
	named       bool     // the inherited budgets were named by somebody
	guarded     []string // budgets of whose breaker a layer above is the probe
	store       string   // where the layer above keeps them
	stateDir    string   // where, when not in a store on the network
	cancelFiles []string
	killAfter   time.Duration // 0: not inherited
	hint        string
	warnings    []string
}

// inherit reads the context. It never fails: what is malformed is left out and
// warned about.
func inherit(environ map[string]string) inherited {
	in := inherited{
		nested: environ[envDepth] != "", key: environ[envKey], hint: environ[envHint],
		named: environ[envBudgetOrigin] == originNamed,
		store: environ[envBudgetStore], stateDir: environ[envStateDir],
	}
	for path := range splitList(environ[envCancelFile], ":") {
		if whole := absolute(path); checkCancelFile(whole) == nil {
			path = whole
		}
		in.cancelFiles = append(in.cancelFiles, path)
	}
	in.depth = taken(&in, environ, envDepth, parseDepth)
	in.runID = taken(&in, environ, envRunID, parseRunID)
	in.deadline = taken(&in, environ, envDeadline, parseInstant)
	in.budgets = taken(&in, environ, envBudget, parseBudgets)
	in.guarded = taken(&in, environ, envBreaker, parseBudgets)
	in.killAfter = taken(&in, environ, envKillAfter, parseMilliseconds)
	return in
}

// taken is what parse makes of a variable, also where that fails; the zero value
// for one that is not set.
func taken[T any](in *inherited, environ map[string]string, name string, parse func(string) (T, error)) (value T) {
	text := environ[name]
	if text == "" {
		return value
	}
	value, err := parse(text)
	if err != nil {
		in.warnings = append(in.warnings, fmt.Sprintf("malformed %s ignored: %q", name, text))
	}
	return value
}

func parseDepth(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > deepest {
		return 0, errors.New("not a depth")
	}
	return n, nil
}

func parseInstant(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) }

func parseMilliseconds(s string) (time.Duration, error) {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms <= 0 || ms > longest.Milliseconds() {
		return 0, errors.New("not a number of milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// parseBudgets reads a list of budgets, and leaves out what cannot be one's name.
func parseBudgets(list string) (names []string, err error) {
	for name := range splitList(list, ",") {
		if _, bad := budget.ParseName(name); bad != nil {
			err = bad
			continue
		}
		names = append(names, name)
	}
	return names, err
}

func splitList(s, sep string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(s, sep) {
			if part != "" && !yield(part) {
				return
			}
		}
	}
}

// bound narrows a policy by what was inherited: the earlier deadline wins, and
// our child is ended before the layer above ends us.
func (in inherited) bound(p *exec.Policy) {
	if !in.deadline.IsZero() && (p.Deadline.IsZero() || in.deadline.Before(p.Deadline)) {
		p.Deadline = in.deadline
	}
	if in.killAfter > 0 {
		p.KillAfter = min(p.KillAfter, max(in.killAfter-killStep, leastKill))
	}
	p.EscalateAfter = max(0, escalate-time.Duration(in.depth)*escalateStep)
}

// handed is the context that one run hands to its child.
type handed struct {
	runID       string
	key         string
	deadline    time.Time
	budgets     []string
	named       bool
	guarded     func() []string // budgets of whose breaker the next attempt is the probe
	store       string
	stateDir    string
	cancelFiles []string
	killAfter   time.Duration
	depth       int // of the child's own retryx
	hint        string
}

// environment returns base with the context of one attempt in place of the one
// that we were started with.
func (h handed) environment(base []string, next exec.Next, now time.Time) []string {
	names := slices.Concat(contextNames(), ownNames())
	env := make([]string, 0, len(base)+len(names))
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(names, name) {
			env = append(env, anchored(kv))
		}
	}
	set := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	set(envAttempt, strconv.Itoa(next.N))
	set(envAttemptLimit, strconv.Itoa(next.Limit))
	set(envRunID, h.runID)
	set(envKey, h.key)
	if !h.deadline.IsZero() {
		set(envDeadline, h.deadline.UTC().Format(time.RFC3339Nano))
		set(envRemaining, strconv.FormatInt(max(0, h.deadline.Sub(now)).Milliseconds(), 10))
	}
	if len(h.budgets) > 0 {
		set(envBudget, strings.Join(h.budgets, ","))
		if h.named {
			set(envBudgetOrigin, originNamed)
		} else {
			set(envBudgetOrigin, originImplicit)
		}
	}
	if h.guarded != nil {
		set(envBreaker, strings.Join(h.guarded(), ","))
	}
	set(envBudgetStore, h.store)
	set(envStateDir, h.stateDir)
	set(envCancelFile, strings.Join(h.cancelFiles, ":"))
	set(envKillAfter, strconv.FormatInt(h.killAfter.Milliseconds(), 10))
	set(envDepth, strconv.Itoa(h.depth))
	set(envHint, h.hint)
	if p := next.Previous; p != nil {
		set(envPreviousClass, string(p.Verdict.Class))
		set(envPreviousExit, strconv.Itoa(childStatus(p)))
	}
	return env
}

// expand replaces the names of the context in one argument. Other braces stay.
func (h handed) expand(arg string, next exec.Next, now time.Time) string {
	if !strings.Contains(arg, "{") {
		return arg
	}
	deadline, remaining := "", ""
	if !h.deadline.IsZero() {
		deadline = h.deadline.UTC().Format(time.RFC3339)
		remaining = strconv.FormatInt(int64(max(0, h.deadline.Sub(now)).Seconds()), 10)
	}
	return strings.NewReplacer(
		"{attempt}", strconv.Itoa(next.N),
		"{idempotency_key}", h.key,
		"{deadline}", deadline,
		"{remaining_s}", remaining,
		"{run_id}", h.runID,
	).Replace(arg)
}
