package exec

// Everything that a run waits for, and the one select that it waits in.
//
//   - The first INT, TERM, HUP or QUIT cancels. It is forwarded once; a second
//     signal within SameEvent is the same event; HUP never escalates; any other
//     later one is forwarded and followed by KILL after EscalateAfter.
//   - In the terminal's own group the terminal has told the child already: INT
//     and QUIT are not forwarded and start no kill timer; the third one kills.
//   - A limit or a cancel token ends a process with TERM, then, after
//     KillAfter, with KILL. A cancel is forwarded once, whichever way it came.
//   - A KILL that is due may come sooner, never later: news does not buy time.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/budget"
)

// running is the process at hand, and how far its end has come.
type running struct {
	Process
	grace   time.Duration // between TERM and KILL
	ending  bool          // it was asked to end
	killed  bool          // it was sent KILL
	presses int           // terminal interrupts that it had from the terminal itself
	kill    *time.Timer   // nil: none is due
	killAt  time.Time
}

func (p *running) arm(d time.Duration) {
	at := time.Now().Add(d)
	if p.kill != nil && p.killAt.Before(at) {
		return
	}
	p.disarm()
	p.kill, p.killAt = time.NewTimer(d), at
}

func (p *running) disarm() {
	if p.kill != nil {
		p.kill.Stop()
		p.kill = nil
	}
}

// due is when KILL is: never without a process or a reason.
func (p *running) due() <-chan time.Time {
	if p == nil || p.kill == nil {
		return nil
	}
	return p.kill.C
}

func (p *running) hasEnded() bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

type event int

const (
	ended       event = iota // what was waited for has come
	timeUp                   // the timer has fired
	interrupted              // with no process at hand: the run is over
)

// waiting is what one await waits for. A nil channel never comes.
type waiting struct {
	p      *running // the process at hand, nil during a wait
	done   <-chan struct{}
	timer  <-chan time.Time
	second <-chan time.Time // the countdown's
	until  time.Time        // what it counts down to
}

// await is the engine's only select.
func (r *run) await(w waiting) event {
	for {
		select {
		case <-w.done:
			return ended
		case <-w.timer:
			return timeUp
		case sig := <-r.Cancels:
			r.cancelledBy(w.p, sig)
		case sig := <-r.Signals:
			r.signalled(w.p, sig)
		case <-w.p.due():
			r.killNow(w.p)
		case <-r.tokenTick:
			r.lookAtToken(w.p)
		case <-r.gone:
			r.lost(w.p)
		case <-w.second:
			r.Observer.Counting(time.Until(w.until))
		}
		if w.p == nil && r.over() {
			return interrupted
		}
	}
}

// over reports whether nothing more is to be waited for. A lost caller does not
// refuse the first attempt, so until then it ends no wait.
func (r *run) over() bool {
	return r.cancel != NotCancelled || (r.callerGone && r.out.AttemptCount > 0)
}

// supervise waits until p has ended. It ends p when timeout (0: none) since
// from is over, or a ceiling of the run has passed.
func (r *run) supervise(p *running, from time.Time, timeout time.Duration) (timedOut, ceiling bool) {
	defer p.disarm()
	for {
		left, isCeiling := r.limit(from, timeout)
		if left <= 0 {
			timedOut = r.cut(p)
			r.await(waiting{p: p, done: p.Done()})
			return timedOut, timedOut && isCeiling
		}
		if r.awaitFor(p, left) == ended {
			return false, false
		}
	}
}

// cut ends p because a limit has passed. It is false when the limit came too
// late to be what ended it: it had ended, or was being ended already.
func (r *run) cut(p *running) bool {
	if p.ending || p.hasEnded() {
		return false
	}
	return !errors.Is(r.endProcess(p), os.ErrProcessDone)
}

// awaitFor awaits p for at most d. A deadline is wall time: after a step of
// the clock it may not have passed yet when the timer fires.
func (r *run) awaitFor(p *running, d time.Duration) event {
	if d == NoCeiling {
		return r.await(waiting{p: p, done: p.Done()})
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return r.await(waiting{p: p, done: p.Done(), timer: timer.C})
}

// limit returns how long a process that was started at from may still run, and
// whether it is a ceiling of the run that says so.
func (r *run) limit(from time.Time, timeout time.Duration) (left time.Duration, ceiling bool) {
	left = min(r.time())
	ceiling = left != NoCeiling
	if timeout > 0 {
		if t := timeout - time.Since(from); t < left {
			return t, false
		}
	}
	return left, ceiling
}

// sleep waits for d, or until the run is over.
func (r *run) sleep(d time.Duration, w waiting) {
	if r.over() {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	w.timer = timer.C
	r.await(w)
}

// A Panic is what Run panics with when the budget did, in a goroutine of its own.
type Panic struct {
	Value any
	Stack []byte // of that goroutine
}

func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// ask puts a question to the budget. A cancel ends the wait for its locks.
func (r *run) ask(question func(context.Context) budget.Decision) budget.Decision {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var answer budget.Decision
	var bug *Panic
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				bug = &Panic{value, debug.Stack()}
			}
		}()
		answer = question(ctx)
	}()
	if r.await(waiting{done: done}) == interrupted {
		cancel()
		<-done
	}
	if bug != nil {
		panic(bug)
	}
	return answer
}

// poll takes in what has happened, without waiting for anything.
func (r *run) poll() {
	r.news()
	r.lookAtToken(nil)
}

// news is poll without the cancel token.
func (r *run) news() {
	for {
		select {
		case sig := <-r.Cancels:
			r.cancelledBy(nil, sig)
		case sig := <-r.Signals:
			r.signalled(nil, sig)
		case <-r.gone:
			r.lost(nil)
		default:
			return
		}
	}
}

// signalled takes in a signal that cancels nothing, with p the process at hand or
// nil.
func (r *run) signalled(p *running, sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok || s == syscall.SIGPIPE { // caught so that a closed stderr does not kill us
		return
	}
	pass(p, s)
	if s == syscall.SIGTSTP && r.Suspend != nil {
		r.Suspend()
	}
}

// pass forwards a signal that ends nothing. Whether p could be told is not ours
// to know.
func pass(p *running, s syscall.Signal) {
	if p != nil {
		_ = p.Signal(s)
	}
}

// cancelledBy takes in a signal that cancels.
func (r *run) cancelledBy(p *running, sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	first := r.cancel == NotCancelled
	if first {
		r.cancel, r.cancelled = CancelledBySignal, time.Now()
		r.out.CancelSignal = s
		r.announce(unix.SignalName(s))
	}
	if p == nil {
		return
	}
	fromTerminal := p.Shared() && (s == syscall.SIGINT || s == syscall.SIGQUIT)
	switch {
	case first && fromTerminal:
		p.presses = 1
	case first:
		r.forward(p, s, p.grace)
	case time.Since(r.cancelled) < SameEvent || s == syscall.SIGHUP:
	case fromTerminal:
		if p.presses++; p.presses >= pressesToKill {
			r.killNow(p)
		}
	default:
		r.forward(p, s, r.Policy.EscalateAfter)
	}
}

// forward hands p a signal that is to end it, and sees to it that it does. A
// stopped process keeps a signal pending, so it is continued as well; in the
// terminal's group that is the user's to do.
func (r *run) forward(p *running, s syscall.Signal, grace time.Duration) {
	p.ending = true
	r.check(p.Signal(s))
	if !p.Shared() {
		r.check(p.Signal(syscall.SIGCONT))
	}
	p.arm(grace)
}

// lookAtToken cancels the run when the cancel token is set.
func (r *run) lookAtToken(p *running) {
	if r.Token == nil || r.cancel != NotCancelled {
		return
	}
	reason, set := r.Token()
	if !set {
		return
	}
	r.cancel, r.cancelled = CancelledByToken, time.Now()
	r.out.CancelReason = reason
	r.announce(reason)
	if p != nil {
		_ = r.endProcess(p)
	}
}

// lookForCaller asks whether the caller is there, so that how fast its watcher is
// never decides the result.
func (r *run) lookForCaller() {
	if r.gone != nil && r.Caller.Gone() {
		r.lost(nil)
	}
}

// lost takes in that the caller is gone.
func (r *run) lost(p *running) {
	r.callerGone, r.gone = true, nil
	r.announce(string(CallerGone))
	if p != nil && r.Policy.Orphan == OrphanKill {
		_ = r.endProcess(p)
	}
}

func (r *run) announce(reason string) {
	if r.Announce != nil && !r.announced {
		r.announced = true
		r.Announce(reason)
	}
}

// endProcess asks p to end, and sees to it that it does. Its error is that of
// the asking, nil when p is being ended already.
func (r *run) endProcess(p *running) error {
	if p.ending {
		return nil
	}
	p.ending = true
	err := p.Terminate()
	r.check(err)
	p.arm(p.grace)
	return err
}

func (r *run) killNow(p *running) {
	p.disarm()
	if p.hasEnded() {
		return
	}
	p.ending, p.killed = true, true
	r.check(p.Kill())
}

// check notes a process that we may not end (it changed its user): we go on
// waiting, as no attempt may start while it lives.
func (r *run) check(err error) {
	if errors.Is(err, syscall.EPERM) {
		r.out.warn("timeout_not_enforced: no permission to signal the command")
	}
}
