package cmd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planOf is the JSON of a plan.
func (w *workplace) planOf(args ...string) planDocument {
	w.t.Helper()
	var doc planDocument
	text := w.ok(append([]string{"plan", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		w.t.Fatalf("plan %q = %s: %v", args, text, err)
	}
	return doc
}

func TestPlanOfDefaults(t *testing.T) {
	w := newWorkplace(t)
	got := w.planOf("--", "curl", "-fsS", "https://user:hunter22@example.com/")
	want := planDocument{
		Schema: planSchema, Command: []string{"curl", "-fsS", "https://***@example.com/"}, Tool: "curl", Effect: "read",
		Retried: []string{"transient", "unknown"}, MaxAttempts: 4, Jitter: "equal",
		Waits:    []plannedWait{{1000, 500, 1000}, {2000, 1000, 2000}, {4000, 2000, 4000}},
		WaitsAll: plannedWait{7000, 3500, 7000}, MaxRetryAfterMS: 300_000, KillAfterMS: 5000,
		Budgets: []plannedBudget{{
			Name: "curl", Origin: "named after the tool, as none was named", Store: "file", Tokens: 20, Capacity: 20, Refill: "0.1/s", Bonus: 0.1,
			NextTokenMS: new(int64(0)), Bound: "in any hour, at most 20 + 360 retries, plus one per ten successful runs",
		}},
		End:    plannedEnd{Row: new(8), Outcome: new("retryable_failure"), Reason: new("attempts_exhausted"), Attempts: 4},
		Advice: []string{}, Warnings: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan differs (-want +got):\n%s", diff)
	}
	wantText(t, "plan", w.ok("plan", "--", "curl", "https://example.com/"),
		"read, as the arguments of curl say", "1s, 2s, 4s", "with equal jitter 500ms to 1s, 1s to 2s, 2s to 4s",
		"unbounded, as an attempt may take any time; with --timeout T it is 4 x (T + 5s) + 7s",
		"20 of 20 tokens, no record yet", "by row 8 of the decision table: retryable_failure, attempts_exhausted")
	if _, err := os.Lstat(w.state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("plan made the state directory (%v), want nothing written", err)
	}
}

// What ends a run that fails again and again.
func TestPlanEnds(t *testing.T) {
	w := newWorkplace(t)
	w.withdraw("low", 18)
	set := filepath.Join(t.TempDir(), "set")
	if err := os.WriteFile(set, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args     string
		row      int
		reason   string
		attempts int
	}{
		{"-n 1 -- false", 8, "attempts_exhausted", 1},
		{"-n 9 -b low --budget-refill 0 -- false", 14, "budget_denied", 3},
		{"-n 9 -b low --no-budget -- false", 0, "", 0}, // refused
		{"-n 9 -b low --budget-capacity 1 -- false", 14, "budget_denied", 2},
		{"-n 9 --run-budget 1 -- false", 14, "budget_denied", 2},
		{"-n 9 --delay 1s --multiplier 1 --jitter none --max-elapsed 3500ms -- false", 12, "elapsed_exhausted", 4},
		{"-n 9 --deadline 2001-01-01T00:00:00Z -- false", 10, "deadline_exceeded", 0},
		{"-n 9 --cancel-file " + set + " -- false", 1, "cancel_token", 0},
		{"-n 9 --retry-on unknown -- false", 7, "transient", 1},
		{"-n 9 --no-budget -- false", 8, "attempts_exhausted", 9},
	} {
		args := append([]string{"plan", "--format", "json"}, strings.Fields(test.args)...)
		if test.row == 0 {
			wantProblems(t, w.refused("", args...), "--no-budget: and --budget contradict each other; leave one out")
			continue
		}
		end := w.planOf(strings.Fields(test.args)...).End
		if end.Row == nil || *end.Row != test.row || *end.Reason != test.reason || end.Attempts != test.attempts {
			t.Errorf("plan %s ends %+v (%s), want row %d, %s after %d", test.args, end, *end.Reason, test.row, test.reason, test.attempts)
		}
	}
}

func TestPlanOfOpenBreaker(t *testing.T) {
	w := newWorkplace(t)
	for range 2 {
		w.run("", "-n", "1", "--breaker", "--breaker-threshold", "2", "-b", "api", "--no-journal", "--retry-exit", "1", "--", "false")
	}
	before := w.records()
	got := w.planOf("--breaker", "-b", "api", "--", "false")
	if got.Breaker == nil || got.Breaker.State != "open" || *got.End.Row != 13 || got.End.Attempts != 0 {
		t.Errorf("plan with an open breaker = %+v, end %+v, want it open and row 13 before the first attempt", got.Breaker, got.End)
	}
	if got := w.planOf("-b", "api", "--", "false"); got.Breaker != nil || *got.End.Row != 8 {
		t.Errorf("plan without a breaker = %+v, end %+v, want none and row 8", got.Breaker, got.End)
	}
	if diff := cmp.Diff(before, w.records()); diff != "" {
		t.Errorf("plan changed the state directory (-before +after):\n%s", diff)
	}
}

func TestPlanAdvises(t *testing.T) {
	w := newWorkplace(t)
	wantText(t, "plan of a wait for a service", w.ok("plan", "-n", "60", "--delay", "1s", "--multiplier", "1", "--", "pg_isready"),
		"59 retries are asked for, but a full budget pays for only 21", "use --no-budget")
	if got := w.planOf("-n", "60", "--delay", "1s", "--multiplier", "1", "--no-budget", "--", "pg_isready").Advice; len(got) > 0 {
		t.Errorf("advice for --no-budget = %q, want none", got)
	}
	w.withdraw("api", 20)
	if got := w.planOf("-b", "api", "--", "false"); len(got.Advice) > 0 || *got.End.Row != 14 {
		t.Errorf("plan on an empty budget = %q, row %d, want no advice to go without it, and row 14", got.Advice, *got.End.Row)
	}
}

func TestPlanOfBudgets(t *testing.T) {
	w := newWorkplace(t)
	t.Setenv(envBudget, "outer")
	t.Setenv(envBudgetOrigin, originNamed)
	t.Setenv(envDepth, "1")
	got := w.planOf("-b", "api", "--run-budget", "3", "--run-id", "r1", "--", "false")
	var names []string
	for _, b := range got.Budgets {
		names = append(names, b.Name+": "+b.Origin)
	}
	want := []string{"api: named", "outer: inherited from the retryx above", "run:r1: " + runOrigin}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("budgets differ (-want +got):\n%s", diff)
	}
	if got, want := got.Budgets[2].Bound, "in the whole run at most 3 retries"; got != want {
		t.Errorf("bound of a run's budget = %q, want %q: nobody resets it", got, want)
	}
	if got := w.planOf("--no-budget", "--", "false").Budgets; len(got) != 1 || got[0].Name != "outer" {
		t.Errorf("budgets with --no-budget = %+v, want the inherited one", got)
	}
}

func TestPlanWhenTheStoreFails(t *testing.T) {
	w := newWorkplace(t)
	if err := os.WriteFile(w.state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, policy, reason string
		attempts             int
	}{
		{"-- false", "local", "attempts_exhausted", 4},
		{"-b api -- false", "closed", "budget_unavailable", 1},
		{"-b api --budget-on-error open -n 30 -- false", "open", "attempts_exhausted", 30},
		{"-b api --budget-on-error local --budget-capacity 2 --budget-refill 0 -- false", "local", "budget_denied", 3},
		{"--run-budget 2 -- false", "local", "budget_unavailable", 1},
		{"--budget-store redis://127.0.0.1:1 -- false", "closed", "budget_unavailable", 1}, // nor can the fallback be used
	} {
		got := w.planOf(strings.Fields(test.args)...)
		b := got.Budgets[0]
		if b.Policy == nil || *b.Policy != test.policy || b.Error == nil || *got.End.Reason != test.reason || got.End.Attempts != test.attempts {
			t.Errorf("plan %s = %+v, end %+v, want policy %s and %s after %d", test.args, b, got.End, test.policy, test.reason, test.attempts)
		}
	}
	wantText(t, "plan with a failed store", w.ok("plan", "-b", "api", "--", "false"), "unavailable, so nothing is retried", w.state)
}

// What stands in for a server that is away holds as much in a plan as in a run:
// TestRedisDead has the runs.
func TestPlanWhenTheServerIsAway(t *testing.T) {
	w := newWorkplace(t)
	for _, test := range []struct {
		args, policy string
		tokens       float64
		attempts     int
	}{
		{"-n 6", "fallback", 3, 4},
		{"-n 6 --budget-capacity 2", "fallback", 2, 3},
		{"-n 6 --budget-on-error local", "local", 1, 2},
		{"-n 6 --run-budget 1", "fallback", 3, 2},
	} {
		args := "-b svc --budget-store redis://127.0.0.1:1 --delay 0 " + test.args + " -- false"
		got := w.planOf(strings.Fields(args)...)
		b := got.Budgets[len(got.Budgets)-1] // after that of the run
		if b.Policy == nil || *b.Policy != test.policy || b.Tokens != test.tokens || *got.End.Reason != "budget_denied" || got.End.Attempts != test.attempts {
			t.Errorf("plan %s = %+v, end %+v, want %v tokens by policy %s, and %d attempts", args, b, got.End, test.tokens, test.policy, test.attempts)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	w := newWorkplace(t)
	wantProblems(t, w.refused("", "plan", "-n", "0", "--format", "yaml"),
		`--format: want text or json, not "yaml"`,
		"plan: want a command: retryx plan -- curl -fsS URL",
		"--max-attempts: must be at least 1, not 0")
}

func TestPlanReadsTheCommand(t *testing.T) {
	w := newWorkplace(t)
	wantText(t, "plan of a write", w.ok("plan", "--timeout", "10s", "--", "sudo", "npm", "publish", "a b"),
		"sudo npm publish 'a b'", "npm publish, found behind sudo", "write, as the arguments of npm say", "not declared idempotent",
		"10s an attempt, TERM then and KILL 5s later", "1m7s, or 16m7s if the failing side states every wait; unbounded without --timeout")
	got := w.ok("plan", "--effect", "write", "--idempotent", "--jitter", "decorrelated", "-n", "20", "--", "./deploy.sh")
	wantText(t, "plan of a declared write", got, "write, as --effect says", "waits     with decorrelated jitter 1s to 3s, 1s to 9s, 1s to 20s, and so on")
	if strings.Contains(got, "not declared") {
		t.Errorf("plan of a write that is declared idempotent = %s, want nothing about ambiguity", got)
	}
}
