package exec_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const whole = "start withdraw recheck admit refund settle end"

func TestLoop(t *testing.T) {
	two := with(hourly(), func(p *exec.Policy) { p.MaxAttempts = 2 })
	permanent := script{lasts: time.Millisecond, code: 1, verdict: exec.Verdict{Verdict: classify.Verdict{Class: classify.Permanent}}}
	playAll(t, []scene{
		{
			name: "a success at once touches nothing else", policy: hourly(), attempts: []script{succeeds()},
			want: "success: succeeded (row 3)", show: whole,
			log: `0s start 1
				1ms settle 1
				1ms end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if out.Slept != 0 || out.Retries() != 0 || len(out.Warnings) != 0 || out.Last().Delay >= 0 {
					t.Errorf("Run() = %+v, want no wait, no retry, no warning", out)
				}
			},
		},
		{
			name: "a success on the last allowed attempt is a success", policy: two, attempts: []script{fails(), succeeds()},
			want: "success: succeeded (row 3)", show: whole,
			log: `0s start 1
				1ms withdraw
				1h0m0.001s recheck
				1h0m0.001s start 2
				1h0m0.002s settle 1
				1h0m0.002s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if out.Slept != time.Hour || out.Elapsed != time.Hour+2*time.Millisecond || out.Retries() != 1 {
					t.Errorf("Run() slept %v of %v for %d retries, want 1h0m0s of 1h0m0.002s for 1", out.Slept, out.Elapsed, out.Retries())
				}
				if got := []time.Duration{out.Attempts[0].Delay, out.Attempts[1].Delay}; got[0] != time.Hour || got[1] >= 0 {
					t.Errorf("delays = %v, want 1h0m0s and none", got)
				}
			},
		},
		{
			name: "two attempts sleep once, between them", policy: two, attempts: []script{fails()},
			want: "retryable_failure: attempts_exhausted (row 8)", show: whole,
			log: `0s start 1
				1ms withdraw
				1h0m0.001s recheck
				1h0m0.001s start 2
				1h0m0.002s settle 3
				1h0m0.002s end`,
		},
		{
			name: "one attempt sleeps never", attempts: []script{fails()},
			policy: with(hourly(), func(p *exec.Policy) { p.MaxAttempts = 1 }),
			want:   "retryable_failure: attempts_exhausted (row 8)", show: whole,
			log: `0s start 1
				1ms settle 3
				1ms end`,
		},
		{
			name: "a permanent failure is not retried", policy: hourly(), attempts: []script{permanent},
			want: "hard_failure: permanent (row 7)", show: whole,
			log: `0s start 1
				1ms settle 0
				1ms end`,
		},
		{
			name: "a failure that becomes permanent ends it there", policy: hourly(), attempts: []script{fails(), permanent},
			want: "hard_failure: permanent (row 7)", show: "start end",
			log: `0s start 1
				1h0m0.001s start 2
				1h0m0.002s end`,
		},
		{
			name: "the child's own stop is taken over", policy: hourly(),
			attempts: []script{{lasts: time.Second, code: 1, verdict: exec.Verdict{Stop: &exec.Stop{Label: exec.RetryableFailure, Reason: exec.BudgetDenied}}}},
			want:     "retryable_failure: budget_denied (row 7)", show: "start withdraw end",
			log: `0s start 1
				1s end`,
		},
		{
			name: "used up input ends it", policy: hourly(), attempts: []script{{lasts: time.Second, code: 1, result: exec.Result{StdinConsumed: true}}},
			want: "hard_failure: stdin_consumed (row 9)", show: "start withdraw end",
			log: `0s start 1
				1s end`,
		},
		{
			name: "a reader that went away", policy: hourly(), attempts: []script{{lasts: time.Second, signal: syscall.SIGPIPE}},
			want: "abandoned: output_closed (row 4)",
		},
		{
			name: "a child that was interrupted alone", policy: hourly(), attempts: []script{{lasts: time.Second, code: 130}},
			want: "cancelled: child_interrupted (row 5)",
		},
	})
}

func TestDelays(t *testing.T) {
	growing := with(hourly(), func(p *exec.Policy) {
		p.MaxAttempts = 6
		p.Backoff = exec.Backoff{Delay: time.Second, Max: 5 * time.Second, Multiplier: 2, Jitter: exec.JitterNone}
		p.Timeout = 500 * time.Millisecond
	})
	stated := func(after time.Duration) script {
		return script{code: 7, verdict: exec.Verdict{Verdict: classify.Verdict{Class: classify.Transient, RetryAfter: after}}}
	}
	known := script{code: 7, verdict: exec.Verdict{Verdict: classify.Verdict{Class: classify.Transient, MinWait: 10 * time.Second}}}
	playAll(t, []scene{
		{
			name: "they grow up to the cap", policy: growing, attempts: []script{{code: 7}}, show: "start end",
			log: `0s start 1
				1s start 2
				3s start 3
				7s start 4
				12s start 5
				17s start 6
				17s end`,
		},
		{
			name: "an exit, a signal and a timeout are followed by the same delay", show: "start end",
			policy: with(growing, func(p *exec.Policy) { p.MaxAttempts, p.Backoff.Multiplier = 4, 1 }),
			attempts: []script{
				{code: 1},
				{signal: syscall.SIGKILL},
				runs(),
				{code: 1},
			},
			log: `0s start 1
				1s start 2
				2s start 3
				3.5s start 4
				3.5s end`,
		},
		{
			name: "a stated wait is waited in full", show: "start end", attempts: []script{stated(90 * time.Second), stated(time.Millisecond), succeeds()},
			policy: growing,
			log: `0s start 1
				1m30s start 2
				1m32s start 3
				1m32.001s end`,
		},
		{
			name: "so is one that the rule knows", show: "start end", attempts: []script{known, succeeds()}, policy: growing,
			log: `0s start 1
				10s start 2
				10.001s end`,
		},
		{
			name: "a stated wait that is too long is not begun", attempts: []script{stated(25 * time.Hour)}, policy: growing,
			want: "retryable_failure: retry_after_too_long (row 11)", show: "start withdraw end",
			log: `0s start 1
				0s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if out.StatedWait != 25*time.Hour {
					t.Errorf("StatedWait = %v, want 25h0m0s", out.StatedWait)
				}
			},
		},
		{
			name: "jitter takes the engine's die", dice: 0.5, attempts: []script{{code: 7}}, show: "start",
			policy: with(growing, func(p *exec.Policy) { p.MaxAttempts, p.Backoff.Jitter = 3, exec.JitterEqual }),
			log: `0s start 1
				750ms start 2
				2.25s start 3`,
		},
		{
			name: "a decorrelated one remembers the wait before", dice: 0.5, attempts: []script{{code: 7}}, show: "start",
			policy: with(growing, func(p *exec.Policy) {
				p.MaxAttempts, p.Backoff.Max, p.Backoff.Jitter = 3, time.Minute, exec.JitterDecorrelated
			}),
			log: `0s start 1
				2s start 2
				5.5s start 3`,
		},
	})
}

func TestCeilings(t *testing.T) {
	capped := with(hourly(), func(p *exec.Policy) { p.MaxElapsed = 30 * time.Minute })
	playAll(t, []scene{
		{
			name: "a wait that would pass the elapsed ceiling is not begun", policy: capped, attempts: []script{fails()},
			want: "retryable_failure: elapsed_exhausted (row 12)", show: "start withdraw end",
			log: `0s start 1
				1ms end`,
		},
		{
			name: "nor one that ends exactly at the deadline", policy: hourly(), deadline: time.Hour, attempts: []script{{code: 7}},
			want: "retryable_failure: deadline_exceeded (row 12)", show: "start withdraw end",
			log: `0s start 1
				0s end`,
		},
		{
			name: "a nanosecond more and it is", policy: hourly(), deadline: time.Hour + 1, attempts: []script{{code: 7}, succeeds()},
			show: "start term end",
			log: `0s start 1
				1h0m0s start 2
				1h0m0.000000001s term 2
				1h0m0.000000001s end`,
		},
		{
			name: "the shortest attempt must fit as well", attempts: []script{{code: 7}},
			policy: with(hourly(), func(p *exec.Policy) { p.MaxElapsed, p.MinAttempt = 61*time.Minute, 2*time.Minute }),
			want:   "retryable_failure: elapsed_exhausted (row 12)",
		},
		{
			name: "time before the engine counts", policy: capped, started: 29 * time.Minute, attempts: []script{runs()},
			want: "retryable_failure: elapsed_exhausted (row 10)", show: "start term end",
			log: `0s start 1
				1m0s term 1
				1m0s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if !out.CutByCeiling || !out.Last().TimedOut || out.Elapsed != 30*time.Minute {
					t.Errorf("Run() = cut %v, timed out %v, elapsed %v, want both and 30m0s", out.CutByCeiling, out.Last().TimedOut, out.Elapsed)
				}
			},
		},
		{
			name: "a deadline that has passed starts nothing", policy: hourly(), deadline: -time.Second, attempts: []script{succeeds()},
			want: "retryable_failure: deadline_exceeded (row 10)", show: whole,
			log: `0s settle 0
				0s end`,
		},
		{
			name: "an attempt's limit starts again, the ceiling's does not", attempts: []script{runs()}, show: "start term end",
			policy: with(hourly(), func(p *exec.Policy) {
				p.Timeout, p.MaxElapsed, p.Backoff.Delay = 10*time.Second, 25*time.Second, time.Second
				p.Backoff.Multiplier = 1
			}),
			want: "retryable_failure: elapsed_exhausted (row 10)",
			log: `0s start 1
				10s term 1
				11s start 2
				21s term 2
				22s start 3
				25s term 3
				25s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if !out.CutByCeiling || out.Killed {
					t.Errorf("CutByCeiling, Killed = %v, %v, want true, false", out.CutByCeiling, out.Killed)
				}
			},
		},
		{
			name: "a timeout is not a ceiling", attempts: []script{runs()},
			policy: with(hourly(), func(p *exec.Policy) { p.Timeout, p.MaxAttempts = 10*time.Second, 1 }),
			want:   "retryable_failure: attempts_exhausted (row 8)",
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if out.CutByCeiling || !out.Last().TimedOut {
					t.Errorf("CutByCeiling, TimedOut = %v, %v, want false, true", out.CutByCeiling, out.Last().TimedOut)
				}
			},
		},
		{
			name: "a success before the ceiling stands though the judge passes it", attempts: []script{{lasts: time.Minute, stalls: time.Hour}},
			policy: capped, want: "success: succeeded (row 3)",
		},
	})
}

func TestTimeout(t *testing.T) {
	limited := with(hourly(), func(p *exec.Policy) { p.Timeout, p.MaxAttempts = 10*time.Second, 2 })
	once := with(limited, func(p *exec.Policy) { p.MaxAttempts = 1 })
	timedOut := func(want bool) func(*testing.T, *exec.Outcome) {
		return func(t *testing.T, out *exec.Outcome) {
			t.Helper()
			if got := out.Last().TimedOut; got != want {
				t.Errorf("TimedOut = %v, want %v", got, want)
			}
		}
	}
	playAll(t, []scene{
		{
			name: "TERM, then KILL after kill-after, then the next", policy: limited, attempts: []script{{lasts: forever, deaf: true}},
			want: "retryable_failure: attempts_exhausted (row 8)", show: "start term kill end",
			log: `0s start 1
				10s term 1
				15s kill 1
				1h0m15s start 2
				1h0m25s term 2
				1h0m30s kill 2
				1h0m30s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if !out.Killed || !out.Last().TimedOut {
					t.Errorf("Killed, TimedOut = %v, %v, want true, true", out.Killed, out.Last().TimedOut)
				}
			},
		},
		{
			name: "the next attempt waits for the end", policy: limited, attempts: []script{{lasts: forever, dies: 2 * time.Second}, succeeds()},
			show: "start term kill", want: "success: succeeded (row 3)",
			log: `0s start 1
				10s term 1
				1h0m12s start 2`,
			also: timedOut(false),
		},
		{
			name: "an exit with 0 after TERM is no success", policy: once, attempts: []script{{lasts: forever, traps: true}},
			want: "retryable_failure: attempts_exhausted (row 8)", also: timedOut(true),
		},
		{
			name: "nor is one with 130 an interrupt", policy: once, attempts: []script{{lasts: forever, traps: true, trapped: 130}},
			want: "retryable_failure: attempts_exhausted (row 8)", also: timedOut(true),
		},
		{
			name: "one that had exited while its output was read did not time out", policy: once, show: "start term kill end",
			attempts: []script{{lasts: 12 * time.Second, exited: true}}, want: "success: succeeded (row 3)", also: timedOut(false),
			log: `0s start 1
				10s term 1
				12s end`,
		},
		{
			name: "output that never ends is cut off", policy: once, show: "start term kill end",
			attempts: []script{{lasts: forever, exited: true}}, also: timedOut(false),
			log: `0s start 1
				10s term 1
				15s kill 1
				15s end`,
		},
		{
			name: "a limit that cannot be enforced is said once and waited for", policy: once, show: "start term kill end",
			attempts: []script{{lasts: time.Hour, eperm: true, code: 1}},
			log: `0s start 1
				10s term 1
				15s kill 1
				1h0m0s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				want := []string{"timeout_not_enforced: no permission to signal the command"}
				if diff := cmp.Diff(want, out.Warnings); diff != "" {
					t.Errorf("Warnings (-want +got):\n%s", diff)
				}
			},
		},
	})
}

// A process that ends in the very instant of its limit may be taken either way,
// but only one way.
func TestTimeoutInTheSameInstant(t *testing.T) {
	policy := with(hourly(), func(p *exec.Policy) { p.Timeout, p.MaxAttempts = 10*time.Second, 1 })
	for range 50 {
		play(t, scene{
			policy: policy, attempts: []script{{lasts: 10 * time.Second}},
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if got := out.Label == exec.Success; got == out.Last().TimedOut {
					t.Errorf("label %s and timed out %v", out.Label, out.Last().TimedOut)
				}
			},
		})
	}
}

// A suspended run wakes up to everything at once: what has ended by then was
// ended by nobody, whichever event it sees first.
func TestEndWhileSuspended(t *testing.T) {
	limited := with(hourly(), func(p *exec.Policy) { p.Timeout, p.MaxAttempts = 10*time.Second, 1 })
	for range 50 {
		play(t, scene{
			policy: limited, attempts: []script{runsFor(12 * time.Second)}, suspends: time.Minute,
			events: []event{send(time.Second, syscall.SIGTSTP)},
			want:   "success: succeeded (row 3)", show: "term kill suspend", log: "1s suspend",
		})
		play(t, scene{
			policy: limited, attempts: []script{{lasts: forever, dies: time.Second}}, suspends: time.Minute,
			events: []event{send(9*time.Second, syscall.SIGTERM), send(9*time.Second+1, syscall.SIGTSTP)},
			want:   "cancelled: signal (row 1)", show: "term kill end", log: "1m9.000000001s end",
			also: bySignal(syscall.SIGTERM, false),
		})
	}
}

func TestStartFailure(t *testing.T) {
	missing := &exec.StartError{Err: syscall.ENOENT, Status: 127}
	short := &exec.StartError{Err: syscall.EAGAIN, Status: 126, Transient: true}
	broken := errors.New("spool is gone")
	playAll(t, []scene{
		{
			name: "for good", policy: hourly(), attempts: []script{{startErr: missing}},
			want: "hard_failure: start_failed (row 6)", show: "fail withdraw end",
			log: `0s fail 1
				0s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if a := out.Last(); a == nil || a.Result.StartErr != missing || a.Result.Code != -1 || a.N != 1 {
					t.Errorf("Last() = %+v, want attempt 1 with the start error and code -1", a)
				}
			},
		},
		{
			name: "for want of something", policy: with(hourly(), func(p *exec.Policy) { p.MaxAttempts = 3 }), attempts: []script{fails(), {startErr: short}, succeeds()},
			want: "success: succeeded (row 3)", show: "start fail withdraw refund end",
			log: `0s start 1
				1ms withdraw
				1h0m0.001s fail 2
				1h0m0.001s refund
				1h0m0.001s withdraw
				2h0m0.001s start 3
				2h0m0.002s end`,
		},
		{
			name: "a retry that is not found", policy: hourly(), attempts: []script{fails(), {startErr: missing}},
			want: "hard_failure: start_failed (row 6)", show: "start fail refund",
			log: `0s start 1
				1h0m0.001s fail 2
				1h0m0.001s refund`,
		},
		{
			name: "retryx's own fault", policy: hourly(), attempts: []script{fails(), {startErr: broken}},
			want: "hard_failure: internal_error (row 0)", show: "start fail refund settle end",
			log: `0s start 1
				1h0m0.001s fail 2
				1h0m0.001s refund
				1h0m0.001s settle 0
				1h0m0.001s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if !errors.Is(out.Fault, broken) || out.AttemptCount != 1 {
					t.Errorf("Fault, AttemptCount = %v, %d, want %v, 1", out.Fault, out.AttemptCount, broken)
				}
			},
		},
	})
}

func TestLeftovers(t *testing.T) {
	playAll(t, []scene{
		{
			name: "end during the wait, at the latest after kill-after", policy: hourly(),
			attempts: []script{{code: 1, leaves: true}, succeeds()}, show: "start sweep wipe",
			log: `0s start 1
				0s sweep 1
				5s wipe 1
				1h0m0s start 2`,
		},
		{
			name: "end before the next attempt", attempts: []script{{code: 1, leaves: true}, succeeds()}, show: "start sweep wipe",
			policy: with(hourly(), func(p *exec.Policy) { p.Backoff.Delay = time.Second }),
			log: `0s start 1
				0s sweep 1
				1s wipe 1
				1s start 2`,
		},
		{
			name: "are left alone after the last attempt", policy: hourly(),
			attempts: []script{{leaves: true}}, show: "start sweep wipe end",
			log: `0s start 1
				0s end`,
		},
		{
			name: "are ended once, not again after an attempt that never started", attempts: []script{{code: 1, leaves: true}, {startErr: &exec.StartError{Err: syscall.EAGAIN, Transient: true}}, succeeds()},
			policy: hourly(), show: "start fail sweep wipe",
			log: `0s start 1
				0s sweep 1
				5s wipe 1
				1h0m0s fail 2
				2h0m0s start 3`,
		},
		{
			name: "go at once when the wait is cancelled", policy: hourly(), events: []event{send(2*time.Second, syscall.SIGTERM)},
			attempts: []script{{code: 1, leaves: true}}, show: "start sweep wipe end",
			log: `0s start 1
				0s sweep 1
				2s wipe 1
				2s end`,
		},
	})
}

func TestSettlement(t *testing.T) {
	nested := exec.Verdict{Nested: true}
	stopped := exec.Verdict{Nested: true, Stop: &exec.Stop{Label: exec.RetryableFailure, Reason: exec.CircuitOpen}}
	counted := exec.Verdict{Nested: true, Counted: true}
	once := with(hourly(), func(p *exec.Policy) { p.MaxAttempts = 1 })
	for _, s := range []struct {
		scene
		settled budget.Settlement
	}{
		{scene{name: "success", attempts: []script{succeeds()}}, budget.Succeeded},
		{scene{name: "nested success", attempts: []script{{verdict: nested}}}, budget.Unpaid},
		{scene{name: "failure", attempts: []script{fails()}}, budget.Failed},
		{scene{name: "nested failure", attempts: []script{{code: 1, verdict: nested}}}, budget.Failed},
		{scene{name: "success that the breaker has heard of", attempts: []script{{verdict: counted}}}, budget.Ignored},
		{scene{name: "failure that the breaker has heard of", attempts: []script{{code: 1, verdict: counted}}}, budget.Ignored},
		{scene{name: "nested refusal", attempts: []script{{code: 1, verdict: stopped}}}, budget.Failed},
		{scene{name: "hard failure", attempts: []script{{signal: syscall.SIGPIPE}}}, budget.Ignored},
		{scene{name: "orphaned success", attempts: []script{runsFor(time.Hour)}, caller: true, events: []event{loseCaller(1)}}, budget.Ignored},
		{scene{name: "cancelled", attempts: []script{runs()}, events: []event{send(1, syscall.SIGINT)}}, budget.Ignored},
		{scene{name: "no attempt", attempts: []script{succeeds()}, deadline: -1}, budget.Ignored},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.policy = once
				w := newWorld(s.scene)
				check(t, w, w.run())
				if len(w.settlements) == 1 && w.settlements[0] != s.settled {
					t.Errorf("Settle(%d), want Settle(%d)", w.settlements[0], s.settled)
				}
			})
		})
	}
}

// What an attempt is told of those before it, and what is kept of them.
func TestManyAttempts(t *testing.T) {
	for _, tt := range []struct{ many, head, tail int }{{2, 2, 0}, {50, 50, 0}, {51, 10, 40}, {100_000, 10, 40}} {
		synctest.Test(t, func(t *testing.T) { manyAttempts(t, tt.many, tt.head, tt.tail) })
	}
}

func manyAttempts(t *testing.T, many, head, end int) {
	t.Helper()
	tail := exec.Result{Stderr: []byte("no route"), Warnings: []string{"stderr_left_open"}}
	w := newWorld(scene{
		policy: with(hourly(), func(p *exec.Policy) {
			p.MaxAttempts = many
			p.Backoff = exec.Backoff{}
		}),
		attempts: []script{{startErr: nil, code: 1, result: tail}},
	})
	forgetful := &forgetfulStarter{w: w}
	e := &exec.Engine{Policy: w.policy, Starter: forgetful, Judge: w, Budget: free{}, Rand: func() float64 { return 0 }}
	out := e.Run()
	if out.AttemptCount != many || out.Retries() != many-1 || out.Reason != exec.AttemptsExhausted {
		t.Fatalf("Run() = %d attempts, %s, want %d, attempts_exhausted", out.AttemptCount, out.Reason, many)
	}
	var ns, want []int
	for i, a := range out.Attempts {
		ns = append(ns, a.N)
		if last := i == len(out.Attempts)-1; (a.Result.Stderr != nil) != last {
			t.Errorf("attempt %d keeps its tail: %v, want %v", a.N, !last, last)
		}
	}
	for i := range head {
		want = append(want, i+1)
	}
	for i := range end {
		want = append(want, many-end+1+i)
	}
	if diff := cmp.Diff(want, ns); diff != "" {
		t.Errorf("attempts kept (-want +got):\n%s", diff)
	}
	if !slices.Equal(out.Warnings, tail.Warnings) {
		t.Errorf("Warnings = %q, want %q", out.Warnings, tail.Warnings)
	}
	if forgetful.wrong != "" {
		t.Error(forgetful.wrong)
	}
}

// forgetfulStarter runs attempts that are over at once and keeps no log.
type forgetfulStarter struct {
	w     *world
	n     int
	wrong string
}

func (f *forgetfulStarter) Start(n exec.Next) (exec.Process, error) {
	f.n++
	switch {
	case n.N != f.n, (n.Previous == nil) != (n.N == 1), n.Previous != nil && n.Previous.N != n.N-1:
		f.wrong = "an attempt was told wrongly of its place"
	}
	f.w.current = f.w.attempts[0]
	p := &process{w: f.w, s: f.w.attempts[0], done: make(chan struct{})}
	p.end(1, 0)
	return p, nil
}

// A success costs no goroutine, unless the budget has to be asked first.
func TestSuccessStartsNoGoroutine(t *testing.T) {
	for _, admit := range []bool{false, true} {
		watch := &goroutineWatch{}
		e := &exec.Engine{
			Policy: hourly(), Starter: watch, Judge: watch, Budget: watch, Admit: admit,
			Rand: func() float64 { return 0 },
		}
		before := runtime.NumGoroutine()
		out := e.Run()
		if out.Label != exec.Success {
			t.Fatalf("Run() = %s, want success", out.Label)
		}
		if got := watch.most > before; got != admit {
			t.Errorf("with Admit %v: %d goroutines, %d before", admit, watch.most, before)
		}
	}
}

type goroutineWatch struct {
	free
	most int
}

func (g *goroutineWatch) look() { g.most = max(g.most, runtime.NumGoroutine()) }

func (g *goroutineWatch) Admit(ctx context.Context) budget.Decision {
	g.look()
	return g.free.Admit(ctx)
}

func (g *goroutineWatch) Settle(context.Context, budget.Settlement) { g.look() }

func (g *goroutineWatch) Start(exec.Next) (exec.Process, error) {
	g.look()
	p := &process{w: newWorld(scene{}), done: make(chan struct{})}
	p.end(0, 0)
	return p, nil
}

func (g *goroutineWatch) Judge(exec.Result, bool) exec.Verdict {
	g.look()
	return exec.Verdict{Succeeded: true}
}

func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(scene{
			policy: with(hourly(), func(p *exec.Policy) { p.Backoff.Delay, p.KillAfter = 3500*time.Millisecond, 1500*time.Millisecond }),
			watch:  true, attempts: []script{{code: 7, leaves: true}, succeeds()},
			show: "start retrying sweep over",
			log: `0s start 1
				0s retrying in 3.5s
				0s sweep 1
				3.5s over
				3.5s start 2`,
		})
		check(t, w, w.run())
		// The countdown counts to the end of the wait, whatever happens on the way.
		want := []time.Duration{2500 * time.Millisecond, 1500 * time.Millisecond, 500 * time.Millisecond}
		if diff := cmp.Diff(want, w.counts); diff != "" {
			t.Errorf("Counting (-want +got):\n%s", diff)
		}
		if len(w.retries) != 1 || w.retries[0].Attempt.N != 1 || !w.retries[0].Grant.Granted || w.retries[0].Attempt.Delay != w.retries[0].Wait {
			t.Errorf("Retrying(%+v), want attempt 1, its grant and its delay", w.retries)
		}
	})
}

func TestNothingIsObservedWithoutARetry(t *testing.T) {
	play(t, scene{
		policy: hourly(), watch: true, attempts: []script{succeeds()}, show: "retrying over end", log: `1ms end`,
	})
}

func TestWarningsAreSaidOnce(t *testing.T) {
	noisy := script{code: 1, result: exec.Result{Warnings: []string{"a", "b", "a"}}}
	play(t, scene{policy: hourly(), attempts: []script{noisy}, also: func(t *testing.T, out *exec.Outcome) {
		t.Helper()
		if got := strings.Join(out.Warnings, " "); got != "a b" {
			t.Errorf("Warnings = %q, want \"a b\"", got)
		}
	}})
}

func runsFor(d time.Duration) script { return script{lasts: d} }
