package cmd

// The outcome as JSON, schema retryx.outcome/v1 (docs/schema/outcome.v1.json).
//
//   - Every field is there on every path; what did not happen is null.
//   - Everything that a child or a user wrote is printable and redacted before
//     anything is cut.
//   - A line for stderr has at most stderrLimit bytes, so that parallel jobs do
//     not interleave. To fit, it is abridged in this order: attempts in the
//     middle, evidence, warnings, long arguments, and then whatever is left;
//     "abridged" says so.
//   - Files and the journal get everything that exec.Outcome holds: of more than
//     50 attempts the first 10 and the last 40.

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const (
	outcomeSchema = "retryx.outcome/v1"

	stderrLimit   = 4096 // bytes of a line on stderr, its end included: PIPE_BUF
	leastLimit    = 2048 // what line can always do
	evidenceLimit = 300  // bytes of one evidence
	messageLimit  = 600
	warningLimit  = 400
	nameLimit     = 256 // tools, rules, steps and the like

	timeFormat = "2006-01-02T15:04:05.000Z"
)

// facts are what an outcome tells that the engine does not know.
type facts struct {
	command    []string
	tool       string
	effect     classify.Effect
	idempotent bool
	retrySet   []classify.Class
	strict     bool // it is that of the flag --strict
	threshold  int  // failures in a row that open the breaker
	reconcile  bool // there is a command to ask
	corrects   bool // there is a command that corrects
	step       string
	runID      string
	key        string
	depth      int
	deadline   time.Time // zero: none
	budgets    []budget.Status
	breaker    *budget.BreakerStatus
	status     ending
	version    string
	message    string // "": made here
	redact     *redactor
}

// document is one outcome.
type document struct {
	Schema         string                  `json:"schema"`
	Outcome        string                  `json:"outcome"`
	Reason         string                  `json:"reason"`
	Class          *string                 `json:"class"`
	Rule           *string                 `json:"rule"`
	Message        string                  `json:"message"`
	ExitStatus     int                     `json:"exit_status"`
	ExitCode       *int                    `json:"exit_code"`
	Signal         *string                 `json:"signal"`
	TimedOut       bool                    `json:"timed_out"`
	Evidence       *string                 `json:"evidence"`
	Command        []string                `json:"command"`
	Tool           string                  `json:"tool"`
	Effect         string                  `json:"effect"`
	Idempotent     bool                    `json:"idempotent"`
	Step           *string                 `json:"step"`
	RunID          string                  `json:"run_id"`
	IdempotencyKey string                  `json:"idempotency_key"`
	Depth          int                     `json:"depth"`
	StartedAt      string                  `json:"started_at"`
	EndedAt        *string                 `json:"ended_at"` // null only in a hook's input
	ElapsedMS      int64                   `json:"elapsed_ms"`
	SleptMS        int64                   `json:"slept_ms"`
	Deadline       *string                 `json:"deadline"`
	AttemptCount   int                     `json:"attempt_count"`
	Retries        int                     `json:"retries"`
	TailTruncated  bool                    `json:"tail_truncated"`
	Abridged       bool                    `json:"abridged"`
	Attempts       []attemptDocument       `json:"attempts"`
	Budgets        []budgetDocument        `json:"budgets"`
	Breaker        *breakerDocument        `json:"breaker"`
	Corrections    []correctionDocument    `json:"corrections"`
	Reconciled     *reconciliationDocument `json:"reconciled"`
	Warnings       []string                `json:"warnings"`
	Version        string                  `json:"version"`
}

type attemptDocument struct {
	N            int     `json:"n"`
	StartedAt    string  `json:"started_at"`
	ElapsedMS    int64   `json:"elapsed_ms"`
	ExitCode     *int    `json:"exit_code"` // null: a signal ended it, or it never started
	Signal       *string `json:"signal"`
	TimedOut     bool    `json:"timed_out"`
	Class        *string `json:"class"` // null: it succeeded
	Rule         *string `json:"rule"`
	Evidence     *string `json:"evidence"`
	RetryAfterMS *int64  `json:"retry_after_ms"`
	DelayMS      *int64  `json:"delay_ms"` // null: no attempt followed
}

type budgetDocument struct {
	Name        string  `json:"name"`
	Store       string  `json:"store"`
	Granted     int     `json:"granted"`
	Denied      int     `json:"denied"`
	Refunded    int     `json:"refunded"`
	Tokens      float64 `json:"tokens"`
	Capacity    float64 `json:"capacity"`
	NextTokenMS *int64  `json:"next_token_ms"` // null: never
	Policy      *string `json:"policy"`
}

type breakerDocument struct {
	Budget   string `json:"budget"`
	State    string `json:"state"`
	Failures int    `json:"failures"`
	RetryMS  int64  `json:"retry_ms"`
}

type correctionDocument struct {
	After int      `json:"after"`
	Argv  []string `json:"argv"`
	Error *string  `json:"error"`
}

type reconciliationDocument struct {
	After    int    `json:"after"`
	Answer   string `json:"answer"`
	ExitCode *int   `json:"exit_code"` // null: it had to be ended
}

// newDocument tells o and f as JSON does. It changes neither.
func newDocument(o *exec.Outcome, f facts) *document {
	r := f.redact
	if f.message == "" {
		f.message = message(o, f)
	}
	d := &document{
		Schema: outcomeSchema, Outcome: string(o.Label), Reason: reasonWord(o.Reason),
		Message: r.line(f.message, messageLimit), ExitStatus: f.status.status,
		Command: r.argv(f.command), Tool: r.line(f.tool, nameLimit), Effect: effectWord(f.effect), Idempotent: f.idempotent,
		Step: filled(r.line(f.step, nameLimit)), RunID: printable(f.runID), IdempotencyKey: printable(f.key), Depth: f.depth,
		StartedAt: instant(o.Started), ElapsedMS: o.Elapsed.Milliseconds(), SleptMS: o.Slept.Milliseconds(),
		AttemptCount: o.AttemptCount, Retries: o.Retries(),
		Attempts: attemptsOf(o, r), Budgets: budgetsOf(f.budgets), Breaker: breakerOf(f.breaker),
		Corrections: correctionsOf(o, r), Reconciled: reconciliationOf(o.Reconciliation), Warnings: warningsOf(o, r),
		Version: f.version,
	}
	if !o.Ended.IsZero() {
		d.EndedAt = new(instant(o.Ended))
	}
	if !f.deadline.IsZero() {
		d.Deadline = new(instant(f.deadline))
	}
	if last := o.Last(); last != nil {
		a := &d.Attempts[len(d.Attempts)-1]
		a.DelayMS = nil // nothing followed, even if a wait had begun
		d.Class, d.Rule, d.Evidence = a.Class, a.Rule, a.Evidence
		d.ExitCode, d.Signal, d.TimedOut = a.ExitCode, a.Signal, a.TimedOut
		d.TailTruncated = last.Result.TailTruncated
	}
	return d
}

func attemptsOf(o *exec.Outcome, r *redactor) []attemptDocument {
	out := make([]attemptDocument, len(o.Attempts))
	for i := range o.Attempts {
		a := &o.Attempts[i]
		d := attemptDocument{
			N: a.N, StartedAt: instant(a.Started), ElapsedMS: a.Elapsed.Milliseconds(), TimedOut: a.TimedOut,
			ExitCode: exitCode(&a.Result), Signal: filled(signalName(a.Result.Signal)),
		}
		if v := &a.Verdict; !v.Succeeded {
			d.Class, d.Rule = filled(string(v.Class)), filled(r.line(v.Rule, nameLimit))
			d.Evidence = filled(r.line(v.Evidence, evidenceLimit))
		}
		if a.Verdict.RetryAfter > 0 {
			d.RetryAfterMS = new(ceilMS(a.Verdict.RetryAfter))
		}
		if a.Delay >= 0 {
			d.DelayMS = new(a.Delay.Milliseconds())
		}
		out[i] = d
	}
	return out
}

func exitCode(r *exec.Result) *int {
	if r.StartErr != nil || r.Signal != 0 || r.Code < 0 {
		return nil
	}
	return new(r.Code)
}

func budgetsOf(all []budget.Status) []budgetDocument {
	out := make([]budgetDocument, len(all))
	for i, s := range all {
		out[i] = budgetDocument{
			Name: printable(s.Name), Store: s.Store, Granted: s.Granted, Denied: s.Denied, Refunded: s.Refunded,
			Tokens: finite(s.Tokens), Capacity: finite(s.Cap), Policy: filled(s.Policy),
		}
		switch unread := !s.Known && s.Policy != ""; {
		case unread:
			out[i].Tokens = 0 // none that could be had
		case s.Next >= 0:
			out[i].NextTokenMS = new(ceilMS(s.Next))
		}
	}
	return out
}

func breakerOf(b *budget.BreakerStatus) *breakerDocument {
	if b == nil {
		return nil
	}
	return &breakerDocument{Budget: printable(b.Budget), State: b.State, Failures: b.Failures, RetryMS: ceilMS(max(0, b.Retry))}
}

func correctionsOf(o *exec.Outcome, r *redactor) []correctionDocument {
	out := make([]correctionDocument, len(o.Corrections))
	for i, c := range o.Corrections {
		out[i] = correctionDocument{After: c.After, Argv: r.argv(c.Argv), Error: filled(r.line(c.Err, warningLimit))}
	}
	return out
}

func reconciliationOf(r *exec.Reconciliation) *reconciliationDocument {
	if r == nil {
		return nil
	}
	d := &reconciliationDocument{After: r.After, Answer: "unclear"}
	switch r.Answer {
	case exec.Happened:
		d.Answer = "happened"
	case exec.DidNotTake:
		d.Answer = "did_not"
	case exec.NotAsked, exec.Unclear:
	}
	if r.Exit >= 0 {
		d.ExitCode = new(r.Exit)
	}
	return d
}

func warningsOf(o *exec.Outcome, r *redactor) []string {
	out := make([]string, len(o.Warnings))
	for i, w := range o.Warnings {
		out[i] = r.line(w, warningLimit)
	}
	return out
}

// reasonWord keeps the promise that a reason is a snake_case word, whatever a
// child came up with.
func reasonWord(r exec.Reason) string {
	if !wellFormedReason(string(r)) {
		return "unspecified"
	}
	return string(r)
}

func effectWord(e classify.Effect) string {
	if e == "" {
		return string(classify.EffectUnknown)
	}
	return string(e)
}

// signalName is "SIGKILL", "" for no signal, and "SIG42" for one without a name.
func signalName(s syscall.Signal) string {
	if s == 0 {
		return ""
	}
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}

func instant(t time.Time) string { return t.UTC().Format(timeFormat) }

func ceilMS(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// finite keeps JSON possible.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// filled is null for an empty string.
func filled(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// parseDocument reads a line that full or line wrote. Fields that it does not
// know are ignored, as a later version may have written them.
func parseDocument(line []byte) (*document, error) {
	var d document
	if err := json.Unmarshal(line, &d); err != nil {
		return nil, fmt.Errorf("read outcome: %w", err)
	}
	if d.Schema != outcomeSchema {
		return nil, fmt.Errorf("read outcome: schema is %q, not %q", d.Schema, outcomeSchema)
	}
	return &d, nil
}

// full is the line for files and the journal.
func (d *document) full() []byte {
	t := *d
	t.Abridged = d.Abridged || t.AttemptCount > len(t.Attempts)
	return t.encode()
}

// line is full in at most limit bytes, which is at least leastLimit.
func (d *document) line(limit int) []byte {
	text := d.full()
	if len(text) <= limit {
		return text
	}
	t := *d
	t.Abridged = true
	for _, a := range abridgements() {
		if text := a.fit(&t, limit); len(text) <= limit {
			return text
		}
	}
	return t.encode()
}

// abridgement makes one part of a document smaller. keep leaves k of it: a
// number of elements, or bytes of each. It may not write to what d's slices and
// pointers refer to, as the document itself still does.
type abridgement struct {
	least int
	most  func(d *document) int
	keep  func(d *document, k int)
}

// abridgements are in the order that the contract gives.
func abridgements() []abridgement {
	return []abridgement{
		{
			2,
			func(d *document) int { return len(d.Attempts) },
			func(d *document, k int) { d.Attempts = ends(d.Attempts, (k+1)/2, k/2) },
		},
		{0, func(*document) int { return evidenceLimit }, cutEvidence},
		{0, func(*document) int { return warningLimit }, cutWarnings},
		{16, longestArgument, func(d *document, k int) { d.Command = shortened(d.Command, k) }},
		{5, func(d *document) int { return len(d.Command) }, cutCommand},
		{1, func(d *document) int { return len(d.Corrections) }, func(d *document, k int) {
			d.Corrections = ends(d.Corrections, 0, k)
		}},
		{1, func(d *document) int { return len(d.Budgets) }, cutBudgets},
		{16, func(*document) int { return messageLimit }, cutNames},
		{1, func(d *document) int { return len(d.Attempts) }, func(d *document, k int) { d.Attempts = ends(d.Attempts, 0, k) }},
		{1, func(d *document) int { return len(d.Command) }, cutCommand},
	}
}

// fit keeps as much as limit allows. When not even the least fits, d stays with
// the least and the text is too long.
func (a abridgement) fit(d *document, limit int) []byte {
	try := func(k int) []byte {
		t := *d
		a.keep(&t, k)
		return t.encode()
	}
	most := a.most(d)
	if most <= a.least {
		return d.encode()
	}
	text := try(a.least)
	if len(text) > limit {
		a.keep(d, a.least)
		return text
	}
	low, high := a.least, most // low fits
	for high-low > 1 {
		middle := (low + high) / 2
		if t := try(middle); len(t) <= limit {
			low, text = middle, t
		} else {
			high = middle
		}
	}
	return text
}

// ends returns the first and the last elements of a list; the list itself when
// that is all of it.
func ends[T any](list []T, head, tail int) []T {
	if len(list) <= head+tail {
		return list
	}
	return slices.Concat(list[:head], list[len(list)-tail:])
}

func cutEvidence(d *document, k int) {
	d.Evidence = shorter(d.Evidence, k)
	d.Attempts = slices.Clone(d.Attempts)
	for i := range d.Attempts {
		d.Attempts[i].Evidence = shorter(d.Attempts[i].Evidence, k)
	}
}

// cutWarnings keeps k bytes of each; where that is next to nothing, none.
func cutWarnings(d *document, k int) {
	const telling = 16
	if k < telling {
		d.Warnings = d.Warnings[:0:0]
		return
	}
	d.Warnings = shortened(d.Warnings, k)
}

func longestArgument(d *document) int {
	n := 0
	for _, a := range d.Command {
		n = max(n, len(a))
	}
	return n
}

// cutCommand keeps k arguments, one of which stands for those in the middle.
func cutCommand(d *document, k int) {
	if len(d.Command) <= k {
		return
	}
	head := max(1, k/2)
	d.Command = slices.Concat(d.Command[:head], []string{ellipsis}, d.Command[len(d.Command)-max(0, k-head-1):])
}

// cutBudgets keeps those that refused, then the first ones.
func cutBudgets(d *document, k int) {
	sorted := slices.Clone(d.Budgets)
	slices.SortStableFunc(sorted, func(a, b budgetDocument) int {
		switch refusedA, refusedB := a.Denied > 0, b.Denied > 0; {
		case refusedA == refusedB:
			return 0
		case refusedA:
			return -1
		default:
			return 1
		}
	})
	d.Budgets = sorted[:min(k, len(sorted))]
}

// cutNames shortens everything that somebody chose the name of.
func cutNames(d *document, k int) {
	for _, s := range []*string{&d.Message, &d.Tool, &d.RunID, &d.IdempotencyKey, &d.Version, &d.Reason} {
		*s = shorten(*s, k)
	}
	d.Reason = strings.TrimRight(d.Reason, ".")
	d.Rule, d.Step, d.Signal = shorter(d.Rule, k), shorter(d.Step, k), shorter(d.Signal, k)
	d.Attempts = slices.Clone(d.Attempts)
	for i := range d.Attempts {
		d.Attempts[i].Rule = shorter(d.Attempts[i].Rule, k)
	}
	d.Budgets = slices.Clone(d.Budgets)
	for i := range d.Budgets {
		b := &d.Budgets[i]
		b.Name, b.Store, b.Policy = shorten(b.Name, k), shorten(b.Store, k), shorter(b.Policy, k)
	}
	if d.Breaker != nil {
		b := *d.Breaker
		b.Budget, b.State = shorten(b.Budget, k), shorten(b.State, k)
		d.Breaker = &b
	}
	d.Corrections = slices.Clone(d.Corrections)
	for i := range d.Corrections {
		c := &d.Corrections[i]
		c.Error, c.Argv = shorter(c.Error, k), shortened(c.Argv[:min(len(c.Argv), k)], k)
	}
}

const ellipsis = "..."

// shorten cuts s to k bytes and shows that it did.
func shorten(s string, k int) string {
	if len(s) <= k {
		return s
	}
	if k <= len(ellipsis) {
		return cut(s, k)
	}
	return cut(s, k-len(ellipsis)) + ellipsis
}

func shorter(s *string, k int) *string {
	if s == nil {
		return nil
	}
	return filled(shorten(*s, k))
}

func shortened(list []string, k int) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = shorten(s, k)
	}
	return out
}
