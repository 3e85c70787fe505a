package exec_test

import (
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

// room is how much time a ceiling leaves, in words. What would be waited is ten
// seconds, the shortest attempt one.
type room int

const (
	unlimited room = iota
	roomy          // an hour
	near           // five seconds: not enough for the wait
	tiny           // half a second: not enough for an attempt
	over           // none
)

func (r room) left() time.Duration {
	return []time.Duration{exec.NoCeiling, time.Hour, 5 * time.Second, time.Second / 2, 0}[r]
}

// stated is a stated wait, in words.
type stated int

const (
	unstated stated = iota
	short           // one second
	beyond          // half a minute: more than a near ceiling leaves
	tooLong         // more than is allowed
)

func (s stated) wait() time.Duration {
	return []time.Duration{0, time.Second, 30 * time.Second, 6 * time.Minute}[s]
}

// ending is how the child ended.
type ending int

const (
	exitOne ending = iota
	exit130
	diedOfINT
	diedOfPIPE
	startShort // could not be started, for want of something
	startFatal // could not be started, for good
)

// judgement is a class and the answers that go with it.
type judgement struct {
	class     classify.Class
	reconcile bool
	answer    exec.Answer
	correct   bool
	used      bool // no correction is left
}

// situation is one row of the domain, in the words of the table.
type situation struct {
	point             exec.Point
	cancel            exec.CancelCause
	gone, succeeded   bool
	stop              bool
	ending            ending
	judgement         judgement
	wide              bool // every class is in the retry set
	last              bool // attempts = max
	stdin             bool
	elapsed, deadline room
	stated            stated
	grant             int // index of grants
}

// The grants: not asked, granted, the refusals, and an answer that is neither.
const (
	notAsked = iota
	grantGiven
	grantDenied
	grantUnavailable
	grantBreaker
	grantNeither
	grantKinds
)

func (s situation) grantDecision() *budget.Decision {
	switch s.grant {
	case grantGiven:
		return &budget.Decision{Granted: true}
	case grantDenied:
		return &budget.Decision{Refusal: budget.Denied}
	case grantUnavailable:
		return &budget.Decision{Refusal: budget.Unavailable}
	case grantBreaker:
		return &budget.Decision{Refusal: budget.BreakerOpen}
	case grantNeither:
		return &budget.Decision{}
	}
	return nil
}

var (
	narrowSet = []classify.Class{classify.Transient, classify.Unknown}
	wideSet   = []classify.Class{
		classify.Transient, classify.Unknown, classify.Permanent, classify.Config,
		classify.Unexpected, classify.Correctable, classify.Ambiguous,
	}
	judgements = []judgement{
		{class: classify.Transient},
		{class: classify.Unknown},
		{class: classify.Permanent, reconcile: true, correct: true},
		{class: classify.Config},
		{class: classify.Unexpected},
		{class: classify.Correctable},
		{class: classify.Correctable, correct: true},
		{class: classify.Correctable, correct: true, used: true},
		{class: classify.Ambiguous},
		{class: classify.Ambiguous, reconcile: true},
		{class: classify.Ambiguous, reconcile: true, answer: exec.Happened},
		{class: classify.Ambiguous, reconcile: true, answer: exec.DidNotTake},
		{class: classify.Ambiguous, reconcile: true, answer: exec.Unclear},
	}
	ceilings = [][2]room{
		{unlimited, unlimited},
		{roomy, roomy},
		{near, unlimited},
		{roomy, near},
		{near, tiny},
		{tiny, unlimited},
		{over, unlimited},
		{unlimited, over},
		{over, over},
	}
	aStop = &exec.Stop{Label: exec.HardFailure, Reason: exec.StoppedByChild}
)

func (s situation) policy() exec.Policy {
	p := exec.Policy{
		MaxAttempts: 4, MaxRetryAfter: 5 * time.Minute, MinAttempt: time.Second, MaxCorrections: 2,
		Reconcile: s.judgement.reconcile, Correct: s.judgement.correct, RetryOn: narrowSet,
	}
	if s.wide {
		p.RetryOn = wideSet
	}
	return p
}

func (s situation) snapshot() exec.Snapshot {
	snap := exec.Snapshot{
		Point: s.point, Cancelled: s.cancel, CallerGone: s.gone, Attempts: 3, StdinConsumed: s.stdin,
		LeftElapsed: s.elapsed.left(), LeftDeadline: s.deadline.left(), Wait: 10 * time.Second,
		Answer: s.judgement.answer, Grant: s.grantDecision(), Code: 1,
	}
	snap.Verdict.Class, snap.Verdict.RetryAfter, snap.Verdict.Succeeded = s.judgement.class, s.stated.wait(), s.succeeded
	if s.stop {
		snap.Verdict.Stop = aStop
	}
	if s.last {
		snap.Attempts = 4
	}
	if s.judgement.used { // and then each of them was an attempt as well
		snap.Corrections = 2
		snap.Attempts += 2
	}
	switch s.ending {
	case exit130:
		snap.Code = 130
	case diedOfINT:
		snap.Code, snap.Signal = -1, syscall.SIGINT
	case diedOfPIPE:
		snap.Code, snap.Signal = -1, syscall.SIGPIPE
	case startShort:
		snap.Code, snap.StartErr = -1, &exec.StartError{Err: syscall.EAGAIN, Status: 126, Transient: true}
	case startFatal:
		snap.Code, snap.StartErr = -1, &exec.StartError{Err: syscall.ENOENT, Status: 127}
	case exitOne:
	}
	return snap
}

func (s situation) after() bool { return s.point == exec.AfterAttempt }

func (s situation) late() bool { return s.elapsed == over || s.deadline == over }

// left is the smaller room of the two.
func (s situation) left() room { return max(s.elapsed, s.deadline) }

func (s situation) inSet() bool { return s.wide || slices.Contains(narrowSet, s.judgement.class) }

func (s situation) correcting() bool {
	j := s.judgement
	return j.class == classify.Correctable && j.correct && !j.used && !s.stop
}

// asksToReconcile is row 7's third ending.
func (s situation) asksToReconcile() bool {
	j := s.judgement
	return !s.stop && j.class == classify.Ambiguous && j.reconcile && j.answer == exec.NotAsked && !s.late()
}

// judged reports whether row 7 applies.
func (s situation) judged() bool {
	j := s.judgement
	switch {
	case s.stop:
		return true
	case s.correcting():
		return false
	case j.class == classify.Ambiguous && j.reconcile && j.answer == exec.DidNotTake:
		return false
	case j.answer == exec.Happened, j.answer == exec.Unclear:
		return true
	}
	return s.asksToReconcile() || !s.inSet()
}

// The table again: when each row applies, whatever the rows above it say, and
// what it answers.
var table = []struct {
	row     int
	applies func(situation) bool
	answer  func(situation) exec.Decision
}{
	{1, func(s situation) bool { return s.cancel != exec.NotCancelled }, func(s situation) exec.Decision {
		if s.cancel == exec.CancelledByToken {
			return stops(exec.Cancelled, exec.ByCancelToken)
		}
		return stops(exec.Cancelled, exec.BySignal)
	}},
	{2, func(s situation) bool { return s.after() && s.succeeded && s.gone }, always(exec.Abandoned, exec.OrphanedSuccess)},
	{3, func(s situation) bool { return s.after() && s.succeeded }, always(exec.Success, exec.Succeeded)},
	{4, func(s situation) bool {
		return s.point != exec.BeforeFirst && s.gone || s.after() && s.ending == diedOfPIPE
	}, func(s situation) exec.Decision {
		if s.gone {
			return stops(exec.Abandoned, exec.CallerGone)
		}
		return stops(exec.Abandoned, exec.OutputClosed)
	}},
	{5, func(s situation) bool { return s.after() && (s.ending == diedOfINT || s.ending == exit130) }, always(exec.Cancelled, exec.ChildInterrupted)},
	{6, func(s situation) bool { return s.after() && s.ending == startFatal }, always(exec.HardFailure, exec.StartFailed)},
	{7, func(s situation) bool { return s.after() && s.judged() }, func(s situation) exec.Decision {
		switch {
		case s.stop:
			return stops(aStop.Label, aStop.Reason)
		case s.asksToReconcile():
			return exec.Decision{Action: exec.Reconcile}
		case s.judgement.answer == exec.Happened:
			return stops(exec.Success, exec.Reconciled)
		}
		return stops(exec.HardFailure, exec.Reason(s.judgement.class))
	}},
	{8, func(s situation) bool { return s.after() && s.last && !s.correcting() }, always(exec.RetryableFailure, exec.AttemptsExhausted)},
	{9, func(s situation) bool { return s.after() && s.stdin }, always(exec.HardFailure, exec.StdinConsumed)},
	{10, situation.late, ceilingReached(over)},
	{11, func(s situation) bool {
		return s.after() && !s.correcting() && (s.stated == tooLong || s.stated == beyond && s.left() >= near || s.stated == short && s.left() >= tiny)
	}, always(exec.RetryableFailure, exec.RetryAfterTooLong)},
	{12, func(s situation) bool {
		return s.after() && (s.left() >= tiny || s.left() >= near && !s.correcting())
	}, func(s situation) exec.Decision {
		if s.correcting() {
			return ceilingReached(tiny)(s)
		}
		return ceilingReached(near)(s)
	}},
	{13, func(s situation) bool { return s.grant == grantBreaker }, always(exec.RetryableFailure, exec.CircuitOpen)},
	{14, func(s situation) bool { return s.after() && s.grant >= grantDenied }, func(s situation) exec.Decision {
		if s.grant == grantDenied {
			return stops(exec.RetryableFailure, exec.BudgetDenied)
		}
		return stops(exec.RetryableFailure, exec.BudgetUnavailable)
	}},
	{15, func(situation) bool { return true }, func(s situation) exec.Decision {
		switch {
		case !s.after():
			return exec.Decision{Action: exec.Start}
		case s.grant == notAsked:
			return exec.Decision{Action: exec.Ask}
		case s.correcting():
			return exec.Decision{Action: exec.Correct}
		}
		return exec.Decision{Action: exec.Retry}
	}},
}

func stops(l exec.Label, r exec.Reason) exec.Decision { return exec.Decision{Label: l, Reason: r} }

func always(l exec.Label, r exec.Reason) func(situation) exec.Decision {
	return func(situation) exec.Decision { return stops(l, r) }
}

// ceilingReached names the deadline where both ceilings leave at least as
// little room as from.
func ceilingReached(from room) func(situation) exec.Decision {
	return func(s situation) exec.Decision {
		if s.deadline >= from {
			return stops(exec.RetryableFailure, exec.DeadlineExceeded)
		}
		return stops(exec.RetryableFailure, exec.ElapsedExhausted)
	}
}

func (s situation) expected() exec.Decision {
	for _, row := range table {
		if row.applies(s) {
			d := row.answer(s)
			d.Row = row.row
			return d
		}
	}
	return exec.Decision{}
}

// everySituation walks the domain until visit says no.
func everySituation(visit func(situation) bool) {
	bools := []bool{false, true}
	for _, point := range []exec.Point{exec.BeforeFirst, exec.AfterAttempt, exec.BeforeRetry} {
		for _, cancel := range []exec.CancelCause{exec.NotCancelled, exec.CancelledBySignal, exec.CancelledByToken} {
			for flags := range 1 << 6 {
				for _, j := range judgements {
					for _, c := range ceilings {
						for end := range startFatal + 1 {
							s := situation{
								point: point, cancel: cancel, ending: end, judgement: j, elapsed: c[0], deadline: c[1],
								gone: bools[flags&1], succeeded: bools[flags>>1&1], stop: bools[flags>>2&1],
								wide: bools[flags>>3&1], last: bools[flags>>4&1], stdin: bools[flags>>5&1],
							}
							if !everyAnswer(s, visit) {
								return
							}
						}
					}
				}
			}
		}
	}
}

func everyAnswer(s situation, visit func(situation) bool) bool {
	for s.stated = unstated; s.stated <= tooLong; s.stated++ {
		for s.grant = range grantKinds {
			if !visit(s) {
				return false
			}
		}
		if s.cancel != exec.NotCancelled || !s.after() { // where a stated wait is not looked at, one is enough
			s.stated = tooLong
		}
	}
	return true
}

func TestDecideFollowsTheTable(t *testing.T) {
	rows, n, failures := map[int]int{}, 0, 0
	everySituation(func(s situation) bool {
		n++
		want, got := s.expected(), exec.Decide(s.policy(), s.snapshot())
		rows[got.Row]++
		if got != want {
			t.Errorf("Decide(%+v) = %+v, want %+v", s, got, want)
			failures++
		}
		return failures < 5
	})
	t.Logf("%d situations", n)
	for row := 1; failures == 0 && row <= 15; row++ {
		if rows[row] == 0 {
			t.Errorf("no situation reaches row %d", row)
		}
	}
}

// What holds whatever the table's order is.
func TestDecideInvariants(t *testing.T) {
	pairs := tablePairs()
	failures := 0
	everySituation(func(s situation) bool {
		p, snap := s.policy(), s.snapshot()
		d := exec.Decide(p, snap)
		if broken := s.broken(d, pairs); broken != "" {
			t.Errorf("Decide(%+v) = %+v: %s", s, d, broken)
			failures++
		}
		return failures < 5
	})
}

func tablePairs() map[string]bool {
	pairs := map[string]bool{}
	for line := range strings.SplitSeq(`cancelled: signal
		cancelled: cancel_token
		cancelled: child_interrupted
		abandoned: orphaned_success
		abandoned: caller_gone
		abandoned: output_closed
		success: succeeded
		success: reconciled
		hard_failure: start_failed
		hard_failure: permanent
		hard_failure: config
		hard_failure: correctable
		hard_failure: ambiguous
		hard_failure: unexpected
		hard_failure: transient
		hard_failure: unknown
		hard_failure: stopped_by_child
		hard_failure: stdin_consumed
		retryable_failure: attempts_exhausted
		retryable_failure: deadline_exceeded
		retryable_failure: elapsed_exhausted
		retryable_failure: retry_after_too_long
		retryable_failure: circuit_open
		retryable_failure: budget_denied
		retryable_failure: budget_unavailable`, "\n") {
		pairs[strings.TrimSpace(line)] = true
	}
	return pairs
}

// broken names the first invariant that d breaks.
func (s situation) broken(d exec.Decision, pairs map[string]bool) string {
	again := d.Action == exec.Retry || d.Action == exec.Correct
	goesOn := again || d.Action == exec.Ask || d.Action == exec.Start || d.Action == exec.Reconcile
	switch {
	case goesOn == (d.Label != "") || goesOn == (d.Reason != ""):
		return "a decision either stops with label and reason or goes on without"
	case !goesOn && !pairs[string(d.Label)+": "+string(d.Reason)]:
		return "the table has no such label and reason"
	case goesOn && s.cancel != exec.NotCancelled:
		return "goes on after a cancel"
	case goesOn && s.late():
		return "goes on past a ceiling"
	case goesOn && s.after() && s.succeeded:
		return "retries a success"
	case d.Label == exec.Success && s.after() && !s.succeeded && d.Reason != exec.Reconciled:
		return "a failure becomes a success"
	case goesOn && s.gone && s.point != exec.BeforeFirst:
		return "goes on for nobody"
	case again && s.grant != grantGiven:
		return "retries without a grant"
	case d.Action == exec.Ask && !s.wouldRetry():
		return "asks for a token although no retry would follow"
	case d.Action == exec.Start && s.after(), (again || d.Action == exec.Ask || d.Action == exec.Reconcile) && !s.after():
		return "does what belongs to another point"
	case again && !s.wide && s.judgement.class == classify.Permanent:
		return "retries a permanent failure"
	case s.point == exec.BeforeFirst && !slices.Contains([]int{1, 10, 13, 15}, d.Row):
		return "a row that needs an attempt decides before the first"
	case d.Row < 1 || d.Row > 15 || goesOn && d.Row != 15 && d.Action != exec.Reconcile:
		return "no such row"
	}
	return ""
}

func (s situation) wouldRetry() bool {
	s.grant = grantGiven
	a := exec.Decide(s.policy(), s.snapshot()).Action
	return a == exec.Retry || a == exec.Correct
}

// Decide gives the same answer again and leaves what it was given as it was.
func TestDecideIsPure(t *testing.T) {
	n := 0
	everySituation(func(s situation) bool {
		if n++; n%97 != 0 {
			return true
		}
		p, snap := s.policy(), s.snapshot()
		p.RetryOn = slices.Clone(p.RetryOn)
		first, second := exec.Decide(p, snap), exec.Decide(p, snap)
		if first != second {
			t.Errorf("Decide(%+v) = %+v, then %+v", s, first, second)
		}
		if !reflect.DeepEqual(p, s.policy()) || !reflect.DeepEqual(snap, s.snapshot()) {
			t.Errorf("Decide(%+v) changed its arguments", s)
		}
		return !t.Failed()
	})
}

// The edges that the words of a situation do not reach.
func TestDecideAtTheEdges(t *testing.T) {
	const s = time.Second
	failed := func(change func(*exec.Policy, *exec.Snapshot)) (exec.Policy, exec.Snapshot) {
		p := exec.Policy{MaxAttempts: 4, MaxRetryAfter: 5 * time.Minute, RetryOn: narrowSet}
		snap := exec.Snapshot{
			Point: exec.AfterAttempt, Attempts: 1, Code: 1, LeftElapsed: exec.NoCeiling, LeftDeadline: exec.NoCeiling, Wait: 10 * s,
		}
		snap.Verdict.Class = classify.Transient
		change(&p, &snap)
		return p, snap
	}
	ask := exec.Decision{Action: exec.Ask, Row: 15}
	row := func(n int, r exec.Reason) exec.Decision {
		return exec.Decision{Row: n, Label: exec.RetryableFailure, Reason: r}
	}
	for _, c := range []struct {
		name   string
		change func(*exec.Policy, *exec.Snapshot)
		want   exec.Decision
	}{
		{"a nanosecond left after the wait", func(_ *exec.Policy, n *exec.Snapshot) { n.LeftElapsed = 10*s + 1 }, ask},
		{"a wait that ends at the ceiling", func(_ *exec.Policy, n *exec.Snapshot) { n.LeftElapsed = 10 * s }, row(12, exec.ElapsedExhausted)},
		{"a shortest attempt that just fits", func(p *exec.Policy, n *exec.Snapshot) { p.MinAttempt, n.LeftDeadline = 5*s, 15*s }, ask},
		{"one that just does not", func(p *exec.Policy, n *exec.Snapshot) { p.MinAttempt, n.LeftDeadline = 5*s, 15*s-1 }, row(12, exec.DeadlineExceeded)},
		{"the ceiling that is passed gives the reason", func(p *exec.Policy, n *exec.Snapshot) {
			p.MinAttempt, n.LeftDeadline, n.LeftElapsed = 5*s, 15*s, 14*s
		}, row(12, exec.ElapsedExhausted)},
		{"of two, the deadline", func(_ *exec.Policy, n *exec.Snapshot) { n.LeftDeadline, n.LeftElapsed = 0, -s }, row(10, exec.DeadlineExceeded)},
		{"a nanosecond before the deadline", func(_ *exec.Policy, n *exec.Snapshot) { n.LeftDeadline, n.Wait = 1, 0 }, ask},
		{"a stated wait that is just allowed", func(_ *exec.Policy, n *exec.Snapshot) { n.Verdict.RetryAfter = 5 * time.Minute }, ask},
		{"one that is not", func(_ *exec.Policy, n *exec.Snapshot) { n.Verdict.RetryAfter = 5*time.Minute + 1 }, row(11, exec.RetryAfterTooLong)},
		{"one of all that is left is row 12", func(_ *exec.Policy, n *exec.Snapshot) { n.Verdict.RetryAfter, n.LeftElapsed = 10*s, 10*s }, row(12, exec.ElapsedExhausted)},
		{"the rule's own wait is not a stated one", func(_ *exec.Policy, n *exec.Snapshot) { n.Verdict.MinWait, n.Wait = time.Hour, time.Hour }, ask},
		{"a wait of centuries without a ceiling", func(p *exec.Policy, n *exec.Snapshot) { p.MinAttempt, n.Wait = s, longest }, ask},
		{"and with one", func(p *exec.Policy, n *exec.Snapshot) { n.Wait, n.LeftElapsed = longest, time.Hour }, row(12, exec.ElapsedExhausted)},
		{"corrections are not attempts", func(_ *exec.Policy, n *exec.Snapshot) { n.Attempts, n.Corrections = 5, 2 }, ask},
		{"attempts are", func(_ *exec.Policy, n *exec.Snapshot) { n.Attempts, n.Corrections = 6, 2 }, row(8, exec.AttemptsExhausted)},
		{"an attempt too many", func(_ *exec.Policy, n *exec.Snapshot) { n.Attempts = 9 }, row(8, exec.AttemptsExhausted)},
		{"zero attempts allowed is never a loop", func(p *exec.Policy, _ *exec.Snapshot) { p.MaxAttempts = 0 }, row(8, exec.AttemptsExhausted)},
		{"an unlimited deadline is not a passed one", func(_ *exec.Policy, n *exec.Snapshot) { n.LeftElapsed = time.Hour }, ask},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := exec.Decide(failed(c.change)); got != c.want {
				t.Errorf("Decide() = %+v, want %+v", got, c.want)
			}
		})
	}
}
