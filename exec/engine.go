package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/retryx/retryx/budget"
)

const (
	// TokenInterval is how often the cancel token is looked at during waits and
	// attempts; it is the only thing that is polled.
	TokenInterval = 50 * time.Millisecond
	// SameEvent is how close two signals are one: timeout(1), npm and closing
	// terminals send doubles.
	SameEvent = 100 * time.Millisecond
	// lastWord is how long the outcome hook may take after a cancel.
	lastWord = 2 * time.Second
	// pressesToKill is how many terminal interrupts end a child for good when
	// the terminal itself delivers them: the third, as the first two are the
	// child's to handle.
	pressesToKill = 3
)

// A Starter starts attempts.
type Starter interface {
	// Start starts attempt n. Its error is a *StartError when the command could
	// not be started; any other error is retryx's own failure.
	Start(Next) (Process, error)
}

// Next is what an attempt is told of its place in the run.
type Next struct {
	N        int
	Limit    int      // of attempts; each correction so far adds one
	Argv     []string // nil: the command as given; else what a corrector said
	Previous *Attempt // nil for the first
}

// A Process is one running attempt or hook. Its methods may be called in any
// order and at any time; after Done they do nothing.
type Process interface {
	Done() <-chan struct{}           // closed when it has ended and its output is read
	Result() Result                  // valid after Done
	Shared() bool                    // it shares the terminal's group with us
	Signal(sig syscall.Signal) error // forwards sig
	Terminate() error                // asks it to end; os.ErrProcessDone when it has, though its output may still be read
	Kill() error                     // ends it
	EndLeftovers() bool              // after Done: asks what it left to end, reports whether there is anything
	KillLeftovers()                  // ends what is left of it, returns when it is gone
}

// A Judge tells what kind of failure an attempt was.
type Judge interface {
	Judge(r Result, timedOut bool) Verdict
}

// A Budget pays for retries. Its methods are called one at a time; a done
// context ends their waits.
type Budget interface {
	Admit(ctx context.Context) budget.Decision
	Withdraw(ctx context.Context) budget.Decision
	Recheck(ctx context.Context) budget.Decision
	Refund(ctx context.Context)
	Settle(ctx context.Context, s budget.Settlement)
}

// Hook names a command of the user's that a run asks.
type Hook string

// The hooks.
const (
	HookReconcile   Hook = "reconcile"
	HookCorrect     Hook = "correct"
	HookBeforeRetry Hook = "before-retry"
	HookOnOutcome   Hook = "on-outcome"
)

// Hooks starts the user's hook commands.
type Hooks interface {
	// Has reports whether the hook was given.
	Has(h Hook) bool
	// Start starts the hook with the outcome so far on its stdin.
	Start(h Hook, so *Outcome) (Process, error)
	// Argv reads the corrector's answer.
	Argv(stdout []byte) ([]string, error)
}

// A Caller is whoever waits for the result.
type Caller interface {
	// Gone reports whether nobody waits any more. It answers at once.
	Gone() bool
	// Watch returns a channel that is closed when nobody waits any more. That
	// may come late, and where the system cannot tell it never comes.
	Watch() <-chan struct{}
}

// An Observer is told what a run does, while it does it.
type Observer interface {
	Retrying(r Retrying)
	Counting(left time.Duration) // once a second during a wait
	WaitOver()
}

// Retrying is a retry that was decided and paid for.
type Retrying struct {
	Attempt Attempt // the one that failed
	Limit   int     // of attempts; each correction so far adds one
	Wait    time.Duration
	Grant   budget.Decision
}

// Engine runs one command. Starter, Judge, Budget and Rand are required, the
// rest may be left zero.
type Engine struct {
	Policy    Policy
	Starter   Starter
	Judge     Judge
	Budget    Budget
	Admit     bool                             // ask the budget before the first attempt: it has parameters to write or a breaker
	Rand      func() float64                   // in [0,1)
	Cancels   <-chan os.Signal                 // INT, TERM, HUP and QUIT, apart so that no number of others crowds them out
	Signals   <-chan os.Signal                 // the others
	Heard     func()                           // returns when each signal that came before it is in its channel; nil: it always is
	Token     func() (reason string, set bool) // nil: no cancel token
	Caller    Caller
	Hooks     Hooks
	HookTime  time.Duration       // limit of one hook; 0: none
	Announce  func(reason string) // spreads the news of a cancel or a lost caller
	Suspend   func()              // stops this process until it is continued
	Deliver   func(so *Outcome)   // passes on output that was kept back; may change how it ended
	Observer  Observer
	Countdown bool      // Observer wants Counting
	Started   time.Time // the invocation's start; zero: now
}

// Run runs the command until the decision table ends it. It returns when the
// last attempt has ended, never before, and exactly one outcome on every path.
// The caller must have locked its goroutine to a thread that lives as long as
// the process (see proc.Start).
func (e *Engine) Run() *Outcome {
	r := e.start()
	if e.Token != nil {
		ticker := time.NewTicker(TokenInterval)
		defer ticker.Stop()
		r.tokenTick = ticker.C
	}
	r.loop()
	r.end()
	return &r.out
}

func (e *Engine) start() *run {
	r := &run{Engine: e, started: e.Started, deadline: wall(e.Policy.Deadline)}
	if r.started.IsZero() {
		r.started = time.Now()
	}
	r.out.Started, r.out.AttemptLimit = r.started, e.Policy.MaxAttempts
	if e.Caller != nil && e.Policy.Orphan != OrphanIgnore {
		r.gone = e.Caller.Watch()
	}
	return r
}

// run is the state of one Run; one goroutine owns it.
type run struct {
	*Engine
	out      Outcome
	started  time.Time
	deadline time.Time // as wall time; zero: none

	cancel     CancelCause
	cancelled  time.Time // when
	announced  bool
	callerGone bool
	gone       <-chan struct{}
	tokenTick  <-chan time.Time

	argv        []string // what a corrector made of the command
	corrections int
	answer      Answer
	grant       *budget.Decision
	paid        bool // a token is taken whose retry has not started
	wait        time.Duration
	left        Process // the failed attempt whose leftovers end during the wait
}

func (r *run) loop() {
	for d := r.admit(); ; {
		switch d.Action {
		case Start:
			if !r.attempt() {
				d = Decision{Label: HardFailure, Reason: InternalError}
				break
			}
			d = r.decide(AfterAttempt)
		case Ask:
			g := r.ask(r.Budget.Withdraw)
			r.grant, r.paid = &g, g.Granted
			d = r.decide(AfterAttempt)
		case Reconcile:
			r.reconcile()
			d = r.decide(AfterAttempt)
		case Correct:
			d = r.correct()
		case Retry:
			d = r.retry(r.wait)
		case StopNow:
			r.stop(d)
			return
		}
	}
}

func (r *run) admit() Decision {
	if r.Admit {
		g := r.ask(r.Budget.Admit)
		r.grant = &g
	}
	return r.decide(BeforeFirst)
}

// decide reads everything once and asks the table. A success stands against
// every cancel that comes after it, so those are not polled for.
func (r *run) decide(at Point) Decision {
	last := r.out.Last()
	if at != AfterAttempt || !last.Verdict.Succeeded {
		r.poll()
	}
	if at != BeforeFirst { // a success that nobody is there to receive counts as well
		r.lookForCaller()
	}
	s := Snapshot{
		Point: at, Cancelled: r.cancel, CallerGone: r.callerGone,
		Attempts: r.out.AttemptCount, Corrections: r.corrections,
		Wait: r.wait, Answer: r.answer, Grant: r.grant,
	}
	s.LeftElapsed, s.LeftDeadline = r.time()
	if last != nil {
		s.Verdict, s.StartErr, s.StdinConsumed = last.Verdict, last.Result.StartErr, last.Result.StdinConsumed
		if !last.TimedOut { // else its exit says nothing about its user or its reader
			s.Signal, s.Code = last.Result.Signal, last.Result.Code
		}
	}
	return Decide(r.Policy, s)
}

// time returns what is left of both ceilings. The deadline is wall time, so
// that machine sleep counts; elapsed is monotonic, so that it does not.
func (r *run) time() (elapsed, deadline time.Duration) {
	elapsed, deadline = NoCeiling, NoCeiling
	if r.Policy.MaxElapsed > 0 {
		elapsed = r.Policy.MaxElapsed - time.Since(r.started)
	}
	if !r.deadline.IsZero() {
		deadline = time.Until(r.deadline)
	}
	return elapsed, deadline
}

// wall strips the monotonic reading, with which a deadline of "ten minutes from
// now" would stand still while the machine sleeps.
func wall(t time.Time) time.Time { return t.Round(0) }

// attempt runs one attempt and judges it. It is false when retryx itself failed.
func (r *run) attempt() bool {
	a := Attempt{N: r.out.AttemptCount + 1, Started: time.Now(), Delay: -1}
	r.out.Killed, r.out.CutByCeiling = false, false
	p, err := r.Starter.Start(Next{N: a.N, Limit: r.out.AttemptLimit, Argv: r.argv, Previous: r.out.Last()})
	var start *StartError
	switch {
	case errors.As(err, &start):
		a.Result = Result{Code: -1, StartErr: start}
		r.refund() // the retry that was paid for never started
	case err != nil:
		r.out.Fault = err
		return false
	default:
		r.paid = false
		a.Result, a.TimedOut = r.attend(p, a.Started)
	}
	a.Elapsed = time.Since(a.Started)
	a.Verdict = r.Judge.Judge(a.Result, a.TimedOut)
	r.out.warn(a.Result.Warnings...)
	r.out.AttemptCount++
	r.out.Attempts = keep(r.out.Attempts, a)
	r.grant, r.answer = nil, NotAsked
	if !a.Verdict.Succeeded {
		stated := max(a.Verdict.RetryAfter, a.Verdict.MinWait)
		r.wait = r.Policy.Backoff.Wait(r.out.AttemptCount, r.Rand(), r.wait, stated)
	}
	return true
}

// attend sees an attempt's process to its end.
func (r *run) attend(started Process, from time.Time) (res Result, timedOut bool) {
	p := &running{Process: started, grace: r.Policy.KillAfter}
	if r.callerGone && r.Policy.Orphan == OrphanKill {
		_ = r.endProcess(p) // as if it had been lost a moment later: the moment decides nothing
	}
	timedOut, r.out.CutByCeiling = r.supervise(p, from, r.Policy.Timeout)
	res = p.Result()
	if r.Heard != nil && (res.Code != 0 || res.Signal != 0) {
		r.Heard() // else the end by a ^C may be seen before the ^C, and be retried
	}
	// What came before this instant came during the attempt, whichever of the
	// two the select happened to see first.
	r.news()
	r.out.CancelledInAttempt = r.cancel != NotCancelled // none starts after a cancel
	r.left = started
	// A KILL may also have been for what the command left behind.
	r.out.Killed = p.killed && res.Signal != 0
	return res, timedOut
}

// retry waits, with the failed attempt's leftovers ending meanwhile, and
// decides again.
func (r *run) retry(wait time.Duration) Decision {
	r.settleWait(wait)
	if r.has(HookBeforeRetry) && r.decide(BeforeRetry).Action == Start {
		r.tell(HookBeforeRetry)
	}
	if !r.over() {
		if g := r.ask(r.Budget.Recheck); g.Refusal == budget.BreakerOpen {
			r.grant = &g
		}
	}
	return r.decide(BeforeRetry)
}

func (r *run) settleWait(d time.Duration) {
	last := r.out.Last()
	last.Delay = d
	if r.Observer != nil {
		r.Observer.Retrying(Retrying{Attempt: *last, Limit: r.out.AttemptLimit, Wait: d, Grant: *r.grant})
		defer r.Observer.WaitOver()
	}
	from := time.Now()
	w := waiting{until: from.Add(d)}
	if r.Countdown && r.Observer != nil {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		w.second = ticker.C
	}
	if r.left != nil && r.left.EndLeftovers() {
		// What is still there after kill-after, or when the wait is over, goes.
		r.sleep(min(d, r.Policy.KillAfter), w)
		r.left.KillLeftovers()
	}
	r.left = nil // its group's number may be another's before the next wait
	r.sleep(time.Until(w.until), w)
	r.out.Slept += time.Since(from)
}

// correct asks the corrector and makes its answer the command.
func (r *run) correct() Decision {
	argv, err := r.corrected()
	c := Correction{After: r.out.Last().N, Argv: argv}
	if err != nil {
		c.Err = err.Error()
	}
	r.out.Corrections = append(r.out.Corrections, c)
	if d := r.decide(BeforeRetry); d.Action != Start {
		return d
	}
	if err != nil {
		return Decision{Action: StopNow, Row: 7, Label: HardFailure, Reason: CorrectableReason}
	}
	r.corrections++
	r.out.AttemptLimit++
	r.argv = argv
	return r.retry(0)
}

func (r *run) corrected() ([]string, error) {
	res, err := r.hook(HookCorrect)
	if err != nil {
		return nil, err
	}
	if res.Code != 0 {
		return nil, fmt.Errorf("the hook exited with %d", res.Code)
	}
	argv, err := r.Hooks.Argv(res.Stdout)
	if err == nil && len(argv) == 0 {
		err = errors.New("the hook printed an empty command")
	}
	return argv, err
}

// reconcile asks whether the write happened.
func (r *run) reconcile() {
	rec := &Reconciliation{After: r.out.Last().N, Answer: Unclear, Exit: -1}
	if res, err := r.hook(HookReconcile); err == nil {
		rec.Exit = res.Code
		switch res.Code {
		case 0:
			rec.Answer = Happened
		case 1:
			rec.Answer = DidNotTake
		}
	}
	r.answer, r.out.Reconciliation = rec.Answer, rec
}

// stop records how it ended and gives back what was not used.
func (r *run) stop(d Decision) {
	r.out.Label, r.out.Reason, r.out.Row = d.Label, d.Reason, d.Row
	if r.grant != nil && (d.Row == 13 || d.Row == 14) {
		r.out.Refusal = *r.grant
	}
	if last := r.out.Last(); last != nil && d.Reason == RetryAfterTooLong {
		r.out.StatedWait = last.Verdict.RetryAfter
	}
	r.refund()
}

func (r *run) refund() {
	if r.paid {
		r.paid = false
		r.Budget.Refund(context.Background())
	}
}

// end passes on what was kept back, settles with the budgets and lets the last
// hook speak.
func (r *run) end() {
	if r.Deliver != nil {
		r.Deliver(&r.out)
	}
	r.Budget.Settle(context.Background(), r.settlement())
	r.out.Ended = time.Now()
	r.out.Elapsed = time.Since(r.started)
	// It is decided: neither a cancel token nor the caller changes it any more.
	r.tokenTick, r.gone = nil, nil
	if r.has(HookOnOutcome) {
		r.tell(HookOnOutcome)
	}
}

// settlement is what the run means to its budgets: see budget.Settlement.
func (r *run) settlement() budget.Settlement {
	last := r.out.Last()
	switch {
	case last == nil, last.Verdict.Counted:
		return budget.Ignored
	case r.out.Label == Success && last.Verdict.Nested:
		return budget.Unpaid
	case r.out.Label == Success:
		return budget.Succeeded
	case r.out.Label == RetryableFailure:
		return budget.Failed
	default:
		return budget.Ignored
	}
}
