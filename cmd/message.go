package cmd

// One sentence on how a run ended: what happened, then what to do. A refusal
// says that it is ours, whose budget or breaker it was, what that holds, when
// asking again makes sense and which policy acted. A stop by judgement names
// the flag that would have made this very failure a retry.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
	"github.com/retryx/retryx/exec/proc"
)

// message is the sentence for o, redacted, one line.
func message(o *exec.Outcome, f facts) string {
	said := sentence(o, f)
	if o.Reason == exec.Succeeded {
		return said // all our own, and most runs end so
	}
	return f.redact.line(said, messageLimit)
}

func sentence(o *exec.Outcome, f facts) string {
	last := o.Last()
	switch {
	case last == nil || o.Row != 7:
	case last.Verdict.Rule == outputLostRule:
		return "stopped: " + last.Verdict.Evidence + "; make room where TMPDIR points, or do not hold the output back"
	case last.Verdict.Rule == inputLostRule:
		return "stopped: the command had only a part of its input: " + last.Verdict.Evidence + "; to let it read for itself: --stdin inherit"
	case last.Verdict.Stop != nil:
		return stoppedFromBelow(o, last)
	}
	switch o.Reason {
	case exec.Succeeded:
		return "succeeded" + afterAttempts(o)
	case exec.Reconciled:
		return "succeeded: attempt " + number(o) + " had failed, and --reconcile found that it did happen"
	case exec.OrphanedSuccess:
		return "succeeded" + afterAttempts(o) + ", but the caller is gone, or nobody reads stdout"
	case exec.CallerGone:
		return "stopped: the caller is gone, or nobody reads stdout; to go on all the same: --on-orphan ignore"
	case exec.OutputClosed:
		return "stopped: nobody reads the output any more"
	case exec.BySignal:
		return "cancelled by " + signalName(o.CancelSignal) + when(o)
	case exec.ByCancelToken:
		return cancelledByToken(o)
	case exec.ChildInterrupted:
		return "cancelled: the command was interrupted (" + howEnded(last) + ")"
	case exec.StartFailed:
		return notStarted(last, f.command)
	case exec.OutputLost:
		return lostOutput(o.Fault)
	case exec.StdinConsumed:
		return inputUsedUp(last)
	}
	return limitSentence(o, f)
}

func inputUsedUp(last *exec.Attempt) string {
	const text = "not retried: the command's input is used up"
	switch err := last.Result.StdinErr; {
	case err == nil:
		return text + "; to give every attempt the same input: --stdin replay"
	case errors.Is(err, proc.ErrInputTooLarge):
		return text + " and longer than --stdin-limit, so it was not kept; give a higher one"
	default:
		return text + " and could not be kept: " + err.Error() + "; make room where TMPDIR points"
	}
}

// limitSentence is about limits and refusals.
func limitSentence(o *exec.Outcome, f facts) string {
	switch o.Reason {
	case exec.AttemptsExhausted:
		return "gave up" + afterAttempts(o) + lastFailure(o)
	case exec.DeadlineExceeded:
		return pastCeiling(o, "the deadline "+instant(f.deadline))
	case exec.ElapsedExhausted:
		return pastCeiling(o, "--max-elapsed")
	case exec.RetryAfterTooLong:
		return fmt.Sprintf("not retried: asked to wait %s, which is longer than --max-retry-after or the time that is left; try again in %s",
			shortDuration(o.StatedWait), shortDuration(o.StatedWait))
	case exec.CircuitOpen:
		return circuitOpen(o, f)
	case exec.BudgetDenied:
		return "retry refused by budget " + quoted(o.Refusal.Budget) + ": " + balance(o.Refusal) + policyInForce(o.Refusal)
	case exec.BudgetUnavailable:
		return unavailable(o.Refusal)
	case exec.InternalError:
		return internalError(o.Fault)
	}
	return stoppedByJudgement(o, f)
}

func afterAttempts(o *exec.Outcome) string {
	if o.AttemptCount == 1 {
		return " after 1 attempt"
	}
	return " after " + number(o) + " attempts"
}

func number(o *exec.Outcome) string { return strconv.Itoa(o.AttemptCount) }

// when says where in the run a cancel came.
func when(o *exec.Outcome) string {
	switch {
	case o.AttemptCount == 0:
		return " before the first attempt"
	case o.CancelledInAttempt:
		return " during attempt " + number(o)
	default:
		return " after attempt " + number(o)
	}
}

func cancelledByToken(o *exec.Outcome) string {
	text := "cancelled by the cancel file" + when(o)
	if o.CancelReason != "" {
		text += ": " + o.CancelReason
	}
	return text
}

// stoppedFromBelow is a stop that the command asked for.
func stoppedFromBelow(o *exec.Outcome, last *exec.Attempt) string {
	if last.Verdict.Nested {
		return fmt.Sprintf("stopped: the retryx inside ended as %s: %s", o.Label, o.Reason)
	}
	if o.Reason == exec.StoppedByChild {
		return "stopped: the command said in RETRYX_HINT that it must not be retried"
	}
	return fmt.Sprintf("stopped: the command said in RETRYX_HINT that it must not be retried: %s", o.Reason)
}

// lastFailure says how the last attempt ended and what that was taken for.
func lastFailure(o *exec.Outcome) string {
	last := o.Last()
	if last == nil {
		return ""
	}
	return ": " + howEnded(last) + ", " + judged(last)
}

// judged is the class and the rule that gave it.
func judged(a *exec.Attempt) string {
	if a.Verdict.Rule == "" {
		return string(a.Verdict.Class)
	}
	return string(a.Verdict.Class) + " (" + a.Verdict.Rule + ")"
}

func pastCeiling(o *exec.Outcome, ceiling string) string {
	switch {
	case o.AttemptCount == 0:
		return "not started: " + ceiling + " has passed"
	case o.CutByCeiling:
		return "attempt " + number(o) + " was ended: " + ceiling + " has passed"
	default:
		return "not retried: " + ceiling + " leaves no time for another attempt" + lastFailure(o)
	}
}

func circuitOpen(o *exec.Outcome, f facts) string {
	what := "retry refused"
	if o.AttemptCount == 0 {
		what = "not started: refused"
	}
	text := what + " by the breaker of budget " + quoted(o.Refusal.Budget)
	if b := f.breaker; b != nil && b.State == budget.BreakerHalfOpen.String() {
		text += ": one probe is under way"
	} else if b != nil && b.Failures >= f.threshold {
		text += ": open after " + counted(b.Failures, "failure")
	} else {
		text += ": open, as too many of the last runs failed"
	}
	if o.Refusal.Next > 0 {
		text += ", next try in " + shortDuration(o.Refusal.Next)
	}
	return text + policyInForce(o.Refusal)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// balance is what a budget that refused holds.
func balance(d budget.Decision) string {
	text := fmt.Sprintf("%s of %s tokens", shortNumber(d.Tokens), shortNumber(d.Cap))
	_, err := budget.ParseName(d.Budget)
	usual := budget.Defaults()
	switch changeable := err == nil; { // a run's is not
	case changeable && d.Cap < 1:
		return text + ", and it can hold none; to change that: retryx budget set " + d.Budget + " --capacity " + strconv.Itoa(usual.Capacity)
	case changeable && d.Next < 0:
		return text + ", and time alone brings none; to change that: retryx budget set " + d.Budget + " --refill " + usual.Refill.String()
	case d.Next < 0:
		return text + ", and none will come"
	}
	return text + ", next whole token in " + shortDuration(d.Next)
}

// policyInForce says which policy stood in for a store that failed.
func policyInForce(d budget.Decision) string {
	if d.Policy == "" {
		return ""
	}
	text := "; policy " + d.Policy
	switch d.Policy {
	case budget.PolicyFallback:
		text += ": counted on this machine only"
	case budget.PolicyLocal:
		text += ": counted for this run only"
	case budget.PolicyClosed, budget.PolicyOpen:
	}
	return text + because(d.Detail)
}

func unavailable(d budget.Decision) string {
	policy := d.Policy
	if policy == "" {
		policy = budget.PolicyClosed
	}
	return "retry refused: budget " + quoted(d.Budget) + " cannot be read" + because(d.Detail) + "; policy " + policy +
		"; to retry without it: --budget-on-error local"
}

func because(detail string) string {
	if detail == "" {
		return ""
	}
	return " (" + detail + ")"
}

// lostOutput is about a command that did its work.
func lostOutput(fault error) string {
	text := "the command succeeded, but its output is lost"
	if fault == nil {
		return text
	}
	return text + ": " + fault.Error() + "; make room where stdout goes"
}

func internalError(fault error) string {
	if fault == nil {
		return "retryx itself failed"
	}
	return "retryx itself failed: " + fault.Error()
}

// stoppedByJudgement is a failure of a class that is not retried.
func stoppedByJudgement(o *exec.Outcome, f facts) string {
	last := o.Last()
	if last == nil {
		return fmt.Sprintf("ended as %s: %s", o.Label, o.Reason)
	}
	text := "stopped: " + judged(last)
	answer := answered(o, last)
	if answer != "" {
		text += ": " + answer
	}
	return text + "; " + overrule(last, f, answer != "")
}

// answered is why a hook that was asked did not help.
func answered(o *exec.Outcome, last *exec.Attempt) string {
	if r := o.Reconciliation; r != nil && r.After == last.N {
		return "--reconcile could not tell whether it happened"
	}
	if n := len(o.Corrections); n > 0 && o.Corrections[n-1].After == last.N {
		return o.Corrections[n-1].Err
	}
	return ""
}

// overrule names what would have made it a retry. A hook that was asked is not
// named again.
func overrule(a *exec.Attempt, f facts, asked bool) string {
	const harmless = "if repeating it does no harm: --idempotent"
	switch v := a.Verdict; {
	case strings.HasPrefix(v.Rule, "flag/") && v.Class != classify.Transient: // that would be retried but for the set
		return "a rule of this command line says so"
	case v.Class == classify.Ambiguous && !f.idempotent && !saidSo(v.Rule):
		switch {
		case asked:
			return harmless
		case f.reconcile:
			return "the write may have happened, and no time was left to ask --reconcile; " + harmless
		}
		return "the write may have happened; " + harmless + "; to find out first: --reconcile CMD"
	case v.Class == classify.Correctable && !asked && f.corrects:
		return "no correction is left: --max-corrections; " + anyway(a, f)
	case v.Class == classify.Correctable && !asked:
		return "to have it corrected: --correct CMD; " + anyway(a, f)
	default:
		return anyway(a, f)
	}
}

// saidSo reports whether the user or the command named the class, which what is
// known of the command does not change then.
func saidSo(rule string) bool {
	source, _, _ := strings.Cut(rule, "/")
	return source == "config" || source == "env" || source == "hint"
}

// anyway names the flag with which a would be retried: a rule for how it ended,
// where such a rule is no more than that, else its class.
func anyway(a *exec.Attempt, f facts) string {
	const anyway = "to retry it anyway: "
	switch {
	case a.TimedOut, !slices.Contains(f.retrySet, classify.Transient):
	case a.Result.Signal != 0:
		return anyway + "--rule 'transient: signal=" + strings.TrimPrefix(signalName(a.Result.Signal), "SIG") + "'"
	case a.Result.Code > 0: // --retry-exit 0 would retry every success
		return fmt.Sprintf("%s--retry-exit %d", anyway, a.Result.Code)
	}
	set := f.retrySet
	if c := a.Verdict.Class; c != "" && !slices.Contains(set, c) {
		set = slices.Concat(set, []classify.Class{c})
	}
	names := make([]string, len(set))
	for i, c := range set {
		names[i] = string(c)
	}
	text := anyway + "--retry-on " + strings.Join(names, ",")
	if f.strict {
		text += " instead of --strict"
	}
	return text
}

// notStarted says why a command could not be started, and what people mean who
// write it so.
func notStarted(last *exec.Attempt, command []string) string {
	name := ""
	if len(command) > 0 {
		name = command[0]
	}
	if last == nil || last.Result.StartErr == nil {
		return "cannot start " + quoted(name)
	}
	err := last.Result.StartErr
	if start, ok := errors.AsType[*proc.StartError](err); ok {
		name = start.Argv0 // after a correction, or expanded, not the one that was given
	}
	switch {
	case err.Status == exitNotFound:
		return notFound(name)
	case errors.Is(err, syscall.EACCES) && strings.Contains(name, "/"):
		return "cannot start " + quoted(name) + ": permission denied; make it executable with chmod +x, or run it with its interpreter"
	case errors.Is(err, syscall.EISDIR):
		return "cannot start " + quoted(name) + ": it is a directory"
	case errors.Is(err, syscall.ENOEXEC):
		return "cannot start " + quoted(name) + ": it is no program and its first line names no interpreter; run it with one, as in sh " + name
	case errors.Is(err, syscall.E2BIG):
		return "cannot start " + quoted(name) + ": the arguments and the environment are too long; pass them in a file"
	}
	return "cannot start " + quoted(name) + ": " + err.Error()
}

// notFound guesses why there is no such command.
func notFound(name string) string {
	text := "command not found: " + quoted(name)
	switch {
	case name == "":
		return text + "; a variable in its place may be empty"
	case isBuiltin(name):
		return text + "; it is part of the shell: sh -c '" + name + " ...'"
	case strings.ContainsAny(name, " \t\n"):
		if strings.ContainsAny(name, "|&;<>$`*(){}\n") {
			return text + "; for a shell's command line: sh -c '...'"
		}
		return text + "; leave out the quotes"
	case isAssignment(name):
		return text + "; to set a variable: env " + name + " command"
	case strings.HasPrefix(name, "~"):
		return text + "; only a shell replaces ~, and not within quotes"
	case strings.Contains(name, "/"):
		return text + "; there is no such file, or the interpreter in its first line is missing"
	}
	return text + "; is it installed, and in PATH?" + misplaced(name)
}

// misplaced remarks on a name that is, or nearly is, one of our own commands:
// those are such only as the very first word.
func misplaced(name string) string {
	var own []string
	for _, c := range commands() {
		word, _, _ := strings.Cut(c[0], " ")
		own = append(own, word)
	}
	if slices.Contains(own, name) {
		return " to have retryx do it, the word comes first: retryx " + name
	}
	if near := nearest(name, own); near != "" {
		return fmt.Sprintf(" did you mean retryx %s?", near)
	}
	return ""
}

// isBuiltin knows what people try that only a shell can do.
func isBuiltin(name string) bool {
	switch name {
	case ".", ":", "[[", "alias", "cd", "declare", "eval", "exec", "exit", "export", "for", "if", "let", "pushd", "popd",
		"set", "shopt", "source", "ulimit", "umask", "unset", "until", "while", "{", "(", "!":
		return true
	}
	return false
}

// isAssignment reports whether name is NAME=VALUE.
func isAssignment(name string) bool {
	variable, _, ok := strings.Cut(name, "=")
	if !ok || variable == "" || isDigit(variable[0]) {
		return false
	}
	for i := range len(variable) {
		if c := variable[i]; !isLetter(c) && !isDigit(c) && c != '_' {
			return false
		}
	}
	return true
}

// quoted is a name in quotes. What would be escaped was made printable before.
func quoted(name string) string { return `"` + oneLine(printable(name)) + `"` }
