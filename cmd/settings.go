package cmd

// What a run was asked for.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// settings is everything that a run was asked for, read and checked. It does
// not change afterwards.
type settings struct {
	policy exec.Policy
	strict bool // by the flag

	rules       []classify.Rule // from flags, in order
	envRules    []classify.Rule // from the environment
	configRules []classify.Rule // from configuration and profiles
	ruleFiles   []classify.Rules
	success     []classify.Range
	effect      classify.Effect
	idempotent  bool

	budgets     []string
	noBudget    bool
	change      budget.Change
	runBudget   *int
	store       string
	onError     string
	breaker     bool
	threshold   int
	cooldown    time.Duration
	stateDir    string
	remoteState bool

	cancelFiles []string
	runID       string
	step        string
	key         string
	expand      bool

	stdout, stdin, capture, pty string
	stdinLimit                  int64
	holdOutput                  bool

	hooks    map[exec.Hook]string
	hookTime time.Duration

	outcome, outcomeOn string
	outcomeOrigin      origin
	quiet, verbose     bool
	color, ci          string
	redact             []*regexp.Regexp
	noJournal          bool
}

// readsStdout reports whether a rule of the user's looks at the stdout of c.
func (s *settings) readsStdout(c classify.Command) bool {
	reads := func(r classify.Rule) bool { return len(r.Stdout) > 0 || len(r.Output) > 0 }
	for _, f := range s.ruleFiles {
		if c.Concerns(f) && slices.ContainsFunc(f.Rules, reads) {
			return true
		}
	}
	for _, rules := range [...][]classify.Rule{s.rules, s.envRules, s.configRules} {
		if slices.ContainsFunc(rules, reads) {
			return true
		}
	}
	return false
}

// settings reads and checks everything; the error names every problem.
func (r *resolver) settings() (*settings, error) {
	s := &settings{}
	r.refuseEmpty()
	r.refuseRivals()
	r.readPolicy(s)
	r.readJudgement(s)
	r.readBudget(s)
	r.readWanted(s)
	r.readStreams(s)
	r.readHooks(s)
	r.readReport(s)
	if len(r.problems) > 0 {
		return nil, &usageError{r.problems}
	}
	return s, nil
}

func (r *resolver) readPolicy(s *settings) {
	p := exec.Policy{
		MaxAttempts: int(r.integer("max-attempts", 1)),
		Backoff: exec.Backoff{
			Delay: r.duration("delay"), Max: r.duration("max-delay"),
			Multiplier: r.multiplier(), Jitter: exec.Jitter(r.choice("jitter")),
		},
		MaxRetryAfter: r.duration("max-retry-after"),
		MaxElapsed:    r.duration("max-elapsed"),
		Timeout:       r.duration("timeout"),
		KillAfter:     r.duration("kill-after"),
		MinAttempt:    r.duration("min-attempt"),
		Orphan:        exec.OrphanMode(r.choice("on-orphan")),
	}
	if p.Backoff.Max < p.Backoff.Delay && r.wellFormed("delay", "max-delay") {
		r.problem("max-delay", "must not be shorter than --delay: %s < %s", p.Backoff.Max, p.Backoff.Delay)
	}
	if v := r.text("deadline"); v != "" {
		t, err := parseDeadline(v, r.now)
		if err != nil {
			r.problem("deadline", "%s", err)
		}
		p.Deadline = t
	}
	s.strict = r.toggle("strict") && r.origin("strict").kind == fromFlag
	p.RetryOn = r.classes()
	s.policy = p
}

func (r *resolver) classes() []classify.Class {
	out, err := parseClasses(r.text("retry-on"))
	if err != nil {
		r.problem("retry-on", "%s", err)
	}
	return out
}

func (r *resolver) readJudgement(s *settings) {
	r.readShortRules(s)
	for _, spec := range r.conf.rules {
		rule, err := classify.ParseRule(spec.text)
		if err != nil {
			r.problems = append(r.problems, fmt.Sprintf("%s: rules: %s", spec.where, err))
			continue
		}
		s.configRules = append(s.configRules, rule)
	}
	success, err := classify.ParseExitList(r.text("success-exit"))
	if err != nil {
		r.problem("success-exit", "%s", err)
	}
	s.success = success
	s.effect = classify.Effect(r.choice("effect"))
	s.key = r.text("idempotency-key")
	s.idempotent = r.toggle("idempotent") || s.key != ""
	for _, path := range r.list("rules") {
		data, err := os.ReadFile(path)
		if err != nil {
			r.problem("rules", "%s", err)
			continue
		}
		rules, err := classify.ParseFile(path, data)
		if err != nil {
			r.problem("rules", "%s", err)
			continue
		}
		s.ruleFiles = append(s.ruleFiles, rules)
	}
}

func (r *resolver) readBudget(s *settings) {
	for _, name := range r.list("budget") {
		for part := range strings.SplitSeq(name, ",") {
			n, err := budget.ParseName(part)
			if err != nil {
				r.problem("budget", "%s", err)
				continue
			}
			if !slices.Contains(s.budgets, n) {
				s.budgets = append(s.budgets, n)
			}
		}
	}
	s.noBudget = r.toggle("no-budget")
	readOptional(r, "budget-capacity", budget.ParseCapacity, &s.change.Capacity)
	readOptional(r, "budget-refill", budget.ParseRefill, &s.change.Refill)
	readOptional(r, "budget-bonus", budget.ParseBonus, &s.change.Bonus)
	readOptional(r, "run-budget", budget.ParseCapacity, &s.runBudget)
	if v := r.text("run-id"); v != "" {
		id, err := parseRunID(v)
		if err != nil {
			r.problem("run-id", "%s", err)
		}
		s.runID = id
	}
	s.store = r.text("budget-store")
	if err := checkStore(s.store, r.origin("budget-store")); err != nil {
		r.problem("budget-store", "%s", err)
	}
	s.onError = r.choice("budget-on-error")
	s.breaker = r.toggle("breaker")
	s.threshold = int(r.integer("breaker-threshold", 1))
	s.cooldown = r.duration("breaker-cooldown")
	s.stateDir = r.text("state-dir")
	s.remoteState = r.toggle("allow-remote-state")
}

// readOptional reads a value that only counts when it was given.
func readOptional[T any](r *resolver, name string, parse func(string) (T, error), to **T) {
	v := r.text(name)
	if v == "" {
		return
	}
	got, err := parse(v)
	if err != nil {
		r.problem(name, "%s", err)
		return
	}
	*to = &got
}

func (r *resolver) readWanted(s *settings) {
	for _, f := range r.list("cancel-file") {
		if err := checkCancelFile(f); err != nil {
			r.problem("cancel-file", "%s", err)
			continue
		}
		path, err := filepath.Abs(f) // those below may work in another directory
		if err != nil || checkCancelFile(path) != nil {
			r.problem("cancel-file", "want an absolute path without a colon, as the working directory gives none to %q", f)
		}
		s.cancelFiles = append(s.cancelFiles, path)
	}
	s.step = r.text("step")
	s.expand = r.toggle("expand")
}

func (r *resolver) readStreams(s *settings) {
	s.stdout, s.stdin, s.capture, s.pty = r.choice("stdout"), r.choice("stdin"), r.choice("capture"), r.choice("pty")
	r.checkCapture(s)
	s.holdOutput = r.toggle("hold-output")
	if s.holdOutput && (s.stdout == "commit" || s.stdout == "last") {
		r.problem("hold-output", "and --stdout %s contradict each other; leave one out", s.stdout)
	}
	limit, err := parseSize(r.text("stdin-limit"))
	if err != nil {
		r.problem("stdin-limit", "%s", err)
	}
	s.stdinLimit = limit
}

// checkCapture refuses rules of the command line for which nothing would be read.
// Those of a variable or a file are for many commands.
func (r *resolver) checkCapture(s *settings) {
	noOut, noErr := s.capture == "none" || s.capture == "stderr", s.capture == "none" || s.capture == "stdout"
	for _, rule := range s.rules {
		switch {
		case noErr && len(rule.Stderr) > 0:
			r.problem("capture", "%s leaves stderr unread, which a rule here looks at", s.capture)
		case noOut && len(rule.Stdout) > 0:
			r.problem("capture", "%s leaves stdout unread, which a rule here looks at", s.capture)
		case noOut && noErr && len(rule.Output) > 0:
			r.problem("capture", "%s leaves the output unread, which a rule here looks at", s.capture)
		default:
			continue
		}
		return
	}
}

func (r *resolver) readHooks(s *settings) {
	s.hooks = map[exec.Hook]string{}
	for _, h := range []exec.Hook{exec.HookReconcile, exec.HookCorrect, exec.HookBeforeRetry, exec.HookOnOutcome} {
		if r.vars[envHook] != "" && r.origin(string(h)).kind != fromFlag {
			continue // a retryx in a hook has the same environment and files: it would be asked for ever
		}
		if v := r.text(string(h)); v != "" {
			s.hooks[h] = v
		}
	}
	s.hookTime = r.duration("hook-timeout")
	s.policy.MaxCorrections = int(r.integer("max-corrections", 0))
	_, s.policy.Reconcile = s.hooks[exec.HookReconcile]
	_, s.policy.Correct = s.hooks[exec.HookCorrect]
}

func (r *resolver) readReport(s *settings) {
	s.outcome, s.outcomeOn = r.text("outcome"), r.choice("outcome-on")
	s.outcomeOrigin = r.origin("outcome")
	if err := checkDestination(s.outcome); err != nil {
		r.problem("outcome", "%s", err)
	}
	s.quiet, s.verbose = r.toggle("quiet"), r.toggle("verbose")
	s.color, s.ci = r.choice("color"), r.choice("ci")
	s.redact = r.patterns("redact")
	s.noJournal = r.toggle("no-journal")
}

// wellFormed reports whether the durations of these names can be compared.
func (r *resolver) wellFormed(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := parseDuration(r.said(name))
		return err != nil
	})
}
