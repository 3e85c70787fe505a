package cmd

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// stoppedBy is a run that one attempt of this class ended.
func stoppedBy(class classify.Class, rule string) *exec.Outcome {
	return &exec.Outcome{
		Label: exec.HardFailure, Reason: exec.Reason(class), Row: 7, AttemptCount: 1,
		Attempts: []exec.Attempt{{
			N: 1, Elapsed: 5 * time.Second, Result: exec.Result{Code: 1}, Delay: -1,
			Verdict: exec.Verdict{Verdict: classify.Verdict{Class: class, Rule: rule}},
		}},
	}
}

// endedBy is a run that ended with this reason after n attempts.
func endedBy(reason exec.Reason, n int) *exec.Outcome {
	o := stoppedBy(classify.Transient, "curl/connect-refused")
	o.Label, o.Reason, o.Row, o.AttemptCount = exec.RetryableFailure, reason, 0, n
	o.Attempts[0].N = n
	if n == 0 {
		o.Attempts = nil
	}
	return o
}

func edited(o *exec.Outcome, edit func(o *exec.Outcome, last *exec.Attempt)) *exec.Outcome {
	edit(o, o.Last())
	return o
}

func TestMessage(t *testing.T) {
	deadline := facts{deadline: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	const threshold = 5
	usual := []classify.Class{classify.Transient, classify.Unknown}
	open := facts{threshold: threshold, breaker: &budget.BreakerStatus{Budget: "api", State: "open", Failures: threshold}}
	byRate := facts{threshold: threshold, breaker: &budget.BreakerStatus{Budget: "api", State: "open", Failures: 1}}
	probing := facts{breaker: &budget.BreakerStatus{Budget: "api", State: "half_open", Failures: threshold}}
	refusal := func(reason exec.Reason, n int, d budget.Decision) *exec.Outcome {
		return edited(endedBy(reason, n), func(o *exec.Outcome, _ *exec.Attempt) { o.Refusal = d })
	}
	for _, tt := range []struct {
		name string
		o    *exec.Outcome
		f    facts
		want string
	}{
		{"succeeded at once", endedBy(exec.Succeeded, 1), facts{}, "succeeded after 1 attempt"},
		{"succeeded", endedBy(exec.Succeeded, 3), facts{}, "succeeded after 3 attempts"},
		{"reconciled", endedBy(exec.Reconciled, 2), facts{}, "succeeded: attempt 2 had failed, and --reconcile found that it did happen"},
		{"orphaned success", endedBy(exec.OrphanedSuccess, 2), facts{}, "succeeded after 2 attempts, but the caller is gone, or nobody reads stdout"},
		{"caller gone", endedBy(exec.CallerGone, 1), facts{}, "stopped: the caller is gone, or nobody reads stdout; to go on all the same: --on-orphan ignore"},
		{"output closed", endedBy(exec.OutputClosed, 1), facts{}, "stopped: nobody reads the output any more"},
		{"signal before", edited(endedBy(exec.BySignal, 0), func(o *exec.Outcome, _ *exec.Attempt) { o.CancelSignal = syscall.SIGTERM }), facts{}, "cancelled by SIGTERM before the first attempt"},
		{"signal during", edited(endedBy(exec.BySignal, 2), func(o *exec.Outcome, _ *exec.Attempt) {
			o.CancelSignal, o.CancelledInAttempt = syscall.SIGINT, true
		}), facts{}, "cancelled by SIGINT during attempt 2"},
		{"signal after", edited(endedBy(exec.BySignal, 2), func(o *exec.Outcome, _ *exec.Attempt) { o.CancelSignal = syscall.SIGHUP }), facts{}, "cancelled by SIGHUP after attempt 2"},
		{"cancel token", endedBy(exec.ByCancelToken, 0), facts{}, "cancelled by the cancel file before the first attempt"},
		{"cancel token with a reason", edited(endedBy(exec.ByCancelToken, 1), func(o *exec.Outcome, _ *exec.Attempt) { o.CancelReason = "deploy\nsuperseded" }), facts{}, "cancelled by the cancel file after attempt 1: deploy superseded"},
		{"child interrupted", edited(endedBy(exec.ChildInterrupted, 1), func(_ *exec.Outcome, a *exec.Attempt) {
			a.Result = exec.Result{Code: -1, Signal: syscall.SIGINT}
		}), facts{}, "cancelled: the command was interrupted (killed by SIGINT)"},
		{"stdin", endedBy(exec.StdinConsumed, 1), facts{}, "not retried: the command's input is used up; to give every attempt the same input: --stdin replay"},

		{"stopped by child", edited(endedBy(exec.StoppedByChild, 1), func(o *exec.Outcome, a *exec.Attempt) {
			o.Row, a.Verdict.Stop = 7, &exec.Stop{}
		}), facts{}, "stopped: the command said in RETRYX_HINT that it must not be retried"},
		{"stopped by child with a reason", edited(endedBy("quota_used", 1), func(o *exec.Outcome, a *exec.Attempt) {
			o.Row, a.Verdict.Stop = 7, &exec.Stop{}
		}), facts{}, "stopped: the command said in RETRYX_HINT that it must not be retried: quota_used"},
		{"stopped by a nested retryx", edited(endedBy(exec.BudgetDenied, 1), func(o *exec.Outcome, a *exec.Attempt) {
			o.Row, a.Verdict.Stop, a.Verdict.Nested = 7, &exec.Stop{}, true
		}), facts{}, "stopped: the retryx inside ended as retryable_failure: budget_denied"},

		{"attempts", endedBy(exec.AttemptsExhausted, 4), facts{}, "gave up after 4 attempts: exit status 1, transient (curl/connect-refused)"},
		{"one attempt, no rule", edited(endedBy(exec.AttemptsExhausted, 1), func(_ *exec.Outcome, a *exec.Attempt) {
			a.Verdict.Class, a.Verdict.Rule, a.TimedOut = classify.Unknown, "", true
		}), facts{}, "gave up after 1 attempt: timed out after 5s, unknown"},
		{"deadline before", endedBy(exec.DeadlineExceeded, 0), deadline, "not started: the deadline 2026-01-02T03:04:05.000Z has passed"},
		{"deadline during", edited(endedBy(exec.DeadlineExceeded, 2), func(o *exec.Outcome, _ *exec.Attempt) { o.CutByCeiling = true }), deadline, "attempt 2 was ended: the deadline 2026-01-02T03:04:05.000Z has passed"},
		{"elapsed ahead", endedBy(exec.ElapsedExhausted, 2), facts{}, "not retried: --max-elapsed leaves no time for another attempt: exit status 1, transient (curl/connect-refused)"},
		{"stated wait", edited(endedBy(exec.RetryAfterTooLong, 1), func(o *exec.Outcome, _ *exec.Attempt) { o.StatedWait = 10 * time.Minute }), facts{}, "not retried: asked to wait 10m0s, which is longer than --max-retry-after or the time that is left; try again in 10m0s"},

		{"breaker before", refusal(exec.CircuitOpen, 0, budget.Decision{Budget: "api", Next: 12 * time.Second}), open, `not started: refused by the breaker of budget "api": open after 5 failures, next try in 12s`},
		{"breaker after", refusal(exec.CircuitOpen, 2, budget.Decision{Budget: "api"}), byRate, `retry refused by the breaker of budget "api": open, as too many of the last runs failed`},
		{"breaker probing", refusal(exec.CircuitOpen, 0, budget.Decision{Budget: "api", Next: 500 * time.Millisecond}), probing, `not started: refused by the breaker of budget "api": one probe is under way, next try in 500ms`},
		{"denied", refusal(exec.BudgetDenied, 3, budget.Decision{Budget: "curl", Tokens: 0.39, Cap: 20, Next: 7 * time.Second}), facts{}, `retry refused by budget "curl": 0.3 of 20 tokens, next whole token in 7s`},
		{"denied for good", refusal(exec.BudgetDenied, 3, budget.Decision{Budget: "run:x", Tokens: 0, Cap: 3, Next: -1}), facts{}, `retry refused by budget "run:x": 0 of 3 tokens, and none will come`},
		{"denied by the fallback", refusal(exec.BudgetDenied, 3, budget.Decision{Budget: "api", Tokens: 0, Cap: 3, Next: 10 * time.Second, Policy: "fallback", Detail: "dial: refused"}), facts{}, `retry refused by budget "api": 0 of 3 tokens, next whole token in 10s; policy fallback: counted on this machine only (dial: refused)`},
		{"denied in memory", refusal(exec.BudgetDenied, 3, budget.Decision{Budget: "api", Tokens: 0, Cap: 1, Next: 10 * time.Second, Policy: "local", Detail: "disk full"}), facts{}, `retry refused by budget "api": 0 of 1 tokens, next whole token in 10s; policy local: counted for this run only (disk full)`},
		{"unavailable", refusal(exec.BudgetUnavailable, 1, budget.Decision{Budget: "api", Policy: "closed", Detail: "permission denied"}), facts{}, `retry refused: budget "api" cannot be read (permission denied); policy closed; to retry without it: --budget-on-error local`},
		{"internal", edited(endedBy(exec.InternalError, 0), func(o *exec.Outcome, _ *exec.Attempt) { o.Fault = errors.New("open pipe: too many files") }), facts{}, "retryx itself failed: open pipe: too many files"},
		{"internal without an error", endedBy(exec.InternalError, 0), facts{}, "retryx itself failed"},

		{"permanent", stoppedBy(classify.Permanent, "npm/test-failed"), facts{}, "stopped: permanent (npm/test-failed); to retry it anyway: --retry-exit 1"},
		{"config", stoppedBy(classify.Config, "git/auth"), facts{}, "stopped: config (git/auth); to retry it anyway: --retry-exit 1"},
		{"unknown with --strict", stoppedBy(classify.Unknown, ""), facts{}, "stopped: unknown; to retry it anyway: --retry-exit 1"},
		{"crash", edited(stoppedBy(classify.Unexpected, "signal/crash"), func(_ *exec.Outcome, a *exec.Attempt) {
			a.Result = exec.Result{Code: -1, Signal: syscall.SIGSEGV}
		}), facts{}, "stopped: unexpected (signal/crash); to retry it anyway: --rule 'transient: signal=SEGV'"},
		{"timed out", edited(stoppedBy(classify.Transient, "retryx/timed-out"), func(_ *exec.Outcome, a *exec.Attempt) { a.TimedOut = true }), facts{}, "stopped: transient (retryx/timed-out); to retry it anyway: --retry-on transient,unknown"},
		{"in spite of status 0", edited(stoppedBy(classify.Config, "redis-cli/access"), func(_ *exec.Outcome, a *exec.Attempt) { a.Result.Code = 0 }), facts{}, "stopped: config (redis-cli/access); to retry it anyway: --retry-on transient,unknown,config"},
		{"in spite of status 0, strictly", edited(stoppedBy(classify.Permanent, "env/1"), func(_ *exec.Outcome, a *exec.Attempt) { a.Result.Code = 0 }), facts{strict: true, retrySet: []classify.Class{classify.Transient}}, "stopped: permanent (env/1); to retry it anyway: --retry-on transient,permanent instead of --strict"},
		{"user's own rule to retry, of a set without it", stoppedBy(classify.Transient, "flag/1"), facts{retrySet: []classify.Class{classify.Unknown}}, "stopped: transient (flag/1); to retry it anyway: --retry-on unknown,transient"},
		{"user's own rule", stoppedBy(classify.Permanent, "flag/1"), facts{}, "stopped: permanent (flag/1); a rule of this command line says so"},
		{"correctable", stoppedBy(classify.Correctable, "jq/parse"), facts{}, "stopped: correctable (jq/parse); to have it corrected: --correct CMD; to retry it anyway: --retry-exit 1"},
		{"correctable, corrector failed", edited(stoppedBy(classify.Correctable, "jq/parse"), func(o *exec.Outcome, _ *exec.Attempt) {
			o.Corrections = []exec.Correction{{After: 1, Err: "the corrector failed"}}
		}), facts{}, "stopped: correctable (jq/parse): the corrector failed; to retry it anyway: --retry-exit 1"},
		{"ambiguous", stoppedBy(classify.Ambiguous, "curl/reset"), facts{}, "stopped: ambiguous (curl/reset); the write may have happened; if repeating it does no harm: --idempotent; to find out first: --reconcile CMD"},
		{"ambiguous, not settled", edited(stoppedBy(classify.Ambiguous, "curl/reset"), func(o *exec.Outcome, _ *exec.Attempt) {
			o.Reconciliation = &exec.Reconciliation{After: 1, Answer: exec.Unclear}
		}), facts{}, "stopped: ambiguous (curl/reset): --reconcile could not tell whether it happened; if repeating it does no harm: --idempotent"},
		{"ambiguous by a hint", stoppedBy(classify.Ambiguous, "hint/class"), facts{}, "stopped: ambiguous (hint/class); to retry it anyway: --retry-exit 1"},
		{"ambiguous by a configured rule", stoppedBy(classify.Ambiguous, "config/1"), facts{}, "stopped: ambiguous (config/1); to retry it anyway: --retry-exit 1"},
		{"a set without transient", stoppedBy(classify.Unknown, ""), facts{retrySet: []classify.Class{classify.Permanent}}, "stopped: unknown; to retry it anyway: --retry-on permanent,unknown"},
		{"corrections used up", stoppedBy(classify.Correctable, "jq/parse"), facts{corrects: true}, "stopped: correctable (jq/parse); no correction is left: --max-corrections; to retry it anyway: --retry-exit 1"},
		{"ambiguous though idempotent", stoppedBy(classify.Ambiguous, "hint/class"), facts{idempotent: true}, "stopped: ambiguous (hint/class); to retry it anyway: --retry-exit 1"},
		{"a reason from the future", edited(endedBy("tired", 0), func(*exec.Outcome, *exec.Attempt) {}), facts{}, "ended as retryable_failure: tired"},
		{"secrets", edited(endedBy(exec.ByCancelToken, 1), func(o *exec.Outcome, _ *exec.Attempt) { o.CancelReason = "password=abc\x1b[0m" }), facts{}, "cancelled by the cancel file after attempt 1: password=***"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.f.retrySet == nil {
				tt.f.retrySet = usual
			}
			if got := message(tt.o, tt.f); got != tt.want {
				t.Errorf("message() = %q,\nwant %q", got, tt.want)
			}
		})
	}
}

func TestMessageOfAFailedStart(t *testing.T) {
	for _, tt := range []struct {
		command string
		status  int
		err     error
		want    string
	}{
		{"curl -f x", 127, syscall.ENOENT, `command not found: "curl -f x"; leave out the quotes`},
		{"a | b", 127, syscall.ENOENT, `command not found: "a | b"; for a shell's command line: sh -c '...'`},
		{"cd", 127, syscall.ENOENT, `command not found: "cd"; it is part of the shell: sh -c 'cd ...'`},
		{"A_B=c", 127, syscall.ENOENT, `command not found: "A_B=c"; to set a variable: env A_B=c command`},
		{"~/x", 127, syscall.ENOENT, `command not found: "~/x"; only a shell replaces ~, and not within quotes`},
		{"./x", 127, syscall.ENOENT, `command not found: "./x"; there is no such file, or the interpreter in its first line is missing`},
		{"crul", 127, errors.New("not found"), `command not found: "crul"; is it installed, and in PATH?`},
		{"", 127, syscall.ENOENT, `command not found: ""; a variable in its place may be empty`},
		{"./x", 126, fmt.Errorf("start: %w", syscall.EACCES), `cannot start "./x": permission denied; make it executable with chmod +x, or run it with its interpreter`},
		{"/tmp", 126, syscall.EISDIR, `cannot start "/tmp": it is a directory`},
		{"./x", 126, syscall.ENOEXEC, `cannot start "./x": it is no program and its first line names no interpreter; run it with one, as in sh ./x`},
		{"x", 126, syscall.E2BIG, `cannot start "x": the arguments and the environment are too long; pass them in a file`},
		{"x", 126, syscall.EPERM, `cannot start "x": operation not permitted`},
		{"TOKEN=abcdef", 127, syscall.ENOENT, `command not found: "TOKEN=***"; to set a variable: env TOKEN=*** command`},
	} {
		o := endedBy(exec.StartFailed, 1)
		o.Attempts[0].Result = exec.Result{Code: -1, StartErr: &exec.StartError{Err: tt.err, Status: tt.status}}
		if got := message(o, facts{command: []string{tt.command, "arg"}}); got != tt.want {
			t.Errorf("message(start of %q: %v) = %q,\nwant %q", tt.command, tt.err, got, tt.want)
		}
	}
}

// What a message says to do must name flags that exist.
func TestMessagesNameRealFlags(t *testing.T) {
	known := map[string]bool{}
	for _, s := range table() {
		known["--"+s.name] = true
	}
	classes := []classify.Class{
		classify.Transient, classify.Permanent, classify.Config, classify.Correctable, classify.Ambiguous, classify.Unexpected, classify.Unknown,
	}
	var texts []string
	for _, c := range classes {
		for _, timedOut := range []bool{false, true} {
			o := stoppedBy(c, "x/y")
			o.Attempts[0].TimedOut = timedOut
			texts = append(texts, message(o, facts{}), message(o, facts{idempotent: true}))
		}
	}
	for _, r := range []exec.Reason{
		exec.CallerGone, exec.StdinConsumed, exec.ElapsedExhausted, exec.RetryAfterTooLong, exec.BudgetUnavailable, exec.Reconciled,
	} {
		texts = append(texts, message(endedBy(r, 1), facts{}))
	}
	seen := 0
	for _, text := range texts {
		for word := range strings.FieldsSeq(text) {
			word = strings.TrimRight(word, ";:,.")
			if strings.HasPrefix(word, "--") {
				seen++
				if !known[word] {
					t.Errorf("message %q names %s, which is no flag", text, word)
				}
			}
		}
	}
	if seen < len(classes) {
		t.Errorf("%d flags seen, want at least %d", seen, len(classes))
	}
}
