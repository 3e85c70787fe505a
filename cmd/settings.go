package cmd

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// longest is where durations saturate: far beyond any run, near enough that
// sums of a few do not overflow.
const longest = 100 * 365 * 24 * time.Hour

// settings is everything that a run was asked for, read and checked. It does
// not change afterwards.
type settings struct {
	policy exec.Policy

	rules       []classify.Rule // from flags, in order
	configRules []classify.Rule // from configuration and profiles
	ruleFiles   []classify.Rules
	success     []classify.Range
	effect      classify.Effect
	idempotent  bool

	budgets        []string
	noBudget       bool
	change         budget.Change
	runBudget      *int
	store          string
	onError        string
	breaker        bool
	threshold      int
	cooldown       time.Duration
	stateDir       string
	stateDirOrigin origin
	remoteState    bool

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
	return slices.ContainsFunc(s.rules, reads) || slices.ContainsFunc(s.configRules, reads)
}

// origin is where a value came from.
type origin struct {
	kind  originKind
	where string // the flag, the variable, or file:line
}

type originKind int

const (
	fromDefault originKind = iota
	fromConfig
	fromEnv
	fromFlag
)

func (o origin) given() bool { return o.kind != fromDefault }

// usageError is bad input. It names every problem, and nothing has run.
type usageError struct{ problems []string }

func (e *usageError) Error() string { return strings.Join(e.problems, "\n") }

// resolver finds each value by precedence, flags over environment over
// configuration, and collects what is wrong.
type resolver struct {
	flags    *pflag.FlagSet
	conf     *configuration
	files    *viper.Viper // what the configuration files say; nil until a value of theirs counts
	now      time.Time
	problems []string
	empty    []string // flags whose lack of a value was told
}

func newResolver(flags *pflag.FlagSet, conf *configuration, now time.Time) *resolver {
	return &resolver{flags: flags, conf: conf, now: now}
}

// origin says where the value of a setting comes from.
func (r *resolver) origin(name string) origin {
	f := r.flags.Lookup(name)
	if f.Changed {
		return origin{fromFlag, "--" + name}
	}
	s := f.Value.(flagValue).row()
	if env := s.env(); env != "" && os.Getenv(env) != "" {
		return origin{fromEnv, env}
	}
	if line, ok := r.conf.lines[s.key()]; ok {
		return origin{fromConfig, line + ": " + s.key()}
	}
	return origin{fromDefault, "--" + name}
}

// fromFiles is the value of a setting in the configuration files.
func (r *resolver) fromFiles(name string) any {
	if r.files == nil {
		r.files = viper.New()
		_ = r.files.MergeConfigMap(r.conf.values) // into nothing, so nothing can clash
	}
	return r.files.Get(r.row(name).key())
}

func (r *resolver) row(name string) *setting { return r.flags.Lookup(name).Value.(flagValue).row() }

func (r *resolver) problem(name, format string, args ...any) {
	if slices.Contains(r.empty, name) {
		return // said already
	}
	r.problems = append(r.problems, r.origin(name).where+": "+fmt.Sprintf(format, args...))
}

func (r *resolver) text(name string) string {
	switch from := r.origin(name); from.kind {
	case fromEnv:
		return os.Getenv(from.where)
	case fromConfig:
		return fmt.Sprint(r.fromFiles(name))
	case fromFlag, fromDefault:
	}
	return r.flags.Lookup(name).Value.String()
}

func (r *resolver) list(name string) []string {
	switch from := r.origin(name); from.kind {
	case fromEnv: // one entry a line, as an expression may hold any other separator
		return strings.FieldsFunc(os.Getenv(from.where), func(c rune) bool { return c == '\n' })
	case fromConfig:
		entries, _ := r.fromFiles(name).([]any)
		out := make([]string, 0, len(entries))
		for _, e := range entries {
			out = append(out, fmt.Sprint(e))
		}
		return out
	case fromFlag, fromDefault:
	}
	return r.flags.Lookup(name).Value.(*listValue).values
}

func (r *resolver) toggle(name string) bool {
	v := r.text(name)
	on, err := parseToggle(v)
	if err != nil {
		r.problem(name, "%s", err)
	}
	return on
}

func parseToggle(v string) (bool, error) {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("want true or false, not %q", v)
	}
	return on, nil
}

func (r *resolver) choice(name string) string {
	v := r.text(name)
	if v == "" {
		return v
	}
	if err := checkChoice(v, r.row(name).choices); err != nil {
		r.problem(name, "%s", err)
	}
	return v
}

func checkChoice(v string, choices []string) error {
	if slices.Contains(choices, v) {
		return nil
	}
	return fmt.Errorf("want %s, not %q%s", orList(choices), v, didYouMean(v, choices))
}

func (r *resolver) duration(name string) time.Duration {
	v := r.text(name)
	if v == "" {
		return 0
	}
	d, err := parseDuration(v)
	if err != nil {
		r.problem(name, "%s", err)
	}
	return d
}

func (r *resolver) integer(name string, least int64) int64 {
	n, err := parseInteger(r.text(name), least)
	if err != nil {
		r.problem(name, "%s", err)
	}
	return n
}

// parseInteger reads a whole number. One that is too large saturates.
func parseInteger(v string, least int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(v, "-"):
		return math.MaxInt32, nil
	case err != nil:
		return least, fmt.Errorf("want a whole number, not %q", v)
	case n < least:
		return least, fmt.Errorf("must be at least %d, not %d", least, n)
	}
	return min(n, math.MaxInt32), nil
}

func (r *resolver) patterns(name string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, p := range r.list(name) {
		re, err := parsePattern(p)
		if err != nil {
			r.problem(name, "%s", err)
			continue
		}
		out = append(out, re)
	}
	return out
}

func parsePattern(p string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("bad pattern %q: %s", p, regexpProblem(err))
	}
	return re, nil
}

// parseDuration reads a duration with a unit. What is too long to hold
// saturates instead of wrapping.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && tooLong(s):
		return longest, nil
	case err != nil && isNumber(s):
		return 0, fmt.Errorf("%q has no unit; write %ss for seconds or %sm for minutes", s, s, s)
	case err != nil:
		return 0, fmt.Errorf("want a duration such as 500ms, 30s, 5m or 2h, not %q", s)
	case d < 0:
		return 0, fmt.Errorf("must not be negative, not %q", s)
	}
	return min(d, longest), nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// tooLong reports whether s is a well-formed duration of one number and one
// unit whose only fault is its size.
func tooLong(s string) bool {
	digits := strings.TrimRight(s, "nuµmsh")
	if digits == s || digits == "" || strings.Trim(digits, "0123456789.") != "" || strings.Count(digits, ".") > 1 {
		return false
	}
	_, err := time.ParseDuration("1" + s[len(digits):])
	return err == nil
}

// lastSecond is the end of the year 9999, the last one that RFC 3339 can write;
// milliseconds are beyond it.
const lastSecond = 253402300799

// parseDeadline reads an instant: RFC 3339, a duration from now, or Unix
// seconds of at least 10^9.
func parseDeadline(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if sec, err := strconv.ParseFloat(s, 64); err == nil && sec >= 1e9 && sec <= lastSecond {
		whole, frac := math.Modf(sec)
		return time.Unix(int64(whole), int64(frac*1e9)), nil
	}
	if d, err := parseDuration(s); err == nil {
		return now.Add(d).Round(0), nil // wall time, so that machine sleep counts
	}
	return time.Time{}, fmt.Errorf("want RFC 3339, a duration from now such as 10m, or Unix seconds, not %q", s)
}

// parseSize reads bytes: 4096, 64KiB, 10MB.
func parseSize(s string) (int64, error) {
	units := []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"B", 1}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n >= 0 && n <= math.MaxInt64/u.bytes {
			return n * u.bytes, nil
		}
	}
	return 0, fmt.Errorf("want a size such as 64KiB or 10MiB, not %q", s)
}

func regexpProblem(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

// settings reads and checks everything; the error names every problem.
func (r *resolver) settings() (*settings, error) {
	s := &settings{}
	r.refuseEmpty()
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

// refuseEmpty finds flags without a value that need one. An empty variable is
// one that is not set, but "--timeout $T" with an empty T is a mistake, and would
// be a run without a limit. No store is a choice.
func (r *resolver) refuseEmpty() {
	for _, row := range table() {
		f := r.flags.Lookup(row.name)
		if f != nil && f.Changed && f.Value.String() == "" && row.kind == text && row.name != "budget-store" {
			r.problem(row.name, "wants a value%s", instead(row.def))
			r.empty = append(r.empty, row.name)
		}
	}
}

func instead(def string) string {
	if def == "" {
		return ""
	}
	return "; without the flag it is " + def
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
	if p.Backoff.Max < p.Backoff.Delay {
		r.problem("max-delay", "must not be shorter than --delay: %s < %s", p.Backoff.Max, p.Backoff.Delay)
	}
	if v := r.text("deadline"); v != "" {
		t, err := parseDeadline(v, r.now)
		if err != nil {
			r.problem("deadline", "%s", err)
		}
		p.Deadline = t
	}
	p.RetryOn = r.classes()
	s.policy = p
}

func (r *resolver) multiplier() float64 {
	f, err := parseMultiplier(r.text("multiplier"))
	if err != nil {
		r.problem("multiplier", "%s", err)
	}
	return f
}

func parseMultiplier(v string) (float64, error) {
	f, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return 1, fmt.Errorf("want a number of at least 1, not %q", v)
	case f < 1:
		return 1, fmt.Errorf("must be at least 1, not %s", v)
	}
	return f, nil
}

func (r *resolver) classes() []classify.Class {
	if r.toggle("strict") {
		if o := r.origin("retry-on"); o.kind == fromFlag && r.origin("strict").kind == fromFlag {
			r.problem("strict", "is --retry-on transient and cannot stand beside another --retry-on")
		}
		return []classify.Class{classify.Transient}
	}
	out, err := parseClasses(r.text("retry-on"))
	if err != nil {
		r.problem("retry-on", "%s", err)
	}
	return out
}

// parseClasses reads a list of classes with commas between them.
func parseClasses(v string) ([]classify.Class, error) {
	var out []classify.Class
	for name := range strings.SplitSeq(v, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(classNames(), name) {
			return nil, fmt.Errorf("unknown class %q; the classes are %s%s", name, strings.Join(classNames(), ", "), didYouMean(name, classNames()))
		}
		out = append(out, classify.Class(name))
	}
	return out, nil
}

func classNames() []string {
	return []string{
		string(classify.Transient), string(classify.Permanent), string(classify.Config), string(classify.Correctable),
		string(classify.Ambiguous), string(classify.Unexpected), string(classify.Unknown),
	}
}

func (r *resolver) readJudgement(s *settings) {
	var short []classify.Rule
	s.rules, short = r.shortRules()
	for _, spec := range r.conf.rules {
		rule, err := classify.ParseRule(spec.text)
		if err != nil {
			r.problems = append(r.problems, fmt.Sprintf("%s: rules: %s", spec.where, err))
			continue
		}
		s.configRules = append(s.configRules, rule)
	}
	s.configRules = append(s.configRules, short...)
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

// shortRules turns the rule flags and their shorthands into rules, and keeps
// those of files apart, as they are of a lower rank. Within one source stop
// beats retry, so their order does not matter.
func (r *resolver) shortRules() (flags, files []classify.Rule) {
	add := func(name, spec string) {
		rule, err := classify.ParseRule(spec)
		switch {
		case err != nil:
			r.problem(name, "%s", err)
		case r.origin(name).kind == fromConfig:
			files = append(files, rule)
		default:
			flags = append(flags, rule)
		}
	}
	for _, spec := range r.list("rule") {
		add("rule", spec)
	}
	for _, short := range shorthands() {
		for _, v := range r.list(short.name) {
			add(short.name, short.rule(v))
		}
	}
	return flags, files
}

// shorthand is a flag that stands for a rule with one condition.
type shorthand struct {
	name  string
	class classify.Class
	test  string
}

func (s shorthand) rule(v string) string { return fmt.Sprintf("%s: %s=%s", s.class, s.test, v) }

func shorthands() []shorthand {
	return []shorthand{
		{"retry-exit", classify.Transient, "exit"},
		{"stop-exit", classify.Permanent, "exit"},
		{"retry-stderr", classify.Transient, "stderr"},
		{"stop-stderr", classify.Permanent, "stderr"},
		{"retry-stdout", classify.Transient, "stdout"},
		{"stop-stdout", classify.Permanent, "stdout"},
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
	if s.noBudget && r.origin("no-budget").kind == fromFlag && r.origin("budget").kind == fromFlag {
		r.problem("no-budget", "and --budget contradict each other; leave one out")
	}
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
	s.stateDir, s.stateDirOrigin = r.text("state-dir"), r.origin("state-dir")
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

// checkCancelFile refuses what RETRYX_CANCEL_FILE, a list with colons, cannot hold.
func checkCancelFile(path string) error {
	if path == "" || strings.Contains(path, ":") {
		return fmt.Errorf("want a path without a colon, not %q", path)
	}
	return nil
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
// Those of a file are for many commands.
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
		if os.Getenv(envHook) != "" && r.origin(string(h)).kind != fromFlag {
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
