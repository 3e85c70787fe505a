package exec_test

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const ms = time.Millisecond

// bySignal checks what an outcome tells of its cancel.
func bySignal(s syscall.Signal, killed bool) func(*testing.T, *exec.Outcome) {
	return func(t *testing.T, out *exec.Outcome) {
		t.Helper()
		if out.CancelSignal != s || out.Killed != killed {
			t.Errorf("CancelSignal, Killed = %v, %v, want %v, %v", out.CancelSignal, out.Killed, s, killed)
		}
		if killed && !out.CancelledInAttempt {
			t.Error("CancelledInAttempt = false for an attempt that the cancel killed")
		}
	}
}

func TestSignalDuringTheWait(t *testing.T) {
	at := func(after time.Duration, s syscall.Signal) scene {
		return scene{
			name: s.String() + " after " + after.String(), policy: hourly(), attempts: []script{{code: 7}},
			events: []event{send(after, s)},
			want:   "cancelled: signal (row 1)", show: "start withdraw refund end",
			log: "0s start 1\n0s withdraw\n" + after.String() + " refund\n" + after.String() + " end",
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				bySignal(s, false)(t, out)
				if out.Elapsed != after || out.Slept != after || out.AttemptCount != 1 {
					t.Errorf("elapsed, slept, attempts = %v, %v, %d, want %v, %v, 1", out.Elapsed, out.Slept, out.AttemptCount, after, after)
				}
			},
		}
	}
	playAll(t, []scene{
		at(1, syscall.SIGINT), at(1, syscall.SIGTERM), at(1, syscall.SIGHUP), at(1, syscall.SIGQUIT),
		at(59*time.Minute, syscall.SIGINT), at(59*time.Minute, syscall.SIGTERM), at(time.Hour-1, syscall.SIGTERM),
	})
}

func TestSignalDuringAnAttempt(t *testing.T) {
	const show = "start signal term kill end"
	deaf := []script{{lasts: forever, deaf: true}}
	playAll(t, []scene{
		{
			name: "is forwarded once, and a stopped child is continued", policy: hourly(), attempts: []script{runs()},
			events: []event{send(time.Second, syscall.SIGTERM)}, want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 terminated
				1s signal 1 continued
				1s end`,
			also: bySignal(syscall.SIGTERM, false),
		},
		{
			name: "a child that takes its time is waited for", policy: hourly(), attempts: []script{{lasts: forever, traps: true, dies: 4 * time.Second}},
			events: []event{send(time.Second, syscall.SIGINT)}, want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 interrupt
				1s signal 1 continued
				5s end`,
			also: bySignal(syscall.SIGINT, false),
		},
		{
			name: "one that fails of it is not retried", policy: hourly(), attempts: []script{{lasts: forever, traps: true, trapped: 1}},
			events: []event{send(time.Second, syscall.SIGINT)}, want: "cancelled: signal (row 1)", show: "start withdraw",
			log: `0s start 1`,
		},
		{
			name: "one that ignores it is killed after kill-after", policy: hourly(), attempts: deaf,
			events: []event{send(time.Second, syscall.SIGHUP)}, want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 hangup
				1s signal 1 continued
				6s kill 1
				6s end`,
			also: bySignal(syscall.SIGHUP, true),
		},
		{
			name: "a double is the same event", policy: hourly(), attempts: deaf,
			events: []event{
				send(time.Second, syscall.SIGTERM), send(time.Second+1, syscall.SIGTERM),
				send(1050*ms, syscall.SIGINT), send(1100*ms-1, syscall.SIGTERM),
			},
			want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 terminated
				1s signal 1 continued
				6s kill 1
				6s end`,
			also: bySignal(syscall.SIGTERM, true),
		},
		{
			name: "a later one is forwarded and KILL comes sooner", policy: hourly(), attempts: deaf,
			events: []event{send(time.Second, syscall.SIGTERM), send(1100*ms, syscall.SIGINT)},
			want:   "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 terminated
				1s signal 1 continued
				1.1s signal 1 interrupt
				1.1s signal 1 continued
				1.3s kill 1
				1.3s end`,
			also: bySignal(syscall.SIGTERM, true),
		},
		{
			name: "more of them do not put it off", policy: hourly(), attempts: deaf,
			events: []event{send(time.Second, syscall.SIGTERM), send(1100*ms, syscall.SIGTERM), send(1250*ms, syscall.SIGTERM)},
			show:   "kill end",
			log: `1.3s kill 1
				1.3s end`,
		},
		{
			name: "hangup never escalates", policy: hourly(), attempts: deaf,
			events: []event{send(time.Second, syscall.SIGTERM), send(2*time.Second, syscall.SIGHUP), send(3*time.Second, syscall.SIGHUP)},
			show:   show,
			log: `0s start 1
				1s signal 1 terminated
				1s signal 1 continued
				6s kill 1
				6s end`,
		},
		{
			name: "a hangup first and a later TERM escalate", policy: hourly(), attempts: deaf,
			events: []event{send(time.Second, syscall.SIGHUP), send(2*time.Second, syscall.SIGTERM)},
			show:   "kill end",
			log: `2.2s kill 1
				2.2s end`,
			also: bySignal(syscall.SIGHUP, true),
		},
		{
			name: "quit is forwarded as quit", policy: hourly(), attempts: []script{runs()}, events: []event{send(time.Second, syscall.SIGQUIT)},
			want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 quit
				1s signal 1 continued
				1s end`,
			also: bySignal(syscall.SIGQUIT, false),
		},
		{
			name: "during a timeout's grace it buys no time", attempts: deaf,
			policy: with(hourly(), func(p *exec.Policy) { p.Timeout = 10 * time.Second }),
			events: []event{send(14*time.Second, syscall.SIGTERM)}, want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				10s term 1
				14s signal 1 terminated
				14s signal 1 continued
				15s kill 1
				15s end`,
			also: bySignal(syscall.SIGTERM, true),
		},
		{
			name: "a timeout during its grace is not what ended it", attempts: []script{{lasts: forever, dies: 4 * time.Second}},
			policy: with(hourly(), func(p *exec.Policy) { p.Timeout = 10 * time.Second }),
			events: []event{send(9*time.Second, syscall.SIGTERM)}, want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				9s signal 1 terminated
				9s signal 1 continued
				13s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if out.Last().TimedOut {
					t.Error("TimedOut = true, want false")
				}
			},
		},
		{
			name: "one that we may not signal is waited for", policy: hourly(), attempts: []script{{lasts: time.Minute, eperm: true, code: 1}},
			events: []event{send(time.Second, syscall.SIGTERM)}, want: "cancelled: signal (row 1)", show: "kill end",
			log: `6s kill 1
				1m0s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if len(out.Warnings) != 1 {
					t.Errorf("Warnings = %q, want one", out.Warnings)
				}
			},
		},
		{
			name: "before the command is started there is none", policy: hourly(), attempts: []script{succeeds()},
			admit: true, bank: bank{takes: time.Second}, events: []event{send(1, syscall.SIGTERM)},
			want: "cancelled: signal (row 1)", show: whole,
			log: `0s admit
				1ns settle 0
				1ns end`,
		},
	})
}

// Whichever of the two the select sees first, what came during the attempt is
// row 1, and what came after a success was seen is not.
func TestSignalAroundTheEnd(t *testing.T) {
	for range 50 {
		play(t, scene{
			policy: hourly(), attempts: []script{{lasts: forever, onStart: func(w *world) {
				w.deliver(syscall.SIGTERM)
				for p := range w.alive {
					p.end(0, 0)
				}
			}}},
			want: "cancelled: signal (row 1)", also: bySignal(syscall.SIGTERM, false),
		})
	}
	late := func(w *world) { w.deliver(syscall.SIGTERM) }
	playAll(t, []scene{
		{
			name: "on its way when a failure is seen", policy: hourly(), attempts: []script{{code: 6}}, heard: late,
			want: "cancelled: signal (row 1)", also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if !out.CancelledInAttempt {
					t.Error("CancelledInAttempt = false: it came before the end of the attempt")
				}
			},
		},
		{
			name: "on its way when a success is seen", policy: hourly(), attempts: []script{{}}, heard: late,
			want: "success: succeeded (row 3)",
		},
		{
			name: "after a success", policy: hourly(), attempts: []script{{onJudge: late}},
			want: "success: succeeded (row 3)",
		},
		{
			name: "after a failure", policy: hourly(), attempts: []script{{code: 1, onJudge: late}},
			want: "cancelled: signal (row 1)", show: "withdraw end", log: `0s end`,
		},
		{
			name: "in the instant in which the wait ends", policy: hourly(), attempts: []script{{code: 1}},
			bank: bank{takes: time.Nanosecond}, events: []event{send(time.Hour+1, syscall.SIGTERM)},
			want: "cancelled: signal (row 1)", show: "start refund end",
			log: `0s start 1
				1h0m0.000000001s refund
				1h0m0.000000001s end`,
		},
	})
}

func TestCancelledInAttempt(t *testing.T) {
	says := func(want bool) func(*testing.T, *exec.Outcome) {
		return func(t *testing.T, out *exec.Outcome) {
			t.Helper()
			if out.Label != exec.Cancelled && want || out.CancelledInAttempt != want {
				t.Errorf("%s: CancelledInAttempt = %v, want %v", out.Label, out.CancelledInAttempt, want)
			}
		}
	}
	late := func(w *world) { w.deliver(syscall.SIGTERM) }
	hook := scripts{exec.HookBeforeRetry: runs()}
	playAll(t, []scene{
		{name: "signal in the first", policy: hourly(), attempts: []script{runs()}, events: []event{send(1, syscall.SIGINT)}, also: says(true)},
		{name: "signal in a retry", policy: hourly(), attempts: []script{{code: 1}, runs()}, events: []event{send(time.Hour+1, syscall.SIGINT)}, also: says(true)},
		{name: "token in an attempt", policy: hourly(), token: true, attempts: []script{runs()}, events: []event{setToken(1, "enough")}, also: says(true)},
		{name: "in shared mode", policy: hourly(), attempts: []script{{lasts: time.Second, shared: true}}, events: []event{send(1, syscall.SIGINT)}, also: says(true)},
		{name: "signal in the wait", policy: hourly(), attempts: []script{{code: 1}}, events: []event{send(1, syscall.SIGINT)}, also: says(false)},
		{name: "signal in a hook", policy: hourly(), attempts: []script{{code: 1}}, hooks: hook, events: []event{send(time.Hour+1, syscall.SIGINT)}, also: says(false)},
		{name: "signal while it is judged", policy: hourly(), attempts: []script{{code: 1, onJudge: late}}, also: says(false)},
		{name: "the child alone", policy: hourly(), attempts: []script{{code: 130}}, also: says(false)},
		{name: "none", policy: hourly(), attempts: []script{succeeds()}, also: says(false)},
	})
}

func TestSignalInSharedMode(t *testing.T) {
	const show = "start signal term kill end"
	shared := []script{{lasts: forever, shared: true, deaf: true}}
	playAll(t, []scene{
		{
			name: "an interrupt is the terminal's to tell, the third kills", policy: hourly(), attempts: shared,
			events: []event{
				send(time.Second, syscall.SIGINT), send(time.Minute, syscall.SIGINT), send(2*time.Minute, syscall.SIGINT),
			},
			want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				2m0s kill 1
				2m0s end`,
			also: bySignal(syscall.SIGINT, true),
		},
		{
			name: "doubles are one press", policy: hourly(), attempts: []script{{lasts: time.Hour, shared: true, deaf: true}},
			events: []event{
				send(time.Second, syscall.SIGINT), send(1001*ms, syscall.SIGINT), send(1002*ms, syscall.SIGINT), send(time.Minute, syscall.SIGINT),
			},
			want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1h0m0s end`,
			also: bySignal(syscall.SIGINT, false),
		},
		{
			name: "quit likewise", policy: hourly(), attempts: []script{{lasts: time.Minute, shared: true}},
			events: []event{send(time.Second, syscall.SIGQUIT)},
			want:   "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1m0s end`,
			also: bySignal(syscall.SIGQUIT, false),
		},
		{
			name: "TERM is ours to tell", policy: hourly(), attempts: shared, events: []event{send(time.Second, syscall.SIGTERM)},
			want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 terminated
				6s kill 1
				6s end`,
			also: bySignal(syscall.SIGTERM, true),
		},
		{
			name: "TERM after an interrupt escalates", policy: hourly(), attempts: shared,
			events: []event{send(time.Second, syscall.SIGINT), send(2*time.Second, syscall.SIGTERM)}, show: show,
			log: `0s start 1
				2s signal 1 terminated
				2.2s kill 1
				2.2s end`,
		},
		{
			name: "a limit still ends it", attempts: []script{{lasts: forever, shared: true}},
			policy: with(hourly(), func(p *exec.Policy) { p.Timeout, p.MaxAttempts = time.Minute, 1 }), show: show,
			log: `0s start 1
				1m0s term 1
				1m0s end`,
		},
	})
}

func TestSignalsThatDoNotCancel(t *testing.T) {
	play(t, scene{
		policy: hourly(), attempts: []script{{lasts: time.Minute, code: 1, shared: true}, succeeds()},
		events: []event{
			send(time.Second, syscall.SIGUSR1), send(2*time.Second, syscall.SIGWINCH), send(3*time.Second, syscall.SIGPIPE),
			send(4*time.Second, syscall.SIGTSTP), send(5*time.Second, syscall.SIGCONT),
			send(2*time.Minute, syscall.SIGUSR1), send(3*time.Minute, syscall.SIGTSTP), send(4*time.Minute, syscall.SIGCONT),
		},
		want: "success: succeeded (row 3)", show: "start signal suspend kill term end announce",
		log: `0s start 1
			1s signal 1 user-defined-signal-1
			2s signal 1 window-changed
			4s signal 1 stopped
			4s suspend
			5s signal 1 continued
			3m0s suspend
			1h1m0s start 2
			1h1m0.001s end`,
		also: bySignal(0, false),
	})
}

func TestForwardingFailsQuietly(t *testing.T) {
	play(t, scene{
		policy: hourly(), attempts: []script{{lasts: time.Minute, eperm: true}}, events: []event{send(1, syscall.SIGUSR1)},
		want: "success: succeeded (row 3)",
		also: func(t *testing.T, out *exec.Outcome) {
			t.Helper()
			if len(out.Warnings) != 0 {
				t.Errorf("Warnings = %q, want none: no limit was broken", out.Warnings)
			}
		},
	})
}

func TestCancelToken(t *testing.T) {
	const show = "start signal term kill refund announce end"
	told := func(t *testing.T, out *exec.Outcome) {
		t.Helper()
		if out.CancelReason != "enough" || out.CancelSignal != 0 {
			t.Errorf("CancelReason, CancelSignal = %q, %v, want \"enough\", none", out.CancelReason, out.CancelSignal)
		}
	}
	playAll(t, []scene{
		{
			name: "before the first attempt", policy: hourly(), token: true, attempts: []script{succeeds()},
			admit: true, bank: bank{takes: ms}, events: []event{setToken(0, "enough")},
			want: "cancelled: cancel_token (row 1)", show: show, also: told,
			log: `1ms announce enough
				1ms end`,
		},
		{
			name: "during an attempt", policy: hourly(), token: true, attempts: []script{runs()}, events: []event{setToken(1010*ms, "enough")},
			want: "cancelled: cancel_token (row 1)", show: show, also: told,
			log: `0s start 1
				1.05s announce enough
				1.05s term 1
				1.05s end`,
		},
		{
			name: "of a deaf child", policy: hourly(), token: true, attempts: []script{{lasts: forever, deaf: true}}, events: []event{setToken(1010*ms, "enough")},
			want: "cancelled: cancel_token (row 1)", show: show,
			log: `0s start 1
				1.05s announce enough
				1.05s term 1
				6.05s kill 1
				6.05s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				told(t, out)
				if !out.Killed {
					t.Error("Killed = false, want true")
				}
			},
		},
		{
			name: "during the wait", policy: hourly(), token: true, attempts: []script{{code: 1}}, events: []event{setToken(30*time.Minute+1, "enough")},
			want: "cancelled: cancel_token (row 1)", show: show, also: told,
			log: `0s start 1
				30m0.05s announce enough
				30m0.05s refund
				30m0.05s end`,
		},
		{
			name: "just before a retry is seen before it", token: true, attempts: []script{{code: 1}}, events: []event{setToken(30*ms, "enough")},
			policy: with(hourly(), func(p *exec.Policy) { p.Backoff.Delay = 40 * ms }),
			want:   "cancelled: cancel_token (row 1)", show: "start refund end",
			log: `0s start 1
				40ms refund
				40ms end`,
		},
		{
			name: "a signal right after it is the same event", policy: hourly(), token: true, attempts: []script{{lasts: forever, deaf: true}},
			events: []event{setToken(1010*ms, "enough"), send(1149*ms, syscall.SIGTERM)},
			want:   "cancelled: cancel_token (row 1)", show: show, also: told,
			log: `0s start 1
				1.05s announce enough
				1.05s term 1
				6.05s kill 1
				6.05s end`,
		},
		{
			name: "a later one escalates", policy: hourly(), token: true, attempts: []script{{lasts: forever, deaf: true}},
			events: []event{setToken(1010*ms, "enough"), send(1150*ms, syscall.SIGTERM)},
			want:   "cancelled: cancel_token (row 1)", show: "term signal kill",
			log: `1.05s term 1
				1.15s signal 1 terminated
				1.15s signal 1 continued
				1.35s kill 1`,
		},
		{
			name: "right after a signal it changes nothing", policy: hourly(), token: true, attempts: []script{{lasts: forever, deaf: true}},
			events: []event{send(time.Second, syscall.SIGTERM), setToken(1010*ms, "enough")},
			want:   "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s announce SIGTERM
				1s signal 1 terminated
				1s signal 1 continued
				6s kill 1
				6s end`,
		},
		{
			name: "after a success it comes too late", policy: hourly(), token: true, attempts: []script{{onJudge: func(w *world) { setToken(0, "enough").do(w) }}},
			want: "success: succeeded (row 3)",
		},
	})
}

func TestTokenIsLookedAtOnlyWhenGiven(t *testing.T) {
	for _, given := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(scene{policy: hourly(), token: given, attempts: []script{runsFor(time.Second + 1)}})
			check(t, w, w.run())
			// Every 50 ms of a second, and once before the attempt.
			want := 0
			if given {
				want = 21
			}
			if w.looked != want {
				t.Errorf("with a token given %v: looked %d times, want %d", given, w.looked, want)
			}
		})
	}
}

func TestCallerGone(t *testing.T) {
	const show = "start term kill refund announce end"
	kill := with(hourly(), func(p *exec.Policy) { p.Orphan = exec.OrphanKill })
	playAll(t, []scene{
		{
			name: "during the wait", policy: hourly(), caller: true, attempts: []script{{code: 1}}, events: []event{loseCaller(time.Minute)},
			want: "abandoned: caller_gone (row 4)", show: show,
			log: `0s start 1
				1m0s announce caller_gone
				1m0s refund
				1m0s end`,
		},
		{
			name: "during an attempt that then fails", policy: hourly(), caller: true, attempts: []script{{lasts: time.Hour, code: 1}}, events: []event{loseCaller(time.Minute)},
			want: "abandoned: caller_gone (row 4)", show: show,
			log: `0s start 1
				1m0s announce caller_gone
				1h0m0s end`,
		},
		{
			name: "during one that succeeds", policy: hourly(), caller: true, attempts: []script{runsFor(time.Hour)}, events: []event{loseCaller(time.Minute)},
			want: "abandoned: orphaned_success (row 2)", show: show,
			log: `0s start 1
				1m0s announce caller_gone
				1h0m0s end`,
		},
		{
			name: "kill ends the attempt", policy: kill, caller: true, attempts: []script{{lasts: forever, deaf: true}}, events: []event{loseCaller(time.Minute)},
			want: "abandoned: caller_gone (row 4)", show: show,
			log: `0s start 1
				1m0s announce caller_gone
				1m0s term 1
				1m5s kill 1
				1m5s end`,
		},
		{
			name: "ignore looks the other way", policy: with(hourly(), func(p *exec.Policy) { p.Orphan = exec.OrphanIgnore }),
			caller: true, attempts: []script{{code: 1}, succeeds()}, events: []event{loseCaller(time.Minute)},
			want: "success: succeeded (row 3)", show: show,
			log: `0s start 1
				1h0m0s start 2
				1h0m0.001s end`,
		},
		{
			name: "before the first attempt refuses nothing", policy: hourly(), caller: true, attempts: []script{runsFor(time.Minute)},
			admit: true, bank: bank{takes: time.Second}, events: []event{loseCaller(0)},
			want: "abandoned: orphaned_success (row 2)", show: "admit start term end",
			log: `0s admit
				1s start 1
				1m1s end`,
		},
		{
			name: "before the first attempt, and kill ends that as it would a moment later", policy: kill, caller: true, attempts: []script{runs()},
			admit: true, bank: bank{takes: time.Second}, events: []event{loseCaller(0)},
			want: "abandoned: caller_gone (row 4)", show: "admit start term end",
			log: `0s admit
				1s start 1
				1s term 1
				1s end`,
		},
		{
			name: "while a token is asked for", policy: hourly(), caller: true, attempts: []script{{code: 1}},
			bank: bank{blocks: "withdraw"}, events: []event{loseCaller(time.Second)},
			want: "abandoned: caller_gone (row 4)", show: show,
			log: `0s start 1
				1s announce caller_gone
				1s end`,
		},
		{
			name: "and a cancel after it is a cancel", policy: hourly(), caller: true, attempts: []script{runs()},
			events: []event{loseCaller(time.Second), send(2*time.Second, syscall.SIGTERM)},
			want:   "cancelled: signal (row 1)", show: "announce signal end",
			log: `1s announce caller_gone
				2s signal 1 terminated
				2s signal 1 continued
				2s end`,
		},
	})
}

func TestBudget(t *testing.T) {
	refused := func(r budget.Refusal) bank { return bank{withdrawals: []budget.Decision{refusal(r)}} }
	names := func(want string) func(*testing.T, *exec.Outcome) {
		return func(t *testing.T, out *exec.Outcome) {
			t.Helper()
			if out.Refusal.Budget != want {
				t.Errorf("Refusal = %+v, want one by %q", out.Refusal, want)
			}
		}
	}
	denied := `0s start 1
		0s withdraw
		0s settle 3
		0s end`
	playAll(t, []scene{
		{name: "denied", policy: hourly(), attempts: []script{{code: 1}}, bank: refused(budget.Denied), want: "retryable_failure: budget_denied (row 14)", show: whole, log: denied, also: names("b")},
		{name: "unavailable", policy: hourly(), attempts: []script{{code: 1}}, bank: refused(budget.Unavailable), want: "retryable_failure: budget_unavailable (row 14)", show: whole, log: denied, also: names("b")},
		{name: "breaker open", policy: hourly(), attempts: []script{{code: 1}}, bank: refused(budget.BreakerOpen), want: "retryable_failure: circuit_open (row 13)", show: whole, log: denied, also: names("b")},
		{
			name: "a token for each retry until there are none", policy: hourly(), attempts: []script{{code: 1}},
			bank: bank{withdrawals: []budget.Decision{granted(), granted(), refusal(budget.Denied)}},
			want: "retryable_failure: budget_denied (row 14)", show: whole,
			log: `0s start 1
				0s withdraw
				1h0m0s recheck
				1h0m0s start 2
				1h0m0s withdraw
				2h0m0s recheck
				2h0m0s start 3
				2h0m0s withdraw
				2h0m0s settle 3
				2h0m0s end`,
		},
		{
			name: "a breaker that opens during the wait costs nothing", policy: hourly(), attempts: []script{{code: 1}},
			bank: bank{rechecks: []budget.Decision{refusal(budget.BreakerOpen)}},
			want: "retryable_failure: circuit_open (row 13)", show: whole, also: names("b"),
			log: `0s start 1
				0s withdraw
				1h0m0s recheck
				1h0m0s refund
				1h0m0s settle 3
				1h0m0s end`,
		},
		{
			name: "an open breaker refuses the first attempt", policy: hourly(), attempts: []script{succeeds()}, admit: true,
			bank: bank{admits: []budget.Decision{refusal(budget.BreakerOpen)}},
			want: "retryable_failure: circuit_open (row 13)", show: whole, also: names("b"),
			log: `0s admit
				0s settle 0
				0s end`,
		},
		{
			name: "nothing else does", policy: hourly(), attempts: []script{succeeds()}, admit: true,
			bank: bank{admits: []budget.Decision{refusal(budget.Unavailable)}},
			want: "success: succeeded (row 3)", show: "admit start", also: names(""),
			log: `0s admit
				0s start 1`,
		},
		{
			name: "a lock wait ends on a signal", policy: hourly(), attempts: []script{{code: 1}}, bank: bank{blocks: "withdraw"},
			events: []event{send(time.Second, syscall.SIGTERM)},
			want:   "cancelled: signal (row 1)", show: whole,
			log: `0s start 1
				0s withdraw
				1s settle 0
				1s end`,
		},
		{
			name: "a token that is granted in spite of it is refunded", policy: hourly(), attempts: []script{{code: 1}},
			bank: bank{takes: time.Minute, deaf: true}, events: []event{send(time.Second, syscall.SIGTERM)},
			want: "cancelled: signal (row 1)", show: whole,
			log: `0s start 1
				0s withdraw
				1m0s refund
				1m0s settle 0
				1m0s end`,
		},
		{
			name: "so does the one after the wait, with a refund", policy: hourly(), attempts: []script{{code: 1}}, bank: bank{blocks: "recheck"},
			events: []event{send(time.Hour+time.Second, syscall.SIGTERM)},
			want:   "cancelled: signal (row 1)", show: whole,
			log: `0s start 1
				0s withdraw
				1h0m0s recheck
				1h0m1s refund
				1h0m1s settle 0
				1h0m1s end`,
		},
		{
			name: "a lock wait that eats the time for the retry", attempts: []script{{code: 1}}, bank: bank{takes: time.Second},
			policy: with(hourly(), func(p *exec.Policy) { p.MaxElapsed = time.Hour + time.Second }),
			want:   "retryable_failure: elapsed_exhausted (row 12)", show: whole,
			log: `0s start 1
				0s withdraw
				1s refund
				1s settle 3
				1s end`,
		},
		{
			name: "one after the wait that eats it", attempts: []script{{code: 1}}, bank: bank{takes: time.Second},
			policy: with(hourly(), func(p *exec.Policy) { p.MaxElapsed = time.Hour + 2*time.Second }),
			want:   "retryable_failure: elapsed_exhausted (row 10)", show: whole,
			log: `0s start 1
				0s withdraw
				1h0m1s recheck
				1h0m2s refund
				1h0m2s settle 3
				1h0m2s end`,
		},
	})
}

// No token is asked for where no retry can follow.
func TestNoTokenWithoutARetry(t *testing.T) {
	for _, s := range []scene{
		{name: "success", attempts: []script{succeeds()}},
		{name: "permanent", attempts: []script{{code: 1, verdict: exec.Verdict{Verdict: classify.Verdict{Class: classify.Permanent}}}}},
		{name: "past the deadline", attempts: []script{{lasts: time.Minute, code: 1}}, deadline: time.Minute + 1},
		{name: "input used up", attempts: []script{{code: 1, result: exec.Result{StdinConsumed: true}}}},
		{name: "interrupted", attempts: []script{{code: 130}}},
		{name: "cancelled", attempts: []script{runs()}, events: []event{send(1, syscall.SIGTERM)}},
		{name: "abandoned", attempts: []script{{lasts: time.Minute, code: 1}}, caller: true, events: []event{loseCaller(1)}},
		{name: "not found", attempts: []script{{startErr: &exec.StartError{Err: syscall.ENOENT, Status: 127}}}},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.policy = hourly()
				w := newWorld(s)
				check(t, w, w.run())
				if n := w.asked("withdraw"); n != 0 || w.refunds != 0 {
					t.Errorf("the budget was asked %d times and refunded %d, want 0 and 0", n, w.refunds)
				}
			})
		})
	}
}
