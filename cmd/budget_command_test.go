package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/statefile"
)

// workplace is a user with a home and a state directory of their own.
type workplace struct {
	t     *testing.T
	state string
}

func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	home := t.TempDir()
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "RETRYX_") || strings.HasPrefix(name, "XDG_") {
			t.Setenv(name, value) // so that it comes back
			os.Unsetenv(name)
		}
	}
	w := &workplace{t: t, state: filepath.Join(home, "state")}
	t.Setenv("HOME", home)
	t.Setenv("RETRYX_STATE_DIR", w.state)
	return w
}

// ran is how a command line ended.
type ran struct {
	status         int
	stdout, stderr string
}

// run executes a command line with some text on stdin.
func (w *workplace) run(stdin string, args ...string) ran {
	w.t.Helper()
	dir := w.t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, []byte(stdin), 0o600); err != nil {
		w.t.Fatal(err)
	}
	files := [3]*os.File{}
	for i, name := range []string{"in", "out", "err"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			w.t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	status := execute(Env{Args: args, Stdin: files[0], Stdout: files[1], Stderr: files[2], Environ: os.Environ()})
	return ran{status, w.read(files[1].Name()), w.read(files[2].Name())}
}

func (w *workplace) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// ok executes a command line that must succeed and returns its stdout.
func (w *workplace) ok(args ...string) string {
	w.t.Helper()
	got := w.run("", args...)
	if got.status != 0 || got.stderr != "" {
		w.t.Fatalf("execute(%q) = %d, stderr %q, want 0 and no stderr", args, got.status, got.stderr)
	}
	return got.stdout
}

// refused executes a command line that must end with 125 and nothing on stdout,
// and returns its problems.
func (w *workplace) refused(stdin string, args ...string) []string {
	w.t.Helper()
	got := w.run(stdin, args...)
	if got.status != exitOwn || got.stdout != "" {
		w.t.Fatalf("execute(%q) = %d, stdout %q, want %d and no stdout", args, got.status, got.stdout, exitOwn)
	}
	return strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
}

// records is what the state directory holds, byte for byte.
func (w *workplace) records() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.state, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all[path] = w.read(path)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *workplace) store() *filestore.Store {
	return &filestore.Store{Dir: statefile.Dir{Path: w.state}}
}

func (w *workplace) record(name string) budget.Record {
	w.t.Helper()
	r, found, err := w.store().Peek(context.Background(), budget.Account{Name: name, Params: budget.Defaults()})
	if err != nil || !found {
		w.t.Fatalf("Peek(%s) = found %v, %v, want a record", name, found, err)
	}
	return r
}

// withdraw pays for n retries.
func (w *workplace) withdraw(name string, n int) {
	w.t.Helper()
	for range n {
		if _, err := w.store().Withdraw(context.Background(), budget.Account{Name: name, Params: budget.Defaults()}, 0); err != nil {
			w.t.Fatal(err)
		}
	}
}

func wantText(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(got, text) {
			t.Errorf("%s = %q, want %q in it", what, got, text)
		}
	}
}

func wantProblems(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = "retryx: " + want[i]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}

func TestBudgetSetShowReset(t *testing.T) {
	w := newWorkplace(t)
	wantText(t, "set of a new budget", w.ok("budget", "set", "api", "--capacity", "5", "--refill", "10/h", "--bonus", "0.2"),
		`made budget "api"`, "5 of 5", "in any hour, at most 5 + 10 retries, plus one per five successful runs")
	w.withdraw("api", 6)
	wantText(t, "show", w.ok("budget", "show", "api"),
		"tokens    0 of 5", "a whole token in 6m", "counters  5 granted, 1 denied, 0 refunded, 0 successes",
		"breaker   closed; failures in a row: 0", filepath.Join(w.state, "budgets", "api"))

	before := w.record("api").Bucket
	wantText(t, "set of one parameter", w.ok("budget", "set", "api", "--capacity", "50"), `changed budget "api"`, "0 of 50", "10/h")
	after := w.record("api").Bucket
	if after.Tokens > before.Tokens+budget.Token/10 {
		t.Errorf("set of the capacity took the balance from %s to %s, want no tokens added", before.Tokens, after.Tokens)
	}
	if want := (budget.Params{Capacity: 50, Refill: 10 * budget.Rate(budget.Token), Bonus: budget.Token / 5}); after.Params != want {
		t.Errorf("set of the capacity = %+v, want %+v", after.Params, want)
	}

	wantText(t, "reset", w.ok("budget", "reset", "api"), `budget "api" holds 50 of 50 tokens again, its breaker is closed`)
	if got := w.record("api"); !got.Bucket.Full() || got.Bucket.Params != after.Params || got.Counters.Granted != 5 {
		t.Errorf("reset left %+v, want a full bucket with the same parameters and counters", got)
	}
}

func TestBudgetList(t *testing.T) {
	w := newWorkplace(t)
	wantText(t, "list of nothing", w.ok("budget", "list"), "no budgets yet in "+filepath.Join(w.state, "budgets"))
	if got := w.ok("budget", "list", "--format", "json"); !strings.Contains(got, `"budgets": []`) {
		t.Errorf("list of nothing as JSON = %s, want an empty list", got)
	}
	w.withdraw("web", 1)
	w.withdraw("api", 2)
	lines := strings.Split(w.ok("budget", "list"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "api ") || !strings.HasPrefix(lines[2], "web ") {
		t.Errorf("list = %q, want a head, api and web", lines)
	}
	var doc struct {
		Schema  string
		Budgets []struct {
			Name     string
			Exists   bool
			Capacity int
			Counters struct{ Granted int }
		}
	}
	if err := json.Unmarshal([]byte(w.ok("budget", "list", "--format", "json")), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != budgetsSchema || len(doc.Budgets) != 2 || doc.Budgets[0].Counters.Granted != 2 || !doc.Budgets[0].Exists || doc.Budgets[1].Capacity != 20 {
		t.Errorf("list as JSON = %+v, want api with 2 grants, then web", doc)
	}
}

// Property 63: show, list and plan change no byte and do not wait for a lock.
func TestBudgetShowOnlyLooks(t *testing.T) {
	w := newWorkplace(t)
	w.withdraw("api", 3)
	before := w.records()
	held, err := os.Open(filepath.Join(w.state, "budgets", "api"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	wantText(t, "show of a locked budget", w.ok("budget", "show", "api"), "17 of 20")
	wantText(t, "list with a locked budget", w.ok("budget", "list"), "17 of 20")
	wantText(t, "plan with a locked budget", w.ok("plan", "-b", "api", "-b", "new", "--budget-capacity", "5", "--", "false"), "5 of 5 tokens")
	wantText(t, "set of a locked budget", strings.Join(w.refused("", "budget", "set", "api", "--capacity", "9"), "\n"), `set budget "api": `, "locked")
	if diff := cmp.Diff(before, w.records()); diff != "" {
		t.Errorf("looking changed the state directory (-before +after):\n%s", diff)
	}
}

func TestBudgetRefuses(t *testing.T) {
	w := newWorkplace(t)
	wantProblems(t, w.refused("", "budget", "show", "api"),
		`budget "api" does not exist, nor does any other; the first retry that names one makes it`)
	w.withdraw("api", 1)
	w.withdraw("artifacts", 1)
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"budget"}, []string{"budget: want list, reset, set or show"}},
		{[]string{"budget", "shwo", "api"}, []string{`budget: want list, reset, set or show, not "shwo"; did you mean "show"?`}},
		{[]string{"budget", "show"}, []string{`budget show: want one name, not 0; "retryx budget list" shows them`}},
		{[]string{"budget", "show", "artefacts"}, []string{`budget "artefacts" does not exist; there is api or artifacts; did you mean "artifacts"?`}},
		{[]string{"budget", "reset", "artefacts"}, []string{`budget "artefacts" does not exist; there is api or artifacts; did you mean "artifacts"?`}},
		{[]string{"budget", "show", "API", "--format", "yaml"}, []string{
			`read budget name "API": want 1 to 64 of a-z 0-9 . _ - starting with a letter or digit`,
			`--format: want text or json, not "yaml"`,
		}},
		{[]string{"budget", "set", "api"}, []string{"budget set: say what to change: --capacity, --refill or --bonus"}},
		{[]string{"budget", "set", "../x", "--capacity", "-1", "--refill", "6", "--bonus", "2", "--budget-store", "http://x"}, []string{
			`read budget name "../x": want 1 to 64 of a-z 0-9 . _ - starting with a letter or digit`,
			`--capacity: read capacity "-1": want a whole number of tokens from 0 to 1000000`,
			`--refill: read refill "6": want tokens per s, m or h with at most six decimals, such as 0.1/s, 6/m or 10/h`,
			`--bonus: read bonus "2": want a number from 0 to 1 with at most six decimals`,
			`--budget-store: want redis://, rediss:// or unix://, not "http"`,
		}},
	} {
		wantProblems(t, w.refused("", test.args...), test.want...)
	}
}

func TestBudgetsOfTheConfigurationExist(t *testing.T) {
	w := newWorkplace(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("budgets:\n  api:\n    capacity: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantText(t, "show", w.ok("budget", "show", "api", "--config", path), "7 of 7", "not made yet")
	wantText(t, "list", w.ok("budget", "list", "--config", path), "7 of 7", "no record yet")
	wantText(t, "reset", w.ok("budget", "reset", "api", "--config", path), "no record yet, so it is full")
	if got := w.records(); len(got) > 0 {
		t.Errorf("looking made %v, want nothing", got)
	}
	got := w.run("", "budget", "set", "api", "--capacity", "9", "--config", path)
	if got.status != 0 {
		t.Fatalf("set = %+v, want success", got)
	}
	wantText(t, "warning of set", got.stderr, path+":2 says otherwise and wins at the next run")
}

func TestBudgetOfDamagedRecord(t *testing.T) {
	w := newWorkplace(t)
	w.withdraw("api", 1)
	path := filepath.Join(w.state, "budgets", "api")
	damaged := bytes.Repeat([]byte{0x55}, len(w.read(path)))
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	wantText(t, "show", w.ok("budget", "show", "api"), "0 of 20", "record is damaged; the next decision restarts it at 0 tokens")
	if got := w.read(path); got != string(damaged) {
		t.Error("show touched the damaged record, want it left alone")
	}
	wantText(t, "reset", w.ok("budget", "reset", "api"), "holds 20 of 20 tokens again")
	if got := w.read(path + ".corrupt"); got != string(damaged) {
		t.Error("reset kept other bytes than the damaged ones")
	}
}

func TestBudgetListWithUnreadable(t *testing.T) {
	w := newWorkplace(t)
	w.withdraw("api", 1)
	if err := os.Symlink("/etc/passwd", filepath.Join(w.state, "budgets", "link")); err != nil {
		t.Fatal(err)
	}
	got := w.run("", "budget", "list")
	if got.status != 1 {
		t.Errorf("list with an unreadable record = %d, want 1", got.status)
	}
	wantText(t, "list", got.stdout, "19 of 20", "link  -")
	wantText(t, "show", strings.Join(w.refused("", "budget", "show", "link"), "\n"), `read budget "link": `)
}

func TestBoundOf(t *testing.T) {
	rate := func(s string) budget.Rate {
		r, err := budget.ParseRefill(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, test := range []struct {
		params budget.Params
		want   string
	}{
		{budget.Defaults(), "in any hour, at most 20 + 360 retries, plus one per ten successful runs"},
		{budget.Params{Capacity: 1}, "until it is reset, at most 1 retry"},
		{budget.Params{Capacity: 3, Bonus: budget.Token}, "until it is reset, at most 3 retries, plus one per successful run"},
		{budget.Params{Capacity: 3, Refill: rate("0.000001/s"), Bonus: 300_000}, "in any hour, at most 3 + 0.0036 retries, plus 0.3 per successful run"},
		{budget.Params{Capacity: 3, Refill: rate("1000/s"), Bonus: 10_000}, "in any hour, at most 3 + 3600000 retries, plus one per 100 successful runs"},
		{budget.Params{Refill: rate("1/s"), Bonus: budget.Token}, "no retry at all, as its capacity is 0"},
	} {
		if got := boundOf(test.params); got != test.want {
			t.Errorf("boundOf(%+v) = %q, want %q", test.params, got, test.want)
		}
	}
}

func TestBudgetOnUnusableState(t *testing.T) {
	w := newWorkplace(t)
	if err := os.WriteFile(w.state, nil, 0o600); err != nil { // a file where the directory should be
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"show", "api"}, {"set", "api", "--capacity", "3"}, {"reset", "api"}} {
		got := w.refused("", append([]string{"budget"}, args...)...)
		if len(got) != 1 || !strings.Contains(got[0], w.state) {
			t.Errorf("budget %v = %q, want one problem that names %s", args, got, w.state)
		}
	}
}
