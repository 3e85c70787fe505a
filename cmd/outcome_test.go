package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

func begun() time.Time {
	return time.Date(2026, 1, 2, 4, 4, 5, 678_999_999, time.FixedZone("", 3600))
}

func failedAttempt(n int, delay time.Duration) exec.Attempt {
	return exec.Attempt{
		N: n, Started: begun(), Elapsed: 7 * time.Millisecond, Result: exec.Result{Code: 7}, Delay: delay,
		Verdict: exec.Verdict{Verdict: classify.Verdict{
			Class: classify.Transient, Rule: "curl/connect-refused", Evidence: "curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused",
		}},
	}
}

// denied is the contract's example.
func denied() *exec.Outcome {
	return &exec.Outcome{
		Label: exec.RetryableFailure, Reason: exec.BudgetDenied, Row: 14,
		Started: begun(), Ended: begun().Add(3021 * time.Millisecond), Elapsed: 3021 * time.Millisecond, Slept: 3 * time.Second,
		AttemptCount: 3, Attempts: []exec.Attempt{failedAttempt(1, time.Second), failedAttempt(2, 2*time.Second), failedAttempt(3, -1)},
		Refusal: budget.Decision{Refusal: budget.Denied, Budget: "curl", Tokens: 0.3, Cap: 20, Next: 7 * time.Second},
	}
}

func deniedFacts() facts {
	return facts{
		command: []string{"curl", "-fsS", "http://127.0.0.1:9/"}, tool: "curl", effect: classify.EffectRead,
		runID: "01JRUN", key: "01JKEY", status: ending{status: 7}, version: "1.0.0",
		budgets: []budget.Status{{Name: "curl", Store: "file", Granted: 2, Denied: 1, Tokens: 0.3, Cap: 20, Next: 7 * time.Second, Known: true}},
	}
}

func TestDocumentIsTheContractsExample(t *testing.T) {
	attempt := func(n int, delay string) string {
		return fmt.Sprintf(`{"n":%d,"started_at":"2026-01-02T03:04:05.678Z","elapsed_ms":7,"exit_code":7,"signal":null,"timed_out":false,`+
			`"class":"transient","rule":"curl/connect-refused","evidence":"curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused",`+
			`"retry_after_ms":null,"delay_ms":%s}`, n, delay)
	}
	want := `{"schema":"retryx.outcome/v1","outcome":"retryable_failure","reason":"budget_denied","class":"transient","rule":"curl/connect-refused",` +
		`"message":"retry refused by budget \"curl\": 0.3 of 20 tokens, next whole token in 7s",` +
		`"exit_status":7,"exit_code":7,"signal":null,"timed_out":false,"evidence":"curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused",` +
		`"command":["curl","-fsS","http://127.0.0.1:9/"],"tool":"curl","effect":"read","idempotent":false,"step":null,"run_id":"01JRUN","idempotency_key":"01JKEY","depth":0,` +
		`"started_at":"2026-01-02T03:04:05.678Z","ended_at":"2026-01-02T03:04:08.699Z","elapsed_ms":3021,"slept_ms":3000,"deadline":null,` +
		`"attempt_count":3,"retries":2,"tail_truncated":false,"abridged":false,` +
		`"attempts":[` + attempt(1, "1000") + `,` + attempt(2, "2000") + `,` + attempt(3, "null") + `],` +
		`"budgets":[{"name":"curl","store":"file","granted":2,"denied":1,"refunded":0,"tokens":0.3,"capacity":20,"next_token_ms":7000,"policy":null}],` +
		`"breaker":null,"corrections":[],"reconciled":null,"warnings":[],"version":"1.0.0"}` + "\n"
	d := newDocument(denied(), deniedFacts())
	for name, got := range map[string][]byte{"full": d.full(), "line": d.line(stderrLimit)} {
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s() differs (-want +got):\n%s", name, diff)
		}
		validateOutcome(t, got)
	}
}

func TestDocumentOfEveryEnding(t *testing.T) {
	started := func(a exec.Attempt) func(*exec.Outcome) {
		return func(o *exec.Outcome) { o.AttemptCount, o.Attempts = 1, []exec.Attempt{a} }
	}
	killed := failedAttempt(1, -1)
	killed.Result = exec.Result{Code: -1, Signal: syscall.SIGKILL, TailTruncated: true}
	killed.TimedOut = true
	waiting := failedAttempt(1, 5*time.Second) // its wait was cut short
	waiting.Verdict.RetryAfter = 1500 * time.Microsecond
	unstarted := failedAttempt(1, -1)
	unstarted.Result = exec.Result{Code: -1, StartErr: &exec.StartError{Err: syscall.ENOENT, Status: 127}}
	unstarted.Verdict = exec.Verdict{}
	good := failedAttempt(1, -1)
	good.Result.Code, good.Verdict.Succeeded = 0, true

	for _, tt := range []struct {
		name string
		edit func(*exec.Outcome)
		want string // a part of the JSON
	}{
		{"nothing ran", func(o *exec.Outcome) { o.AttemptCount, o.Attempts = 0, nil }, `"exit_code":null,"signal":null,"timed_out":false,"evidence":null`},
		{"nothing ran: no class", func(o *exec.Outcome) { o.AttemptCount, o.Attempts = 0, nil }, `"class":null,"rule":null`},
		{"killed", started(killed), `"exit_code":null,"signal":"SIGKILL","timed_out":true`},
		{"killed: tail", started(killed), `"tail_truncated":true`},
		{"not started", started(unstarted), `"exit_code":null,"signal":null`},
		{"succeeded", started(good), `"class":null,"rule":null,"message"`},
		{"cancelled while waiting", started(waiting), `"retry_after_ms":2,"delay_ms":null`},
		{"reconciled", func(o *exec.Outcome) { o.Reconciliation = &exec.Reconciliation{After: 3, Answer: exec.Happened} }, `"reconciled":{"after":3,"answer":"happened","exit_code":0}`},
		{"reconciled: unclear", func(o *exec.Outcome) {
			o.Reconciliation = &exec.Reconciliation{After: 3, Answer: exec.Unclear, Exit: -1}
		}, `"reconciled":{"after":3,"answer":"unclear","exit_code":null}`},
		{"not reconciled", func(o *exec.Outcome) {
			o.Reconciliation = &exec.Reconciliation{After: 1, Answer: exec.DidNotTake, Exit: 1}
		}, `"reconciled":{"after":1,"answer":"did_not","exit_code":1}`},
		{"corrected", func(o *exec.Outcome) {
			o.Corrections = []exec.Correction{{After: 1, Argv: []string{"x", "--token", "y"}}, {After: 2, Err: "it\nfailed"}}
		}, `"corrections":[{"after":1,"argv":["x","--token","***"],"error":null},{"after":2,"argv":[],"error":"it failed"}]`},
		{"warned", func(o *exec.Outcome) { o.Warnings = []string{"password=x"} }, `"warnings":["password=***"]`},
		{"a reason that is none", func(o *exec.Outcome) { o.Reason = "Not a word" }, `"reason":"unspecified"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := denied()
			tt.edit(o)
			got := newDocument(o, deniedFacts()).full()
			validateOutcome(t, got)
			if !strings.Contains(string(got), tt.want) {
				t.Errorf("document = %s, want it to have %s", got, tt.want)
			}
		})
	}
}

func TestDocumentOfFacts(t *testing.T) {
	f := deniedFacts()
	f.step, f.deadline, f.effect, f.message = "build", begun(), "", "said\nso"
	f.breaker = &budget.BreakerStatus{Budget: "curl", State: "open", Failures: 5, Retry: 1500 * time.Microsecond}
	f.budgets = []budget.Status{{Name: "a", Store: "memory", Next: -1, Policy: "local", Tokens: math.NaN(), Cap: math.Inf(1)}, {Name: "b", Store: "file", Next: 1}}
	got := newDocument(denied(), f).full()
	validateOutcome(t, got)
	for _, want := range []string{
		`"step":"build"`, `"deadline":"2026-01-02T03:04:05.678Z"`, `"effect":"unknown"`, `"message":"said so"`,
		`"breaker":{"budget":"curl","state":"open","failures":5,"retry_ms":2}`,
		`{"name":"a","store":"memory","granted":0,"denied":0,"refunded":0,"tokens":0,"capacity":0,"next_token_ms":null,"policy":"local"}`,
		`"next_token_ms":1,"policy":null`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("document = %s, want it to have %s", got, want)
		}
	}
}

// Secrets are hidden everywhere, and before anything is cut.
func TestDocumentHidesSecrets(t *testing.T) {
	const secret = "s3cr3t-value"
	f := deniedFacts()
	f.redact = newRedactor([]string{"X_TOKEN=" + secret}, nil, nil)
	f.command, f.step, f.tool, f.message = []string{"x", secret}, secret, secret, secret
	o := denied()
	o.Warnings, o.Corrections = []string{secret}, []exec.Correction{{After: 1, Argv: []string{secret}, Err: secret}}
	for i := range o.Attempts {
		o.Attempts[i].Verdict.Evidence = strings.Repeat("e", evidenceLimit-5) + secret // would be cut in its middle
		o.Attempts[i].Verdict.Rule = secret
	}
	if got := newDocument(o, f).full(); bytes.Contains(got, []byte(secret[:5])) {
		t.Errorf("document = %s, want no %s", got, secret)
	}
}

// Attempts that the engine let go of are said to be left out.
func TestFullIsAbridgedByTheEngine(t *testing.T) {
	o := denied()
	o.AttemptCount = 1000
	got := newDocument(o, deniedFacts()).full()
	validateOutcome(t, got)
	d, err := parseDocument(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Attempts) != len(o.Attempts) || !d.Abridged || d.AttemptCount != 1000 {
		t.Errorf("abridged %t, attempt_count %d, %d attempts, want all %d that are left", d.Abridged, d.AttemptCount, len(d.Attempts), len(o.Attempts))
	}
}

// The order in which a line is abridged is the contract's.
func TestLineIsAbridgedInOrder(t *testing.T) {
	o, f := denied(), deniedFacts()
	o.Attempts = nil
	for n := range 50 {
		o.Attempts = append(o.Attempts, failedAttempt(n+1, time.Second))
	}
	o.AttemptCount = 50
	full := func() *document { return newDocument(o, f) }
	read := func(limit int) *document {
		t.Helper()
		line := full().line(limit)
		validateOutcome(t, line)
		if len(line) > limit {
			t.Fatalf("line(%d) has %d bytes", limit, len(line))
		}
		d, err := parseDocument(line)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}

	d := read(stderrLimit)
	if n := len(d.Attempts); n < 5 || n >= 50 || d.Attempts[0].N != 1 || d.Attempts[n-1].N != 50 || !d.Abridged {
		t.Errorf("attempts = %d of 50, want some, with the first and the last", n)
	}
	if diff := cmp.Diff(full().Evidence, d.Evidence); diff != "" {
		t.Errorf("evidence is cut before attempts are:\n%s", diff)
	}
	if used := len(full().line(stderrLimit)); used < stderrLimit-2*evidenceLimit {
		t.Errorf("line uses %d bytes of %d, want it to keep what it can", used, stderrLimit)
	}

	for i := range o.Attempts {
		o.Attempts[i].Verdict.Evidence = strings.Repeat("e", 300)
	}
	o.Warnings = []string{strings.Repeat("w", 350), strings.Repeat("v", 350)}
	f.command = []string{"x", strings.Repeat("a", 450)}
	d = read(2600)
	if len(d.Attempts) != 2 || d.Evidence == nil || len(*d.Evidence) == 300 || len(d.Warnings) != 2 || len(d.Warnings[0]) != 350 {
		t.Errorf("%d attempts, evidence %v, warnings %q; want evidence cut, warnings whole", len(d.Attempts), d.Evidence, d.Warnings)
	}
	d = read(2200)
	if d.Evidence != nil || len(d.Warnings) == 2 && len(d.Warnings[0]) == 350 || len(d.Command[1]) != 450 {
		t.Errorf("evidence %v, warnings %q, argument of %d bytes; want warnings cut, arguments whole", d.Evidence, d.Warnings, len(d.Command[1]))
	}
	f.command[1] = strings.Repeat("a", 100_000)
	d = read(2200)
	if len(d.Warnings) != 0 || len(d.Command) != 2 || !strings.HasSuffix(d.Command[1], "a...") {
		t.Errorf("%d warnings, command %q; want no warnings and the argument cut", len(d.Warnings), d.Command)
	}
}

// Attempts that the engine did not keep are missing, too.
func TestDocumentSaysThatAttemptsAreMissing(t *testing.T) {
	o := denied()
	o.AttemptCount = 60
	if d := newDocument(o, deniedFacts()); !bytes.Contains(d.full(), []byte(`"abridged":true`)) {
		t.Errorf("full() = %s, want it abridged", d.full())
	}
}

// Many short arguments go before the budgets do.
func TestLineCutsTheCommandBeforeBudgets(t *testing.T) {
	f := deniedFacts()
	f.command = strings.Fields("x " + strings.Repeat("argument ", 5000) + "last")
	f.budgets = append(f.budgets, f.budgets[0])
	d, err := parseDocument(newDocument(denied(), f).line(stderrLimit))
	if err != nil {
		t.Fatal(err)
	}
	n := len(d.Command)
	if len(d.Budgets) != 2 || n < 10 || d.Command[0] != "x" || d.Command[n/2] != ellipsis && d.Command[(n-1)/2] != ellipsis || d.Command[n-1] != "last" {
		t.Errorf("%d budgets, command %q; want both budgets, and the middle of the command left out", len(d.Budgets), d.Command)
	}
}

// Whatever there is to tell, the line fits, and the schema accepts it.
func TestLineAlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, f := hostileOutcome(t)
		d := newDocument(o, f)
		before := d.full()
		limit := rapid.IntRange(leastLimit, 2*stderrLimit).Draw(t, "limit")
		line := d.line(limit)
		if len(line) > limit {
			t.Fatalf("line(%d) has %d bytes: %s", limit, len(line), line)
		}
		validateOutcome(t, line)
		if after := d.full(); !bytes.Equal(before, after) {
			t.Errorf("line changed the document")
		}
		validateOutcome(t, before)
		back, err := parseDocument(before)
		if err != nil {
			t.Fatal(err)
		}
		if again := back.encode(); !bytes.Equal(again, before) {
			t.Errorf("parse and encode of %s gives %s", before, again)
		}
	})
}

func hostileText(t *rapid.T, name string) string {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 50), func(b []byte) string { return string(b) }),
		rapid.Custom(func(t *rapid.T) string {
			unit := rapid.SampledFrom([]string{"a", `"`, "\\", "\u00e9", "\u2028", "\xff", "<", "\x01", "a b"}).Draw(t, "unit")
			size := rapid.SampledFrom([]int{100, 300, 5000, 5000, 100_000}).Draw(t, "size")
			return strings.Repeat(unit, size/len(unit))
		}),
		rapid.Map(rapid.IntRange(0, 500), func(n int) string { return strings.Repeat(`"x`, n) }),
	).Draw(t, name)
}

func hostileTexts(t *rapid.T, name string, most int) []string {
	n := rapid.SampledFrom([]int{0, 1, 3, most}).Draw(t, name+" count")
	text := hostileText(t, name)
	if n == most && len(text) > 1000 {
		text = text[:1000]
	}
	out := make([]string, n)
	for i := range out {
		out[i] = text
	}
	return out
}

func hostileOutcome(t *rapid.T) (*exec.Outcome, facts) {
	d := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, name))
	}
	count := func(name string) int { return rapid.IntRange(0, math.MaxInt).Draw(t, name) }
	o := &exec.Outcome{
		Label:   rapid.SampledFrom([]exec.Label{exec.Success, exec.RetryableFailure, exec.HardFailure, exec.Cancelled, exec.Abandoned}).Draw(t, "label"),
		Reason:  exec.Reason(rapid.SampledFrom([]string{"succeeded", "budget_denied", "transient", "internal_error", "circuit_open", "x", "", strings.Repeat("r", 64), "ä b"}).Draw(t, "reason")),
		Row:     rapid.IntRange(0, 15).Draw(t, "row"),
		Started: begun(), Ended: begun(), Elapsed: d("elapsed"), Slept: d("slept"),
		Fault: errors.New("broken"), Warnings: hostileTexts(t, "warning", 100),
	}
	for i, argv := range hostileTexts(t, "correction", 30) {
		o.Corrections = append(o.Corrections, exec.Correction{After: i + 1, Argv: []string{argv, argv}, Err: argv})
	}
	if n := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 10, 30, 50, 50, 50, 10_000}).Draw(t, "attempts"); n > 0 {
		a := failedAttempt(1, d("delay"))
		a.Verdict.Evidence, a.Verdict.Rule = hostileText(t, "evidence"), hostileText(t, "rule")
		if n == 10_000 {
			a.Verdict.Evidence, a.Verdict.Rule = cut(a.Verdict.Evidence, 400), cut(a.Verdict.Rule, 100)
		}
		a.Elapsed, a.Verdict.RetryAfter = d("attempt"), d("retry after")
		if sig := rapid.IntRange(0, 64).Draw(t, "signal"); sig > 0 {
			a.Result = exec.Result{Code: -1, Signal: syscall.Signal(sig)}
		}
		for i := range n {
			a.N = i + 1
			o.Attempts = append(o.Attempts, a)
		}
		o.AttemptCount = n + rapid.IntRange(0, 10).Draw(t, "dropped")
	}
	f := facts{
		command: hostileTexts(t, "argument", 500), tool: hostileText(t, "tool"), effect: classify.EffectWrite,
		step: hostileText(t, "step"), runID: hostileText(t, "run"), key: hostileText(t, "key"), depth: count("depth"), deadline: begun(),
		status: ending{status: rapid.IntRange(1, 255).Draw(t, "status")}, version: "1.0.0", message: hostileText(t, "message"),
		breaker: &budget.BreakerStatus{Budget: strings.Repeat("b", 64), State: "half_open", Failures: count("failures"), Retry: d("probe")},
	}
	for range rapid.SampledFrom([]int{0, 1, 3, 200}).Draw(t, "budgets") {
		f.budgets = append(f.budgets, budget.Status{
			Name: strings.Repeat("n", 64), Store: "memory", Granted: count("granted"), Denied: count("denied"), Refunded: count("refunded"),
			Tokens: rapid.Float64Min(0).Draw(t, "tokens"), Cap: 1e6, Next: d("next"), Policy: "fallback",
		})
	}
	return o, f
}

func TestParseDocument(t *testing.T) {
	line := newDocument(denied(), deniedFacts()).full()
	newer := bytes.Replace(line, []byte(`"version"`), []byte(`"later":{"a":[1]},"version"`), 1)
	d, err := parseDocument(newer)
	if err != nil || !bytes.Equal(d.full(), line) {
		t.Errorf("parseDocument(with an unknown field) = %v, %v, want what it was without", d, err)
	}
	for _, bad := range []string{"", "{", "[]", `{"schema":"retryx.outcome/v2"}`, `{"schema":"retryx.failure/v1"}`, `{"schema":1}`} {
		if d, err := parseDocument([]byte(bad)); err == nil {
			t.Errorf("parseDocument(%q) = %v, want an error", bad, d)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("evidence", "arg", "warning", "password=x")
	f.Add("\xff\x00\u202e", strings.Repeat(`"`, 5000), "\x1b[31m", "\\")
	f.Fuzz(func(t *testing.T, evidence, arg, warning, message string) {
		o, facts := denied(), deniedFacts()
		o.Warnings = []string{warning}
		facts.command, facts.message = []string{"x", arg, "--token", arg}, message
		for i := range o.Attempts {
			o.Attempts[i].Verdict.Evidence = evidence
		}
		d := newDocument(o, facts)
		validateOutcome(t, d.full())
		line := d.line(leastLimit)
		validateOutcome(t, line)
		if len(line) > leastLimit {
			t.Errorf("line(%d) has %d bytes", leastLimit, len(line))
		}
		if !json.Valid(line) {
			t.Errorf("line = %q, want JSON", line)
		}
	})
}

func BenchmarkDocumentSuccessPath(b *testing.B) {
	o, f := denied(), deniedFacts()
	o.Label, o.Reason, o.AttemptCount = exec.Success, exec.Succeeded, 1
	o.Attempts = o.Attempts[:1]
	o.Attempts[0].Verdict = exec.Verdict{Succeeded: true}
	for b.Loop() {
		newDocument(o, f).line(stderrLimit)
	}
}
