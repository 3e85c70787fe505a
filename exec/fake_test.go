package exec_test

// A scripted world for the engine: processes, budget, judge, hooks and caller
// that do what a scene says at exact instants, and a log of what the engine did
// to them. Every scene, whatever it is about, is also held to the invariants of
// the package (see violations).

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const forever = time.Duration(1<<63 - 1)

// script is what one process does.
type script struct {
	lasts  time.Duration // then it exits with code
	code   int
	signal syscall.Signal // ends it instead of an exit
	out    string         // its stdout

	deaf    bool          // only KILL ends it
	dies    time.Duration // how long it takes to obey any other ending signal
	traps   bool          // it answers those with an exit with trapped
	trapped int

	shared   bool // lives in the terminal's group
	eperm    bool // signals fail and do nothing
	exited   bool // has ended already when asked to, though Done is still to come
	leaves   bool // leaves something behind
	startErr error
	result   exec.Result // merged into the result: warnings, stdin, tails

	verdict exec.Verdict  // class defaults to transient
	onStart func(*world)  // an event in the very instant of the start
	onJudge func(*world)  // an event while its result is judged
	stalls  time.Duration // how long judging takes
}

// scene is one run and what is expected of it.
type scene struct {
	name      string
	policy    exec.Policy
	deadline  time.Duration // from the start of the scene; 0: none
	attempts  []script      // the last one repeats
	hooks     map[exec.Hook]script
	hookTime  time.Duration
	events    []event
	caller    bool // there is a caller to lose
	token     bool // there is a cancel token to look at
	admit     bool
	bank      bank
	started   time.Duration           // how long ago the invocation started
	dice      float64                 // 0 unless told
	watch     bool                    // with an Observer and a countdown
	suspends  time.Duration           // how long a suspended run stays so
	heard     func(*world)            // what is still to be handed on when the run asks for it
	delivered func(out *exec.Outcome) // what becomes of output that was kept back

	show string // the verbs of the log that want holds
	log  string // the log: one "instant verb what" a line
	want string // "label: reason (row N)"
	also func(*testing.T, *exec.Outcome)
}

type event struct {
	at time.Duration
	do func(*world)
}

func send(at time.Duration, s syscall.Signal) event {
	return event{at, func(w *world) { w.deliver(s) }}
}

func loseCaller(at time.Duration) event {
	return event{at, func(w *world) { close(w.gone) }}
}

func setToken(at time.Duration, reason string) event {
	return event{at, func(w *world) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tokenReason, w.tokenSet = reason, true
		w.cancelOnce()
	}}
}

// bank is the budget. Answers default to grants; the last of a list repeats.
type bank struct {
	admits, withdrawals, rechecks []budget.Decision
	blocks                        string // "admit", "withdraw" or "recheck": waits until told to stop
	takes                         time.Duration
	deaf                          bool // a withdrawal takes its time whatever it is told
}

func granted() budget.Decision { return budget.Decision{Granted: true, Budget: "b", Tokens: 19} }

func refusal(r budget.Refusal) budget.Decision { return budget.Decision{Refusal: r, Budget: "b"} }

type world struct {
	scene
	begin   time.Time
	cancels chan os.Signal
	signals chan os.Signal
	gone    chan struct{}

	mu          sync.Mutex
	lines       []string
	faults      []string
	starts      int
	looked      int
	alive       map[*process]bool
	current     script
	tokenSet    bool
	tokenReason string
	cancelledAt time.Time
	paid        int
	unstarted   int
	refunds     int
	settlements []budget.Settlement
	announced   []string
	counts      []time.Duration
	retries     []exec.Retrying
	nexts       []exec.Next
}

func newWorld(s scene) *world {
	if s.deadline != 0 {
		s.policy.Deadline = time.Now().Add(s.deadline)
	}
	return &world{
		scene: s, begin: time.Now(), alive: map[*process]bool{},
		cancels: make(chan os.Signal, 16), signals: make(chan os.Signal, 16), gone: make(chan struct{}),
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, time.Since(w.begin).String()+" "+fmt.Sprintf(format, args...))
}

func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf("%v: ", time.Since(w.begin))+fmt.Sprintf(format, args...))
}

func (w *world) deliver(s syscall.Signal) {
	if s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT {
		w.mu.Lock()
		w.cancelOnce()
		w.mu.Unlock()
		w.cancels <- s
		return
	}
	w.signals <- s
}

func (w *world) cancelOnce() {
	if w.cancelledAt.IsZero() {
		w.cancelledAt = time.Now()
	}
}

// run plays the scene. It must be called in a synctest bubble.
func (w *world) run() *exec.Outcome {
	e := &exec.Engine{
		Policy: w.policy, Starter: w, Judge: w, Budget: w, Admit: w.admit,
		Rand:     func() float64 { return w.dice },
		Cancels:  w.cancels,
		Signals:  w.signals,
		Announce: func(reason string) { w.announced = append(w.announced, reason); w.note("announce %s", reason) },
		Suspend: func() {
			w.note("suspend")
			<-time.NewTimer(w.suspends).C
		},
		HookTime: w.hookTime,
	}
	if w.caller {
		e.Caller = w
	}
	if w.heard != nil {
		e.Heard = func() { w.heard(w) }
	}
	if w.delivered != nil {
		e.Deliver = w.delivered
	}
	if w.token {
		e.Token = w.lookAtToken
	}
	if w.hooks != nil {
		e.Hooks = hooks{w}
	}
	if w.watch {
		e.Observer, e.Countdown = w, true
	}
	if w.started > 0 {
		e.Started = w.begin.Add(-w.started)
	}
	for _, ev := range w.events {
		timer := time.AfterFunc(ev.at, func() { ev.do(w) })
		defer timer.Stop()
	}
	out := e.Run()
	w.note("end")
	return out
}

func (w *world) Watch() <-chan struct{} { return w.gone }

func (w *world) Gone() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

func (w *world) lookAtToken() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked++
	return w.tokenReason, w.tokenSet
}

func (w *world) Retrying(r exec.Retrying) {
	w.retries = append(w.retries, r)
	w.note("retrying in %v", r.Wait)
}
func (w *world) Counting(left time.Duration) { w.counts = append(w.counts, left) }
func (w *world) WaitOver()                   { w.note("over") }

// Start starts the next scripted attempt, and minds that it is allowed.
func (w *world) Start(n exec.Next) (exec.Process, error) {
	w.mu.Lock()
	s := nth(w.attempts, w.starts)
	w.starts++
	w.current = s
	w.nexts = append(w.nexts, n)
	first := w.starts == 1
	w.mu.Unlock()
	w.mindStart(n)
	if s.startErr != nil {
		w.note("fail %d", n.N)
		return nil, s.startErr
	}
	if !first {
		w.mu.Lock()
		w.unstarted--
		w.mu.Unlock()
	}
	return w.launch(fmt.Sprint(n.N), s, n.Argv), nil
}

func (w *world) mindStart(n exec.Next) {
	w.mu.Lock()
	alive := len(w.alive)
	w.mu.Unlock()
	if alive > 0 {
		w.fault("attempt %d started while another process lives", n.N)
	}
	if w.cancelledBefore() {
		w.fault("attempt %d started after a cancel", n.N)
	}
	if c := w.policy.MaxElapsed; c > 0 && time.Since(w.begin)+w.started >= c {
		w.fault("attempt %d started past the elapsed ceiling", n.N)
	}
	if d := w.policy.Deadline; !d.IsZero() && !time.Now().Before(d) {
		w.fault("attempt %d started past the deadline", n.N)
	}
	if n.N > 1 && w.unstarted != 1 {
		w.fault("attempt %d started with %d tokens paid for it, want 1", n.N, w.unstarted)
	}
	if n.N != w.starts {
		w.fault("attempt is told it is number %d, want %d", n.N, w.starts)
	}
}

func (w *world) launch(name string, s script, argv []string) *process {
	p := &process{w: w, name: name, s: s, done: make(chan struct{})}
	w.mu.Lock()
	w.alive[p] = true
	w.mu.Unlock()
	w.note("%s", strings.TrimSpace("start "+name+" "+strings.Join(argv, " ")))
	if s.onStart != nil {
		s.onStart(w)
	}
	if s.lasts < forever {
		p.ends(s.lasts, s.code, s.signal)
	}
	return p
}

// Judge takes a process at its word: code 0 is a success, all else is the
// script's class.
func (w *world) Judge(r exec.Result, timedOut bool) exec.Verdict {
	w.mu.Lock()
	s := w.current
	w.mu.Unlock()
	if s.onJudge != nil {
		s.onJudge(w)
	}
	if s.stalls > 0 {
		<-time.NewTimer(s.stalls).C
	}
	v := s.verdict
	v.Succeeded = r.StartErr == nil && r.Code == 0 && r.Signal == 0 && !timedOut
	if v.Class == "" {
		v.Class = classify.Transient
	}
	return v
}

func (w *world) Admit(ctx context.Context) budget.Decision {
	return w.answer(ctx, "admit", w.bank.admits)
}

func (w *world) Withdraw(ctx context.Context) budget.Decision {
	d := w.answer(ctx, "withdraw", w.bank.withdrawals)
	if d.Granted {
		w.paid++
		w.unstarted++
	}
	return d
}

func (w *world) Recheck(ctx context.Context) budget.Decision {
	return w.answer(ctx, "recheck", w.bank.rechecks)
}

func (w *world) answer(ctx context.Context, question string, list []budget.Decision) budget.Decision {
	w.note("%s", question)
	if w.bank.blocks == question {
		<-ctx.Done()
		return budget.Decision{}
	}
	if w.bank.takes > 0 {
		timer := time.NewTimer(w.bank.takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			if !w.bank.deaf {
				return budget.Decision{}
			}
			<-timer.C
		}
	}
	if len(list) == 0 {
		return granted()
	}
	return nth(list, w.asked(question)-1)
}

func (w *world) asked(question string) (times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lines {
		if strings.HasSuffix(l, " "+question) {
			times++
		}
	}
	return times
}

func (w *world) Refund(context.Context) {
	w.note("refund")
	w.refunds++
	w.unstarted--
	if w.unstarted < 0 {
		w.fault("refund of a token that was not paid, or was used")
	}
}

func (w *world) Settle(_ context.Context, s budget.Settlement) {
	w.note("settle %d", s)
	w.settlements = append(w.settlements, s)
}

// free is a budget that grants everything.
type free struct{}

func (free) Admit(context.Context) budget.Decision     { return granted() }
func (free) Withdraw(context.Context) budget.Decision  { return granted() }
func (free) Recheck(context.Context) budget.Decision   { return granted() }
func (free) Refund(context.Context)                    {}
func (free) Settle(context.Context, budget.Settlement) {}

func nth[T any](list []T, i int) T { return list[min(i, len(list)-1)] }

type process struct {
	w      *world
	name   string
	s      script
	done   chan struct{}
	once   sync.Once
	result exec.Result
}

func (p *process) ends(after time.Duration, code int, sig syscall.Signal) {
	time.AfterFunc(after, func() { p.end(code, sig) })
}

func (p *process) end(code int, sig syscall.Signal) {
	p.once.Do(func() {
		p.result = p.s.result
		p.result.Code, p.result.Signal = code, sig
		if sig != 0 {
			p.result.Code = -1
		}
		if p.s.out != "" {
			p.result.Stdout = []byte(p.s.out)
		}
		p.w.mu.Lock()
		delete(p.w.alive, p)
		p.w.mu.Unlock()
		close(p.done)
	})
}

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Result() exec.Result {
	select {
	case <-p.done:
	default:
		p.w.fault("Result of %s asked before its end", p.name)
	}
	return p.result
}

func (p *process) Shared() bool { return p.s.shared }

func (p *process) Signal(s syscall.Signal) error {
	p.w.note("signal %s %s", p.name, strings.ReplaceAll(s.String(), " ", "-"))
	if s == syscall.SIGCONT || s == syscall.SIGTSTP || s == syscall.SIGUSR1 || s == syscall.SIGWINCH {
		return p.refuses()
	}
	return p.obey(s)
}

func (p *process) Terminate() error {
	p.w.note("term %s", p.name)
	if p.s.exited {
		return os.ErrProcessDone
	}
	return p.obey(syscall.SIGTERM)
}

func (p *process) Kill() error {
	p.w.note("kill %s", p.name)
	if err := p.refuses(); err != nil {
		return err
	}
	p.end(-1, syscall.SIGKILL)
	return nil
}

func (p *process) refuses() error {
	if p.s.eperm {
		return fmt.Errorf("signal process: %w", syscall.EPERM)
	}
	return nil
}

func (p *process) obey(s syscall.Signal) error {
	if err := p.refuses(); err != nil || p.s.deaf {
		return err
	}
	if p.s.traps {
		p.ends(p.s.dies, p.s.trapped, 0)
	} else {
		p.ends(p.s.dies, -1, s)
	}
	return nil
}

func (p *process) EndLeftovers() bool {
	if p.s.leaves {
		p.w.note("sweep %s", p.name)
	}
	return p.s.leaves
}

func (p *process) KillLeftovers() {
	if !p.s.leaves {
		p.w.fault("leftovers of %s killed, there are none", p.name)
	}
	p.w.note("wipe %s", p.name)
}

type hooks struct{ w *world }

func (h hooks) Has(k exec.Hook) bool { _, ok := h.w.hooks[k]; return ok }

func (h hooks) Start(k exec.Hook, so *exec.Outcome) (exec.Process, error) {
	if so == nil {
		h.w.fault("hook %s got no outcome", k)
	}
	if decided := so.Label != ""; decided != (k == exec.HookOnOutcome) {
		h.w.fault("hook %s started with the outcome decided: %v", k, decided)
	}
	if k != exec.HookOnOutcome && h.w.cancelledBefore() {
		h.w.fault("hook %s started after a cancel", k)
	}
	s := h.w.hooks[k]
	if s.startErr != nil {
		return nil, s.startErr
	}
	return h.w.launch(string(k), s, nil), nil
}

func (h hooks) Argv(stdout []byte) ([]string, error) {
	if string(stdout) == "nonsense" {
		return nil, errors.New("not a list")
	}
	return strings.Fields(string(stdout)), nil
}

func (w *world) cancelledBefore() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cancelledAt.IsZero() && time.Now().After(w.cancelledAt)
}

// violations are the invariants that hold in every world.
func (w *world) violations(out *exec.Outcome) []string {
	list := w.faults
	bad := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	labels := []exec.Label{exec.Success, exec.RetryableFailure, exec.HardFailure, exec.Cancelled, exec.Abandoned}
	if !slices.Contains(labels, out.Label) || out.Reason == "" {
		bad("outcome is %q: %q", out.Label, out.Reason)
	}
	if len(w.alive) > 0 {
		bad("the run ended while %d processes live", len(w.alive))
	}
	if len(w.settlements) != 1 {
		bad("settled %d times, want 1", len(w.settlements))
	}
	if w.unstarted != 0 {
		bad("%d tokens neither used nor refunded", w.unstarted)
	}
	if out.AttemptCount != w.starts && out.Fault == nil {
		bad("outcome counts %d attempts, want %d", out.AttemptCount, w.starts)
	}
	if len(w.announced) > 1 {
		bad("announced %q, want one piece of news", w.announced)
	}
	if out.Elapsed < 0 || out.Slept > out.Elapsed || out.Ended.Before(out.Started) || out.Ended.IsZero() {
		bad("elapsed %v, slept %v, from %v to %v", out.Elapsed, out.Slept, out.Started, out.Ended)
	}
	if last := out.Last(); last != nil && out.Label == exec.Success && out.Reason == exec.Succeeded && last.TimedOut {
		bad("a success that timed out")
	}
	return list
}

// play runs the scene and checks everything that it expects.
func play(t *testing.T, s scene) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := newWorld(s)
		check(t, w, w.run())
	})
}

func check(t *testing.T, w *world, out *exec.Outcome) {
	t.Helper()
	for _, v := range w.violations(out) {
		t.Error(v)
	}
	if got := fmt.Sprintf("%s: %s (row %d)", out.Label, out.Reason, out.Row); w.want != "" && got != w.want {
		t.Errorf("Run() = %s, want %s", got, w.want)
	}
	if w.show != "" {
		if diff := cmp.Diff(tidy(w.log), strings.Join(w.shown(), "\n")); diff != "" {
			t.Errorf("what the engine did (-want +got):\n%s", diff)
		}
	}
	if w.also != nil {
		w.also(t, out)
	}
}

func (w *world) shown() []string {
	verbs := strings.Fields(w.show)
	var lines []string
	for _, l := range w.lines {
		if slices.Contains(verbs, strings.Fields(l)[1]) {
			lines = append(lines, l)
		}
	}
	return lines
}

func tidy(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

func playAll(t *testing.T, scenes []scene) {
	t.Helper()
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) { play(t, s) })
	}
}

// hourly is a policy with room for everything and an hour between attempts.
func hourly() exec.Policy {
	return exec.Policy{
		MaxAttempts:   4,
		Backoff:       exec.Backoff{Delay: time.Hour, Max: time.Hour, Multiplier: 2, Jitter: exec.JitterNone},
		MaxRetryAfter: 24 * time.Hour,
		KillAfter:     5 * time.Second,
		EscalateAfter: 200 * time.Millisecond,
		RetryOn:       []classify.Class{classify.Transient, classify.Unknown},
		Orphan:        exec.OrphanStop,
	}
}

// with changes a policy in place.
func with(p exec.Policy, change func(*exec.Policy)) exec.Policy {
	change(&p)
	return p
}

// fails is an attempt that fails at once in a way worth retrying.
func fails() script { return script{lasts: time.Millisecond, code: 7} }

func succeeds() script { return script{lasts: time.Millisecond} }

// runs is an attempt that goes on until it is ended.
func runs() script { return script{lasts: forever} }
