package cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

const (
	journalName  = "outcomes.jsonl"
	journalLimit = 16 << 20
	journalWait  = 250 * time.Millisecond
)

// invocation is one run of retryx with everything that it was given. It is put
// together before the first attempt and does not change afterwards.
type invocation struct {
	env      Env
	voice    voice
	vars     map[string]string
	settings *settings
	in       inherited
	command  []string
	read     classify.Command
	places   places
	members  membership
	ledger   *budget.Ledger
	handed   handed
	hints    hints
	news     news
	redact   *redactor
	dest     *destination
	warnings []string
	started  time.Time
}

// run runs a command. It returns retryx's exit status, or does not return when
// retryx has to die by a signal.
func run(env Env, flags *pflag.FlagSet, command []string) int {
	inv, err := prepare(env, flags, command)
	if err != nil {
		return refuse(env, err)
	}
	at := proc.Stand()
	heard := listen(at == proc.Foreground)
	// Children are tied to the thread that starts them, so it must not go away
	// before we do. Not locked earlier, as every signal that is asked for would
	// then cost two switches of threads.
	runtime.LockOSThread()
	o, below := inv.execute(heard, at)
	end := inv.finish(o, below)
	if end.die != 0 {
		die(end.die)
	}
	return end.status
}

// refuse says why a command was not run, to the retryx above as well.
func refuse(env Env, err error) int {
	confess(env.variables()[envHint])
	return complain(env, err)
}

// complain says why nothing was done.
func complain(env Env, err error) int {
	if usage, ok := errors.AsType[*usageError](err); ok {
		for _, p := range usage.problems {
			for line := range strings.SplitSeq(p, "\n") {
				say(env.Stderr, "%s", line)
			}
		}
	} else {
		say(env.Stderr, "%s", err)
	}
	return exitOwn
}

func prepare(env Env, flags *pflag.FlagSet, command []string) (*invocation, error) {
	inv := &invocation{env: env, voice: voice{file: env.Stderr}, vars: env.variables(), command: command, started: time.Now()}
	s, conf, err := readSettings(inv.vars, flags, inv.started)
	if err != nil {
		return nil, err
	}
	inv.settings = s
	inv.in = inherit(inv.vars)
	inv.in.bound(&s.policy)
	inv.warnings = slices.Concat(conf.warnings, inv.in.warnings)
	inv.read = classify.ReadWith(command, s.ruleFiles)
	inv.redact = newRedactor(env.Environ, inv.read.SecretFlags, s.redact)
	inv.redact.observe(command, inv.read.Argv)
	inv.read.Tool = inv.redact.name(inv.read.Tool)
	if err := inv.openDestination(); err != nil {
		return nil, err
	}
	inv.identify()
	inv.places = findPlaces(inv.vars, s)
	inv.members = memberOf(s, inv.in, inv.places, inv.read.Tool)
	inv.ledger = newLedger(s, conf, inv.places, inv.members)
	inv.ledger.Run = runBudget(s, inv.handed.runID, inv.in)
	for _, m := range inv.ledger.Members {
		if b := m.Explicit.Bonus; b != nil && *b > bonusWarned {
			inv.warn("budget %s: a bonus of %s allows that much extra load for good; 0.25 is plenty", m.Name, b)
		}
	}
	if s.breaker && len(inv.ledger.Members) == 0 {
		inv.warn("there is no breaker: it stands in the record of a budget; name one with --budget")
	}
	inv.openPlaces()
	inv.hand()
	return inv, nil
}

// openDestination opens what the outcome is written to. A place that was named
// for a retryx above, by a variable or a file, may not be one of ours: its
// descriptors do not reach us.
func (inv *invocation) openDestination() error {
	s := inv.settings
	dest, err := openDestination(s.outcome, inv.env.Stderr)
	inv.dest = dest
	switch {
	case err == nil:
		return nil
	case s.outcomeOrigin.kind == fromFlag || !inv.in.nested:
		return &usageError{[]string{s.outcomeOrigin.where + ": " + err.Error()}}
	}
	inv.warn("%s: %s; the outcome goes to stderr", s.outcomeOrigin.where, err)
	s.outcome = destinationStderr
	inv.dest, err = openDestination(s.outcome, inv.env.Stderr)
	return err
}

// bonusWarned is the bonus above which a budget hardly limits anything: it is
// the share of extra load that it allows for good.
const bonusWarned = budget.Token / 4

// readSettings reads everything that the user said. The error names every
// problem, wherever it stands.
func readSettings(vars map[string]string, flags *pflag.FlagSet, now time.Time) (*settings, *configuration, error) {
	r, s, err := resolveSettings(vars, flags, now)
	if err != nil {
		return nil, nil, err
	}
	return s, r.conf, nil
}

func (inv *invocation) warn(format string, args ...any) {
	inv.warnings = append(inv.warnings, fmt.Sprintf(format, args...))
}

// identify gives the invocation its run id and its key.
func (inv *invocation) identify() {
	s, in := inv.settings, inv.in
	inv.handed.runID = firstOf(s.runID, in.runID)
	if inv.handed.runID == "" {
		inv.handed.runID = newID()
	}
	inv.handed.key = s.key
	if inv.handed.key != "" {
		return
	}
	if in.key == "" {
		inv.handed.key = newID()
		return
	}
	call := callHash(s.step, inv.command)
	n, err := inv.countCalls(call)
	if err != nil && s.step == "" {
		inv.warn("idempotency key: count equal calls: %s; the key is new, and a retry above will not repeat it; to name this call: --step", err)
		inv.handed.key = newID()
		return
	}
	inv.handed.key = deriveKey(in.key, call, n)
}

// countCalls is the ordinal of this call. A key from somebody who is no retryx
// stands for one call.
func (inv *invocation) countCalls(call [sha256.Size]byte) (int, error) {
	switch {
	case inv.in.hint != "":
		return ordinal(inv.in.hint, call)
	case inv.in.nested:
		return 0, errors.New("the retryx above has no place for it")
	}
	return 0, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// openPlaces readies the private directories. Without them the command runs all
// the same, only without hints and cancel news.
func (inv *invocation) openPlaces() {
	if err := inv.places.personalErr; err != nil {
		inv.warn("state directory: %s", err)
		return
	}
	id := newID()
	dir := inv.places.personal.Path
	h, err := openHints(dir, id)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			h, err = openHints(dir, id)
		}
	}
	if err != nil {
		inv.warn("hint file: %s", err)
		return
	}
	inv.hints = h
	if own := filepath.Join(dir, "cancel", id); checkCancelFile(own) == nil {
		inv.news.own = own
	} else {
		inv.warn("cancel news: the state directory has a colon in its path, so a cancel reaches the layers below by signal only")
	}
}

// hand puts together what every attempt is told.
func (inv *invocation) hand() {
	s, in := inv.settings, inv.in
	inv.news.watched = slices.Concat(in.cancelFiles, s.cancelFiles)
	h := &inv.handed
	h.deadline, h.killAfter = s.policy.Deadline, s.policy.KillAfter
	h.budgets, h.named, h.guarded = inv.members.names, inv.members.named, inv.guarded
	h.store, h.depth, h.hint = s.store, in.depth+1, inv.hints.path
	h.cancelFiles = inv.news.watched
	if inv.news.own != "" {
		h.cancelFiles = slices.Concat(h.cancelFiles, []string{inv.news.own})
	}
	if inv.places.err == nil {
		h.stateDir = inv.places.shared.Path
	}
}

// guarded is the budgets of whose breaker an attempt that starts now is the probe.
func (inv *invocation) guarded() []string {
	m := inv.members
	if !inv.ledger.Probing() {
		return m.guarded
	}
	return append(slices.Clip(m.guarded), m.guard)
}

// execute runs the engine. It returns as well the budgets whose breaker has heard
// of the last attempt from below.
func (inv *invocation) execute(heard signals, at proc.Standing) (o *exec.Outcome, told []string) {
	s := inv.settings
	shared := at == proc.Foreground
	c := &child{
		settings: s, command: inv.command, base: inv.env.Environ, handed: inv.handed, hints: inv.hints, guard: inv.members.guard,
		streams: newStreams(inv.env, s, inv.read, shared), group: proc.New,
	}
	if shared {
		c.group = proc.Shared
	}
	defer c.close()
	l := inv.lines(c)
	e := &exec.Engine{
		Policy: s.policy, Starter: c, Judge: c, Budget: inv.ledger,
		Admit: inv.admits(), Rand: rand.Float64, Cancels: heard.cancels, Signals: heard.others, Heard: hearing(),
		Caller: inv.caller(at), Token: inv.news.token(), Announce: inv.news.announce, Suspend: suspend,
		Observer: l, Countdown: l.screen && !l.quiet, HookTime: s.hookTime, Started: inv.started,
	}
	if len(s.hooks) > 0 {
		e.Hooks = &hookRunner{commands: s.hooks, child: c, stderr: inv.env.Stderr, redact: inv.redact, document: inv.document}
	}
	e.Deliver = func(o *exec.Outcome) {
		if c.lingers() {
			o.Warnings = append(o.Warnings, "stderr_left_open: something still writes to the command's stderr; use --capture none for daemons")
		}
		c.close()
		deliver(c.streams.due(o), o, heard)
	}
	o = runEngine(e, c)
	o.Warnings = append(o.Warnings, c.streams.warnings...)
	if inv.speaks(o) { // else stderr is the child's alone, to the last byte
		l.fresh()
	}
	return o, c.told
}

// runEngine is e.Run, but that a bug of ours ends in an outcome too, and leaves
// no command behind.
func runEngine(e *exec.Engine, c *child) (o *exec.Outcome) {
	defer func() {
		if bug := recover(); bug != nil {
			if c.last != nil {
				_ = c.last.Kill()
			}
			trace := debug.Stack()
			if p, ok := bug.(*exec.Panic); ok {
				trace = p.Stack
			}
			fmt.Fprintf(c.streams.stderr, "%s", trace)
			o = &exec.Outcome{
				Label: exec.HardFailure, Reason: exec.InternalError, Started: e.Started, Ended: time.Now(),
				Elapsed: time.Since(e.Started), Fault: fmt.Errorf("panic: %v; please report it with the lines above", bug),
			}
		}
	}()
	return e.Run()
}

// caller returns whoever waits for us, nil when nobody is looked at.
func (inv *invocation) caller(at proc.Standing) exec.Caller {
	if c := newCaller(inv.settings.policy.Orphan, inv.env.Parent, inv.env.Stdout, at); c != nil {
		return c
	}
	return nil
}

// admits reports whether the budgets have something to do before the first
// attempt. On the way of a plain success they are not touched.
func (inv *invocation) admits() bool {
	s := inv.settings
	if inv.members.guard != "" || s.runBudget != nil {
		return true
	}
	return slices.ContainsFunc(inv.ledger.Members, func(m budget.Member) bool { return !m.Explicit.Empty() })
}

func (inv *invocation) lines(c *child) *lines {
	s := inv.settings
	w := inv.env.Stderr
	return &lines{
		w: &inv.voice, quiet: s.quiet, verbose: s.verbose, screen: isScreen(w, inv.vars),
		paint: newPainter(s.color, w, inv.vars), redact: inv.redact, streams: c.streams,
		unclear: inv.effect() == classify.EffectUnknown && !s.idempotent, ci: newAnnotator(s.ci, &inv.voice, inv.vars),
		budget: inv.unpayable,
	}
}

// unpayable says that a budget can never pay for all the attempts that were
// asked for; "" when it can.
func (inv *invocation) unpayable() string {
	p := inv.settings.policy
	if left := time.Until(p.Deadline); !p.Deadline.IsZero() && (p.MaxElapsed == 0 || left < p.MaxElapsed) {
		p.MaxElapsed = max(left, 1)
	}
	for _, m := range inv.ledger.Members {
		params := m.Explicit.Apply(m.Params)
		if text := unpayable(p, params, float64(params.Capacity)); text != "" {
			return text
		}
	}
	return ""
}

func (inv *invocation) effect() classify.Effect {
	if e := inv.settings.effect; e != "" {
		return e
	}
	return inv.read.Effect
}

func (inv *invocation) facts(o *exec.Outcome) facts {
	s := inv.settings
	f := facts{
		command: inv.command, tool: inv.read.Tool, effect: inv.effect(), idempotent: s.idempotent,
		retrySet: s.policy.RetryOn, strict: s.strict, threshold: s.threshold, reconcile: s.policy.Reconcile, corrects: s.policy.Correct,
		step: s.step, runID: inv.handed.runID, key: inv.handed.key, depth: inv.in.depth,
		deadline: s.policy.Deadline, budgets: inv.ledger.Statuses(), breaker: inv.ledger.Breaker(),
		status: endingOf(o, s.success, os.Getpid() == 1), version: Version(), redact: inv.redact,
	}
	f.message = message(o, f)
	return f
}

func (inv *invocation) document(o *exec.Outcome) *document { return newDocument(o, inv.facts(o)) }

// finish writes the outcome to everyone who is to know it.
func (inv *invocation) finish(o *exec.Outcome, below []string) ending {
	s := inv.settings
	end := endingOf(o, s.success, os.Getpid() == 1)
	o.Warnings = slices.Concat(inv.warnings, inv.ledger.Warnings(), o.Warnings)
	if err := tellParent(inv.in.hint, o, inv.told(o, below)); err != nil {
		o.Warnings = append(o.Warnings, "tell the retryx above: "+err.Error())
	}
	if len(s.hooks) > 0 {
		inv.hints.clear()
	}
	doc := inv.document(o)
	if !s.noJournal && inv.places.personalErr == nil {
		if err := journalAt(inv.places).Append(context.Background(), journalWait, bytes.TrimSuffix(doc.full(), []byte("\n"))); err != nil {
			o.Warnings = append(o.Warnings, "journal: "+err.Error())
			doc = inv.document(o)
		}
	}
	if !atFirst(o) {
		inv.hints.sweep()
		inv.sayHow(o)
	}
	if !inv.writesOutcome(o) {
		return end
	}
	if err := inv.dest.write(doc); err != nil && !inv.dest.stderr {
		say(&inv.voice, "write outcome to %s: %s", s.outcome, err)
	}
	return end
}

// told is the budgets whose breaker has heard of this run, from us or from below,
// as far as the layer above means the same by their names.
func (inv *invocation) told(o *exec.Outcome, below []string) []string {
	m := inv.members
	counts := o.Last() != nil && (o.Label == exec.Success || o.Label == exec.RetryableFailure)
	switch {
	case !m.shared:
		return nil
	case !counts || m.guard == "" || slices.Contains(below, m.guard):
		return below
	default:
		return append(slices.Clip(below), m.guard)
	}
}

// atFirst reports whether the first attempt succeeded: then no line of ours is
// due. One that was reconciled had failed.
func atFirst(o *exec.Outcome) bool { return o.Reason == exec.Succeeded && o.AttemptCount == 1 }

// writesOutcome reports whether the outcome is asked for.
func (inv *invocation) writesOutcome(o *exec.Outcome) bool {
	s := inv.settings
	if s.outcomeOn == "failure" && o.Label == exec.Success {
		return false
	}
	return !s.quiet || !inv.dest.stderr || !atFirst(o)
}

// speaks reports whether something of ours follows on stderr at the end.
func (inv *invocation) speaks(o *exec.Outcome) bool {
	s := inv.settings
	return (!s.quiet && !atFirst(o)) || (inv.dest.stderr && inv.writesOutcome(o))
}

// sayHow writes the last line of our own: how it ended.
func (inv *invocation) sayHow(o *exec.Outcome) {
	s, f := inv.settings, inv.facts(o)
	text := f.message
	ci := newAnnotator(s.ci, &inv.voice, inv.vars)
	ci.sum(strings.Join(inv.redact.argv(inv.command), " "), string(o.Label), string(o.Reason), strconv.Itoa(o.AttemptCount), shortDuration(o.Elapsed))
	if s.quiet {
		return
	}
	if o.Label != exec.Success {
		level := "error"
		if inv.in.depth > 0 {
			level = "warning"
		}
		ci.annotate(level, f.tool+": "+string(o.Reason), text)
		text = newPainter(s.color, inv.env.Stderr, inv.vars).bad.Sprint(text)
	}
	say(&inv.voice, "%s", text)
}
