package faulttest_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/retryx/retryx/budget"
)

// program is one way to run the whole program on a record of ten tokens.
type program struct {
	name    string
	flags   []string
	script  string // of the command, which writes a line to each stream
	status  int    // that the command ends with, and so must the program
	outcome string
	reasons []string
	policy  string // that acts when the store fails
	// pays says how many retries one decision of the policy may have allowed
	// beside what was charged.
	pays func(unusable bool) int
}

func programs() []program {
	const failure, success = "echo run; echo oops >&2; exit 7", "echo run; echo oops >&2"
	none := func(bool) int { return 0 }
	return []program{
		{
			name: "named", flags: []string{"-b", name}, script: failure, status: 7, outcome: "retryable_failure",
			reasons: []string{"attempts_exhausted", "budget_unavailable"}, policy: budget.PolicyClosed, pays: none,
		},
		{
			name: "implicit", script: failure, status: 7, outcome: "retryable_failure",
			reasons: []string{"attempts_exhausted", "budget_denied"}, policy: budget.PolicyLocal,
			pays: func(unusable bool) int {
				if unusable {
					return capacity
				}
				return 1
			},
		},
		{
			name: "open", flags: []string{"-b", name, "--budget-on-error", "open"}, script: failure, status: 7, outcome: "retryable_failure",
			reasons: []string{"attempts_exhausted"}, policy: budget.PolicyOpen, pays: func(bool) int { return attempts },
		},
		{
			name: "breaker", flags: []string{"-b", name, "--breaker"}, script: failure, status: 7, outcome: "retryable_failure",
			reasons: []string{"attempts_exhausted", "budget_unavailable"}, policy: budget.PolicyClosed, pays: none,
		},
		{
			name: "success", flags: []string{"-b", name}, script: success, outcome: "success",
			reasons: []string{"succeeded"}, pays: none,
		},
	}
}

// ending is what a run left.
type ending struct {
	status         syscall.WaitStatus
	stdout, stderr string
	outcome        outcome
}

// run runs the program under the tracer.
func (p *program) run(t *testing.T, home string, judge func(call) verdict) ending {
	t.Helper()
	c := inHome(home, p.flags, p.script)
	files := map[string]*os.File{}
	for _, stream := range []string{"stdout", "stderr"} {
		// A new file, as the command of a run that was killed may still write to its
		// own; and for appending, as a file that begins empty is cut back before a
		// retry.
		path := filepath.Join(home, stream)
		_ = os.Remove(path)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[stream] = f
	}
	c.Stdout, c.Stderr = files["stdout"], files["stderr"]
	e := ending{status: trace(t, c, judge).wait()}
	e.stdout, e.stderr = written(t, home, "stdout"), written(t, home, "stderr")
	if e.status.Exited() {
		e.outcome = outcomeOf(t, e.stderr)
	}
	return e
}

func written(t *testing.T, home, stream string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(home, stream))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Properties 25 and 46: whichever call about the state directory fails in a run of
// the whole program, and however, the command runs as it would, its status and its
// output are the program's, the policy is the one that was chosen, and no retry
// runs that neither the record nor the policy has paid for.
//
// When RETRYX_STRESS is 1, each call fails in each way, alone and with all calls
// after it. Else it fails in one way, in turn alone or with those after it, and
// all programs but the first take every fifth call.
func TestProgramWhenAnyCallFails(t *testing.T) {
	stress := os.Getenv("RETRYX_STRESS") == "1"
	for i, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			home := newHome(t)
			calls, acted := p.try(t, home, fault{}, false)
			runs := 0
			for n := range calls {
				for _, w := range ways(n, stress) {
					if stress || i == 0 || n%len(programs()) == i {
						_, policy := p.try(t, home, fault{n + 1, w.errno}, w.on)
						acted, runs = acted || policy, runs+1
					}
				}
			}
			if acted != (p.policy != "") {
				t.Errorf("a policy acted: %v, want %v", acted, p.policy != "")
			}
			t.Logf("%d calls, %d runs", calls, runs)
		})
	}
}

// way is how a call fails.
type way struct {
	errno syscall.Errno
	on    bool // all calls after it fail too
}

// ways are those that the nth call fails in.
func ways(n int, stress bool) []way {
	var all []way
	for errno := range errnos() {
		all = append(all, way{errno, false}, way{errno, true})
	}
	if stress {
		return all
	}
	slices.SortStableFunc(all, func(a, b way) int { return cmp.Compare(a.errno, b.errno) })
	return all[n%len(all):][:1]
}

// try returns how many calls the run made, and whether a policy acted.
func (p *program) try(t *testing.T, home string, f fault, on bool) (calls int, acted bool) {
	t.Helper()
	dir := filepath.Join(home, "state")
	stock(t, dir, 10)
	s := &saboteur{dir: dir, fault: f, on: on}
	e := p.run(t, home, s.judge)
	at := "without a fault"
	if f.nth > 0 && f.nth <= len(s.calls) {
		at = fmt.Sprintf("%v (%v), on %v", f, s.calls[f.nth-1], on)
	}
	p.check(t, at, e, f)
	p.checkPaid(t, at, dir, e, f)
	return len(s.calls), e.outcome.policy() != ""
}

func (p *program) check(t *testing.T, at string, e ending, f fault) {
	t.Helper()
	if !e.status.Exited() || e.status.ExitStatus() != p.status {
		t.Errorf("%s: it ended with %#x, want exit status %d\n%s", at, e.status, p.status, e.stderr)
	}
	n := e.outcome.Count
	if want := strings.Repeat("run\n", n); n < 1 || e.stdout != want || strings.Count(e.stderr, "oops\n") != n {
		t.Errorf("%s: %d attempts wrote %q and\n%s", at, n, e.stdout, e.stderr)
	}
	if o := e.outcome; o.Outcome != p.outcome || !slices.Contains(p.reasons, o.Reason) || f.nth == 0 && o.Reason != p.reasons[0] {
		t.Errorf("%s: outcome %s, %s, want %s, one of %v\n%s", at, o.Outcome, o.Reason, p.outcome, p.reasons, e.stderr)
	}
	if got := e.outcome.policy(); got != "" && got != p.policy {
		t.Errorf("%s: policy %q acted, want %q", at, got, p.policy)
	}
	if full := p.policy != "" && n < attempts; full && e.outcome.policy() == "" {
		t.Errorf("%s: %d attempts, and no policy says why\n%s", at, n, e.stderr)
	}
}

func (p *program) checkPaid(t *testing.T, at, dir string, e ending, f fault) {
	t.Helper()
	left := balance(t, dir).Bucket.Tokens
	if p.policy == "" {
		if left != tokens(10) && left != tokens(10)+bonus {
			t.Errorf("%s: %s tokens are left, want 10 or 10.1", at, left)
		}
		return
	}
	retries, charged := e.outcome.Count-1, int((tokens(10)-left)/budget.Token)
	if e.outcome.policy() != "" {
		charged += p.pays(errnos()[f.errno])
	}
	if retries > charged || left > tokens(10) || left < tokens(10-retries-1) {
		t.Errorf("%s: %d retries and %s tokens left, want each paid and at most one token lost", at, retries, left)
	}
}

// Property 17: whatever a run opens in the state directory, when it makes it, reads
// it or repairs it, would be closed in a child that is started at that moment.
func TestNothingOpenIsForChildren(t *testing.T) {
	t.Parallel()
	p, home := programs()[0], newHome(t)
	dir := filepath.Join(home, "state")
	opened := map[string]bool{}
	judge := func(c call) verdict {
		if c.name == "openat" && strings.HasPrefix(c.path, dir) {
			opened[c.path] = opened[c.path] || c.kept
		}
		return verdict{}
	}
	p.run(t, home, judge)
	for _, rubbish := range []string{"", "rubbish"} {
		if rubbish != "" {
			if err := os.WriteFile(recordPath(dir), []byte(rubbish), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.run(t, home, judge)
	}
	for path, kept := range opened {
		if kept {
			t.Errorf("%s was opened for children too", path)
		}
	}
	if _, repaired := opened[recordPath(dir)+".corrupt"]; !repaired {
		t.Errorf("the runs opened only %v", opened)
	}
}

// Properties 21 and 24 for a whole run: at whichever call about the state directory
// it is killed, the record is sound, every retry that ran was paid for, and at most
// one token is lost. Calls that only look are left out unless RETRYX_STRESS is 1.
func TestProgramKilledAtAnyCall(t *testing.T) {
	t.Parallel()
	p, home := programs()[0], newHome(t)
	dir := filepath.Join(home, "state")
	at := changes
	if os.Getenv("RETRYX_STRESS") == "1" {
		at = nil
	}
	for n := 1; ; n++ {
		stock(t, dir, 10)
		s := &slayer{dir: dir, nth: n, at: at}
		e := p.run(t, home, s.judge)
		// A command that has not written yet was paid for, and is the one token.
		retries := max(strings.Count(e.stdout, "run\n")-1, 0)
		if left := balance(t, dir).Bucket.Tokens; left > tokens(10-retries) || left < tokens(10-retries-1) {
			t.Errorf("killed at the last of %v: %d retries and %s tokens left, want each paid and at most one token lost", s.calls, retries, left)
		}
		if e.status.Exited() {
			if retries != attempts-1 || n < 10 {
				t.Errorf("after %d kills it made %d retries, want %d at last", n-1, retries, attempts-1)
			}
			t.Logf("%d kills: %v", n-1, s.calls)
			return
		}
	}
}
