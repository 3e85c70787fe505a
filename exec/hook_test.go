package exec_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

type scripts = map[exec.Hook]script

func failsAs(c classify.Class) script {
	return script{code: 1, verdict: exec.Verdict{Verdict: classify.Verdict{Class: c}}}
}

func warns(want ...string) func(*testing.T, *exec.Outcome) {
	return func(t *testing.T, out *exec.Outcome) {
		t.Helper()
		if diff := cmp.Diff(want, out.Warnings); diff != "" {
			t.Errorf("Warnings (-want +got):\n%s", diff)
		}
	}
}

func TestReconcile(t *testing.T) {
	asking := with(hourly(), func(p *exec.Policy) { p.Reconcile = true })
	ambiguous := failsAs(classify.Ambiguous)
	hook := func(s script) scripts { return scripts{exec.HookReconcile: s} }
	answered := func(want exec.Reconciliation) func(*testing.T, *exec.Outcome) {
		return func(t *testing.T, out *exec.Outcome) {
			t.Helper()
			if out.Reconciliation == nil || *out.Reconciliation != want {
				t.Errorf("Reconciliation = %+v, want %+v", out.Reconciliation, want)
			}
		}
	}
	const show = "start term kill withdraw end"
	playAll(t, []scene{
		{
			name: "it did happen", policy: asking, attempts: []script{ambiguous}, hooks: hook(script{lasts: time.Second}),
			want: "success: reconciled (row 7)", show: show, also: answered(exec.Reconciliation{After: 1, Answer: exec.Happened}),
			log: `0s start 1
				0s start reconcile
				1s end`,
		},
		{
			name: "it did not", policy: asking, attempts: []script{ambiguous, succeeds()}, hooks: hook(script{lasts: time.Second, code: 1}),
			want: "success: succeeded (row 3)", show: show, also: answered(exec.Reconciliation{After: 1, Answer: exec.DidNotTake, Exit: 1}),
			log: `0s start 1
				0s start reconcile
				1s withdraw
				1h0m1s start 2
				1h0m1.001s end`,
		},
		{
			name: "it did not, each time", hooks: hook(script{lasts: time.Second, code: 1}), attempts: []script{ambiguous},
			policy: with(asking, func(p *exec.Policy) { p.MaxAttempts = 2 }),
			want:   "retryable_failure: attempts_exhausted (row 8)", show: show, also: answered(exec.Reconciliation{After: 2, Answer: exec.DidNotTake, Exit: 1}),
			log: `0s start 1
				0s start reconcile
				1s withdraw
				1h0m1s start 2
				1h0m1s start reconcile
				1h0m2s end`,
		},
		{
			name: "nobody knows", policy: asking, attempts: []script{ambiguous}, hooks: hook(script{lasts: time.Second, code: 2}),
			want: "hard_failure: ambiguous (row 7)", also: answered(exec.Reconciliation{After: 1, Answer: exec.Unclear, Exit: 2}),
		},
		{
			name: "it hangs", policy: asking, attempts: []script{ambiguous}, hooks: hook(script{lasts: forever, deaf: true}), hookTime: time.Minute,
			want: "hard_failure: ambiguous (row 7)", show: show, also: answered(exec.Reconciliation{After: 1, Answer: exec.Unclear, Exit: -1}),
			log: `0s start 1
				0s start reconcile
				1m0s term reconcile
				1m5s kill reconcile
				1m5s end`,
		},
		{
			name: "it cannot be started", policy: asking, attempts: []script{ambiguous}, hooks: hook(script{startErr: errors.New("no sh")}),
			want: "hard_failure: ambiguous (row 7)", also: warns("reconcile: no sh"),
		},
		{
			name: "it is no longer asked past a ceiling", attempts: []script{{lasts: forever, verdict: ambiguous.verdict}}, hooks: hook(script{}),
			policy: with(asking, func(p *exec.Policy) { p.MaxElapsed = time.Minute }),
			want:   "hard_failure: ambiguous (row 7)", show: show,
			log: `0s start 1
				1m0s term 1
				1m0s end`,
		},
		{
			name: "it is cut at the ceiling", attempts: []script{ambiguous}, hooks: hook(runs()), hookTime: time.Hour,
			policy: with(asking, func(p *exec.Policy) { p.MaxElapsed = time.Minute }),
			want:   "hard_failure: ambiguous (row 7)", show: show,
			log: `0s start 1
				0s start reconcile
				1m0s term reconcile
				1m0s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if out.CutByCeiling {
					t.Error("CutByCeiling = true for a hook, want it for attempts only")
				}
			},
		},
		{
			name: "a cancel ends it, and killing it is not killing the command", policy: asking, attempts: []script{ambiguous}, hooks: hook(script{lasts: forever, deaf: true}),
			events: []event{send(time.Second, syscall.SIGTERM)},
			want:   "cancelled: signal (row 1)", show: show, also: bySignal(syscall.SIGTERM, false),
			log: `0s start 1
				0s start reconcile
				6s kill reconcile
				6s end`,
		},
		{
			name: "after a cancel it is not asked", policy: asking, attempts: []script{{lasts: forever, verdict: ambiguous.verdict}}, hooks: hook(script{}),
			events: []event{send(time.Second, syscall.SIGTERM)},
			want:   "cancelled: signal (row 1)", show: "start", log: `0s start 1`,
		},
		{
			name: "without one nobody is asked", policy: hourly(), attempts: []script{ambiguous},
			want: "hard_failure: ambiguous (row 7)", show: show,
			log: `0s start 1
				0s end`,
		},
	})
}

func TestCorrect(t *testing.T) {
	correcting := with(hourly(), func(p *exec.Policy) { p.Correct, p.MaxCorrections, p.MaxAttempts = true, 2, 1 })
	malformed := failsAs(classify.Correctable)
	hook := func(s script) scripts { return scripts{exec.HookCorrect: s} }
	better := script{lasts: time.Second, out: "cmd --better"}
	corrected := func(want ...exec.Correction) func(*testing.T, *exec.Outcome) {
		return func(t *testing.T, out *exec.Outcome) {
			t.Helper()
			if diff := cmp.Diff(want, out.Corrections); diff != "" {
				t.Errorf("Corrections (-want +got):\n%s", diff)
			}
		}
	}
	argv := []string{"cmd", "--better"}
	const show = "start fail term kill withdraw recheck refund end"
	unused := `0s start 1
		0s withdraw
		0s start correct
		1s refund
		1s end`
	playAll(t, []scene{
		{
			name: "its answer is the command from then on", policy: with(correcting, func(p *exec.Policy) { p.MaxAttempts = 2 }),
			attempts: []script{malformed, {code: 7}, succeeds()}, hooks: hook(better),
			want: "success: succeeded (row 3)", show: show, also: corrected(exec.Correction{After: 1, Argv: argv}),
			log: `0s start 1
				0s withdraw
				0s start correct
				1s recheck
				1s start 2 cmd --better
				1s withdraw
				1h0m1s recheck
				1h0m1s start 3 cmd --better
				1h0m1.001s end`,
		},
		{
			name: "it has its own limit", policy: correcting, attempts: []script{malformed}, hooks: hook(better),
			want: "hard_failure: correctable (row 7)", show: "start end",
			also: corrected(exec.Correction{After: 1, Argv: argv}, exec.Correction{After: 2, Argv: argv}),
			log: `0s start 1
				0s start correct
				1s start 2 cmd --better
				1s start correct
				2s start 3 cmd --better
				2s end`,
		},
		{
			name: "it pays", policy: correcting, attempts: []script{malformed}, hooks: hook(better),
			bank: bank{withdrawals: []budget.Decision{refusal(budget.Denied)}},
			want: "retryable_failure: budget_denied (row 14)", show: "start end", also: corrected(),
			log: `0s start 1
				0s end`,
		},
		{
			name: "it fails", policy: correcting, attempts: []script{malformed}, hooks: hook(script{lasts: time.Second, code: 3}),
			want: "hard_failure: correctable (row 7)", show: show, log: unused,
			also: corrected(exec.Correction{After: 1, Err: "the hook exited with 3"}),
		},
		{
			name: "it prints nonsense", policy: correcting, attempts: []script{malformed}, hooks: hook(script{lasts: time.Second, out: "nonsense"}),
			want: "hard_failure: correctable (row 7)", show: show, log: unused,
			also: corrected(exec.Correction{After: 1, Err: "not a list"}),
		},
		{
			name: "it prints nothing", policy: correcting, attempts: []script{malformed}, hooks: hook(script{lasts: time.Second}),
			want: "hard_failure: correctable (row 7)", show: show, log: unused,
			also: corrected(exec.Correction{After: 1, Argv: []string{}, Err: "the hook printed an empty command"}),
		},
		{
			name: "it hangs", policy: correcting, attempts: []script{malformed}, hooks: hook(runs()), hookTime: time.Second,
			want: "hard_failure: correctable (row 7)", show: "start term refund",
			also: corrected(exec.Correction{After: 1, Err: "the hook did not finish in time"}),
			log: `0s start 1
				0s start correct
				1s term correct
				1s refund`,
		},
		{
			name: "it cannot be started", policy: correcting, attempts: []script{malformed}, hooks: hook(script{startErr: errors.New("no sh")}),
			want: "hard_failure: correctable (row 7)", show: "start refund end",
			also: corrected(exec.Correction{After: 1, Err: "no sh"}),
			log: `0s start 1
				0s refund
				0s end`,
		},
		{
			name: "it is cut at the ceiling", attempts: []script{malformed}, hooks: hook(runs()),
			policy: with(correcting, func(p *exec.Policy) { p.MaxElapsed = time.Minute }),
			want:   "retryable_failure: elapsed_exhausted (row 10)", show: "start term refund",
			log: `0s start 1
				0s start correct
				1m0s term correct
				1m0s refund`,
		},
		{
			name: "a cancel ends it", policy: correcting, attempts: []script{malformed}, hooks: hook(runs()),
			events: []event{send(time.Minute, syscall.SIGINT)},
			want:   "cancelled: signal (row 1)", show: "start refund end",
			log: `0s start 1
				0s start correct
				1m0s refund
				1m0s end`,
		},
		{
			name: "its command is not found", policy: correcting, hooks: hook(better),
			attempts: []script{malformed, {startErr: &exec.StartError{Err: syscall.ENOENT, Status: 127}}},
			want:     "hard_failure: start_failed (row 6)", show: "start fail refund",
			log: `0s start 1
				0s start correct
				1s fail 2
				1s refund`,
		},
		{
			name: "a breaker that opens meanwhile stops it", policy: correcting, attempts: []script{malformed}, hooks: hook(better),
			bank: bank{rechecks: []budget.Decision{refusal(budget.BreakerOpen)}},
			want: "retryable_failure: circuit_open (row 13)", show: "start refund",
			log: `0s start 1
				0s start correct
				1s refund`,
		},
	})
}

func TestBeforeRetry(t *testing.T) {
	hook := func(s script) scripts { return scripts{exec.HookBeforeRetry: s} }
	const show = "start term kill withdraw recheck refund end"
	playAll(t, []scene{
		{
			name: "runs after the wait, before the last look", policy: hourly(), attempts: []script{{code: 1}, succeeds()}, hooks: hook(runsFor(time.Second)),
			want: "success: succeeded (row 3)", show: show, also: warns(),
			log: `0s start 1
				0s withdraw
				1h0m0s start before-retry
				1h0m1s recheck
				1h0m1s start 2
				1h0m1.001s end`,
		},
		{
			name: "failing is a warning", policy: hourly(), attempts: []script{{code: 1}, succeeds()}, hooks: hook(script{code: 3}),
			want: "success: succeeded (row 3)", also: warns("before_retry: the hook exited with 3"),
		},
		{
			name: "so is hanging", policy: hourly(), attempts: []script{{code: 1}, succeeds()}, hooks: hook(runs()), hookTime: time.Minute,
			want: "success: succeeded (row 3)", also: warns("before_retry: the hook did not finish in time"),
		},
		{
			name: "dying", policy: hourly(), attempts: []script{{code: 1}, succeeds()}, hooks: hook(script{signal: syscall.SIGSEGV}),
			want: "success: succeeded (row 3)", also: warns("before_retry: the hook was ended by segmentation fault"),
		},
		{
			name: "and not starting", policy: hourly(), attempts: []script{{code: 1}, succeeds()}, hooks: hook(script{startErr: errors.New("no sh")}),
			want: "success: succeeded (row 3)", also: warns("before_retry: no sh"),
		},
		{
			name: "a ceiling cuts it and the retry", attempts: []script{{code: 1}}, hooks: hook(runs()),
			policy: with(hourly(), func(p *exec.Policy) { p.MaxElapsed = 2 * time.Hour }),
			want:   "retryable_failure: elapsed_exhausted (row 10)", show: "start term refund",
			log: `0s start 1
				1h0m0s start before-retry
				2h0m0s term before-retry
				2h0m0s refund`,
		},
		{
			name: "a cancel ends it and the retry, without a second look", policy: hourly(), attempts: []script{{code: 1}}, hooks: hook(runs()),
			events: []event{send(90*time.Minute, syscall.SIGTERM)},
			want:   "cancelled: signal (row 1)", show: show, also: bySignal(syscall.SIGTERM, false),
			log: `0s start 1
				0s withdraw
				1h0m0s start before-retry
				1h30m0s refund
				1h30m0s end`,
		},
		{
			name: "it does not run when there is no retry", policy: hourly(), attempts: []script{{code: 1}}, hooks: hook(script{}),
			events: []event{send(time.Minute, syscall.SIGTERM)},
			want:   "cancelled: signal (row 1)", show: "start", log: `0s start 1`,
		},
	})
}

func TestOnOutcome(t *testing.T) {
	hook := func(s script) scripts { return scripts{exec.HookOnOutcome: s} }
	deaf := script{lasts: forever, deaf: true}
	const show = "start signal term kill settle end"
	playAll(t, []scene{
		{
			name: "speaks last", policy: hourly(), attempts: []script{succeeds()}, hooks: hook(runsFor(time.Second)),
			want: "success: succeeded (row 3)", show: show,
			log: `0s start 1
				1ms settle 1
				1ms start on-outcome
				1.001s end`,
			also: func(t *testing.T, out *exec.Outcome) {
				t.Helper()
				if out.Elapsed != ms {
					t.Errorf("Elapsed = %v, want 1ms: the hook is not part of the run", out.Elapsed)
				}
			},
		},
		{
			name: "failing is a warning", policy: hourly(), attempts: []script{succeeds()}, hooks: hook(script{code: 9}),
			want: "success: succeeded (row 3)", also: warns("on_outcome: the hook exited with 9"),
		},
		{
			name: "so is not starting", policy: hourly(), attempts: []script{succeeds()}, hooks: hook(script{startErr: errors.New("no sh")}),
			want: "success: succeeded (row 3)", also: warns("on_outcome: no sh"),
		},
		{
			name: "speaks where nothing ran", policy: hourly(), deadline: -1, attempts: []script{succeeds()}, hooks: hook(runsFor(time.Second)),
			want: "retryable_failure: deadline_exceeded (row 10)", show: show, also: warns(),
			log: `0s settle 0
				0s start on-outcome
				1s end`,
		},
		{
			name: "has its own limit", policy: hourly(), attempts: []script{{}}, hooks: hook(deaf), hookTime: time.Minute,
			want: "success: succeeded (row 3)", show: show, also: warns("on_outcome: the hook did not finish in time"),
			log: `0s start 1
				0s settle 1
				0s start on-outcome
				1m0s term on-outcome
				1m5s kill on-outcome
				1m5s end`,
		},
		{
			name: "after a cancel has two seconds in all", policy: hourly(), attempts: []script{runs()}, hooks: hook(deaf), hookTime: time.Minute,
			events: []event{send(time.Second, syscall.SIGINT)}, want: "cancelled: signal (row 1)", show: show,
			log: `0s start 1
				1s signal 1 interrupt
				1s signal 1 continued
				1s settle 0
				1s start on-outcome
				2.8s term on-outcome
				3s kill on-outcome
				3s end`,
			also: bySignal(syscall.SIGINT, false),
		},
		{
			name: "so it has when the delivery of the output was cut short", policy: hourly(), attempts: []script{succeeds()}, hooks: hook(deaf),
			delivered: func(out *exec.Outcome) { out.Label, out.Reason = exec.Cancelled, exec.BySignal }, hookTime: time.Minute, show: "settle term kill end",
			log: `1ms settle 0
				1.801s term on-outcome
				2.001s kill on-outcome
				2.001s end`,
		},
		{
			name: "so it has when a ceiling has passed", attempts: []script{runs()}, hooks: hook(deaf), hookTime: time.Minute,
			policy: with(hourly(), func(p *exec.Policy) { p.MaxElapsed = time.Minute }), show: "term kill end",
			log: `1m0s term 1
				1m1.8s term on-outcome
				1m2s kill on-outcome
				1m2s end`,
		},
		{
			name: "ends with the ceiling", attempts: []script{succeeds()}, hooks: hook(deaf), hookTime: time.Hour,
			policy: with(hourly(), func(p *exec.Policy) { p.MaxElapsed = time.Minute }), show: "term kill end",
			log: `1m0s term on-outcome
				1m5s kill on-outcome
				1m5s end`,
		},
		{
			name: "also where kill-after is long and escalation slow", attempts: []script{runs()}, hooks: hook(deaf),
			policy: with(hourly(), func(p *exec.Policy) { p.KillAfter, p.EscalateAfter = time.Hour, time.Hour }),
			events: []event{send(time.Second, syscall.SIGINT)}, show: "kill end",
			log: `3s kill on-outcome
				3s end`,
		},
		{
			name: "a second signal cuts it short", policy: hourly(), attempts: []script{runs()}, hooks: hook(deaf), hookTime: time.Minute,
			events: []event{send(time.Second, syscall.SIGINT), send(2*time.Second, syscall.SIGINT)}, show: "kill end",
			log: `2.2s kill on-outcome
				2.2s end`,
		},
		{
			name: "a first signal ends it and changes nothing", policy: hourly(), attempts: []script{{}}, hooks: hook(runs()),
			events: []event{send(time.Second, syscall.SIGINT)}, want: "success: succeeded (row 3)", show: show,
			log: `0s start 1
				0s settle 1
				0s start on-outcome
				1s signal on-outcome interrupt
				1s signal on-outcome continued
				1s end`,
		},
		{
			name: "token and caller come too late", attempts: []script{{}}, hooks: hook(runsFor(time.Minute)), token: true, caller: true,
			policy: with(hourly(), func(p *exec.Policy) { p.Orphan = exec.OrphanKill }),
			events: []event{setToken(time.Second, "enough"), loseCaller(2 * time.Second)}, want: "success: succeeded (row 3)", show: "start term announce end",
			log: `0s start 1
				0s start on-outcome
				1m0s end`,
		},
	})
}
