package exec_test

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// TestChaos draws whole runs, with everything happening at any time, and holds
// them to the invariants that every scene is held to: attempts never overlap
// and never start after a cancel or past a ceiling, each retry is paid for,
// each token is used or refunded once, the budget is settled once, nothing
// lives on, nothing leaks (synctest minds that), and the run ends.
func TestChaos(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		var broken []string
		var out *exec.Outcome
		var lines []string
		synctest.Test(t, func(*testing.T) {
			w := newWorld(s)
			out = w.run()
			broken = append(w.violations(out), w.tardy(out)...)
			lines = w.lines
		})
		if len(broken) > 0 {
			for _, l := range lines {
				rt.Log(l)
			}
			rt.Fatalf("%q\n%+v", broken, out)
		}
	})
}

// tardy tells of a run that went on although it had no reason to: each process
// obeys KILL in these worlds, so a cancel bounds what is left.
func (w *world) tardy(out *exec.Outcome) []string {
	if out.Label != exec.Cancelled || w.cancelledAt.IsZero() {
		return nil
	}
	most := w.policy.KillAfter + exec.TokenInterval
	if late := out.Ended.Sub(w.cancelledAt); late > most && !w.anyShared() {
		return []string{"the run ended " + late.String() + " after the cancel"}
	}
	return nil
}

func (w *world) anyShared() bool {
	for _, s := range w.attempts {
		if s.shared {
			return true
		}
	}
	return false
}

func drawScene(t *rapid.T) scene {
	s := scene{
		policy: exec.Policy{
			MaxAttempts: rapid.IntRange(1, 5).Draw(t, "max attempts"),
			Backoff: exec.Backoff{
				Delay: drawTime(t, "delay", 3*time.Second), Max: 5 * time.Second, Multiplier: 2,
				Jitter: rapid.SampledFrom([]exec.Jitter{exec.JitterNone, exec.JitterFull, exec.JitterDecorrelated}).Draw(t, "jitter"),
			},
			MaxRetryAfter: 10 * time.Second, MinAttempt: drawTime(t, "min attempt", time.Second),
			MaxElapsed: ceiling(t, "max elapsed"), Timeout: maybe(t, "timeout", 4*time.Second),
			KillAfter: drawTime(t, "kill after", 3*time.Second), EscalateAfter: 200 * time.Millisecond,
			RetryOn:        []classify.Class{classify.Transient, classify.Unknown},
			MaxCorrections: rapid.IntRange(0, 3).Draw(t, "max corrections"),
			Orphan:         rapid.SampledFrom([]exec.OrphanMode{exec.OrphanStop, exec.OrphanKill, exec.OrphanIgnore}).Draw(t, "orphan"),
		},
		deadline: ceiling(t, "deadline"),
		attempts: rapid.SliceOfN(rapid.Custom(drawAttempt), 1, 5).Draw(t, "attempts"),
		hookTime: maybe(t, "hook time", 3*time.Second),
		caller:   rapid.Bool().Draw(t, "caller"),
		token:    rapid.Bool().Draw(t, "token"),
		admit:    rapid.Bool().Draw(t, "admit"),
		watch:    rapid.Bool().Draw(t, "watch"),
		dice:     rapid.Float64Range(0, 0.999).Draw(t, "dice"),
		bank: bank{
			admits: drawGrants(t, "admits"), withdrawals: drawGrants(t, "withdrawals"), rechecks: drawGrants(t, "rechecks"),
			takes: maybe(t, "takes", time.Second),
		},
		hooks:  scripts{},
		events: drawEvents(t),
	}
	for _, h := range []exec.Hook{exec.HookReconcile, exec.HookCorrect, exec.HookBeforeRetry, exec.HookOnOutcome} {
		if rapid.Bool().Draw(t, string(h)) {
			s.hooks[h] = drawHook(t)
		}
	}
	_, s.policy.Reconcile = s.hooks[exec.HookReconcile]
	_, s.policy.Correct = s.hooks[exec.HookCorrect]
	return s
}

func drawTime(t *rapid.T, name string, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name))
}

// rarely is true once in n times. (rapid likes small numbers, so it is the
// largest that counts.)
func rarely(t *rapid.T, name string, n int) bool {
	return rapid.IntRange(1, n).Draw(t, name) == n
}

// maybe draws 0 half of the time, which stands for "none".
func maybe(t *rapid.T, name string, most time.Duration) time.Duration {
	if rapid.Bool().Draw(t, name+"?") {
		return 0
	}
	return drawTime(t, name, most)
}

func ceiling(t *rapid.T, name string) time.Duration {
	if !rarely(t, name+"?", 3) {
		return 0
	}
	return drawMoment(t, name) + 1
}

// drawMoment draws an instant that is spread over the run: rapid alone would
// crowd its start.
func drawMoment(t *rapid.T, name string) time.Duration {
	second := time.Duration(rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8, 13, 20}).Draw(t, name+", second")) * time.Second
	return second + drawTime(t, name, time.Second)
}

func drawAttempt(t *rapid.T) script {
	s := script{
		lasts:  rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 6 * time.Second, time.Minute}).Draw(t, "lasts"),
		code:   rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 1, 1, 0, 130}).Draw(t, "code"),
		deaf:   rapid.Bool().Draw(t, "deaf"),
		dies:   maybe(t, "dies", 2*time.Second),
		traps:  rapid.Bool().Draw(t, "traps"),
		shared: rarely(t, "shared", 6),
		leaves: rapid.Bool().Draw(t, "leaves"),
		exited: rarely(t, "exited", 10),
	}
	s.result.StdinConsumed = rarely(t, "stdin", 20)
	s.verdict.Class = rapid.SampledFrom([]classify.Class{
		classify.Transient, classify.Transient, classify.Transient, classify.Transient, classify.Unknown,
		classify.Correctable, classify.Ambiguous, classify.Permanent,
	}).Draw(t, "class")
	s.verdict.RetryAfter = maybe(t, "retry after", 12*time.Second)
	switch {
	case rarely(t, "not found", 30):
		s.startErr = &exec.StartError{Err: syscall.ENOENT, Status: 127}
	case rarely(t, "short of something", 8):
		s.startErr = &exec.StartError{Err: syscall.EAGAIN, Status: 126, Transient: true}
	case rarely(t, "own fault", 40):
		s.startErr = syscall.EIO
	}
	return s
}

func drawHook(t *rapid.T) script {
	s := drawAttempt(t)
	s.shared, s.exited = false, false
	s.code = rapid.IntRange(0, 2).Draw(t, "hook code")
	s.out = rapid.SampledFrom([]string{"cmd --better", "nonsense", ""}).Draw(t, "hook out")
	return s
}

func drawGrants(t *rapid.T, name string) []budget.Decision {
	return rapid.SliceOfN(rapid.SampledFrom([]budget.Decision{
		granted(), granted(), granted(), granted(), granted(), granted(), granted(), granted(), refusal(budget.Denied), refusal(budget.Unavailable), refusal(budget.BreakerOpen),
	}), 0, 3).Draw(t, name)
}

func drawEvents(t *rapid.T) []event {
	var list []event
	if rarely(t, "caller leaves", 3) {
		list = append(list, loseCaller(drawMoment(t, "caller leaves at")))
	}
	if rarely(t, "token is set", 3) {
		list = append(list, event{drawMoment(t, "token is set at"), func(w *world) {
			if w.token {
				setToken(0, "enough").do(w)
			}
		}})
	}
	signals := []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGTSTP, syscall.SIGCONT,
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2, 4}).Draw(t, "signals") {
		list = append(list, send(drawMoment(t, "signal at"), rapid.SampledFrom(signals).Draw(t, "signal")))
	}
	return list
}
