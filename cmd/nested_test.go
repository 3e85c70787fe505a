package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/exec"
)

// hintsAbove makes what a retryx above has for its child.
func hintsAbove(t *testing.T) hints {
	t.Helper()
	h, err := openHints(t.TempDir(), "01J")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOrdinalCountsEqualCalls(t *testing.T) {
	h := hintsAbove(t)
	a, b := callHash("", []string{"a"}), callHash("", []string{"b"})
	var got []int
	for _, call := range [][32]byte{a, b, a, a, b, callHash("s", []string{"a"})} {
		n, err := ordinal(h.path, call)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if diff := cmp.Diff([]int{0, 0, 1, 2, 1, 0}, got); diff != "" {
		t.Errorf("ordinal() of equal and other calls (-want +got):\n%s", diff)
	}
	info, err := os.Stat(h.path + ordinalSuffix)
	if err != nil || info.Size() != 3*40 {
		t.Errorf("three calls take %v bytes (%v), want 120", info.Size(), err)
	}
	h.take()
	if n, err := ordinal(h.path, a); n != 0 || err != nil {
		t.Errorf("ordinal() in the next attempt = %d, %v, want 0", n, err)
	}
}

func TestOrdinalInParallel(t *testing.T) {
	h := hintsAbove(t)
	call := callHash("", []string{"a"})
	const calls = 20
	seen := make([]bool, calls)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			n, err := ordinal(h.path, call)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || n >= calls || seen[n] {
				t.Errorf("ordinal() = %d, %v, want one that nobody else got", n, err)
				return
			}
			seen[n] = true
		})
	}
	wg.Wait()
}

// Whoever sits on the lock holds nobody up for long.
func TestOrdinalWaitsBriefly(t *testing.T) {
	h := hintsAbove(t)
	f, err := openBeside(h.path+ordinalSuffix, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err = ordinal(h.path, callHash("", nil))
	if took := time.Since(begun); err == nil || took < ordinalWait {
		t.Errorf("ordinal() under somebody's lock = %v after %s, want an error after %s", err, took, ordinalWait)
	}
}

// The path is the environment's, so only what a retryx can have made is used.
func TestOpenBesideRefuses(t *testing.T) {
	private := func() string {
		t.Helper()
		return filepath.Dir(hintsAbove(t).path)
	}
	for name, place := range map[string]func() string{
		"a directory of another name": func() string {
			t.Helper()
			dir := filepath.Join(t.TempDir(), "etc")
			must(t, os.Mkdir(dir, 0o700))
			return filepath.Join(dir, "f")
		},
		"a directory that others may enter": func() string {
			t.Helper()
			dir := private()
			must(t, os.Chmod(dir, 0o755))
			return filepath.Join(dir, "f")
		},
		"a symlink to one": func() string {
			t.Helper()
			link := filepath.Join(t.TempDir(), hintsDir)
			must(t, os.Symlink(private(), link))
			return filepath.Join(link, "f")
		},
		"a missing directory": func() string {
			t.Helper()
			return filepath.Join(t.TempDir(), hintsDir, "f")
		},
		"a symlink in it": func() string {
			t.Helper()
			path := filepath.Join(private(), "f")
			must(t, os.Symlink(filepath.Join(t.TempDir(), "made"), path))
			return path
		},
		"a hard link": func() string {
			t.Helper()
			dir := private()
			must(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
			must(t, os.Link(filepath.Join(dir, "other"), filepath.Join(dir, "f")))
			return filepath.Join(dir, "f")
		},
		"a FIFO": func() string {
			t.Helper()
			path := filepath.Join(private(), "f")
			must(t, syscall.Mkfifo(path, 0o600))
			return path
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := openBeside(place(), os.O_APPEND)
			if err == nil {
				f.Close()
				t.Errorf("openBeside() of %s = nil, want an error", name)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A line that says nothing new is not written; one that does is, and counts.
func TestTellParent(t *testing.T) {
	h := hintsAbove(t)
	good := &exec.Outcome{Label: exec.Success, Reason: exec.Succeeded}
	bad := &exec.Outcome{Label: exec.RetryableFailure, Reason: exec.BudgetDenied}
	for _, o := range []*exec.Outcome{good, good, good, bad, bad, good, bad} {
		must(t, tellParent(h.path, o, nil))
	}
	data, err := os.ReadFile(h.path)
	must(t, err)
	if got := strings.Count(string(data), "\n"); got != 4 {
		t.Errorf("tellParent() wrote %d lines, want 4:\n%s", got, data)
	}
	got := h.take()
	if stop := got.stopOrder(); stop == nil || *stop != (exec.Stop{Label: exec.RetryableFailure, Reason: exec.BudgetDenied}) {
		t.Errorf("stopOrder() of the last line = %+v, want budget_denied", stop)
	}
	if _, err := os.Stat(h.path); !os.IsNotExist(err) {
		t.Errorf("after take() the file is there (%v), want it removed", err)
	}
}

func TestReadEnd(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		cut              bool
	}{
		{"empty", "", "", false},
		{"all of it", "a\nb\n", "a\nb\n", false},
		{"exactly the limit", "abcdefghi\n", "abcdefghi\n", false},
		{"on a line's end", "first\nabcdefghi\n", "abcdefghi\n", true},
		{"within a line", "first\nabc\nde\n", "abc\nde\n", true},
		{"half a line", "abcdefghijklm\nde\n", "de\n", true},
		{"one long line", "abcdefghijklmnop", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			must(t, os.WriteFile(path, []byte(tt.text), 0o600))
			f, err := os.Open(path)
			must(t, err)
			defer f.Close()
			data, cut, err := readEnd(f, 10)
			if err != nil || string(data) != tt.want || cut != tt.cut {
				t.Errorf("readEnd(%q, 10) = %q, %v, %v, want %q, %v", tt.text, data, cut, err, tt.want, tt.cut)
			}
		})
	}
}

// A file that somebody else owns is not read: see the same with a real change
// of the user in the whole-program tests.
func TestOwnFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of others")
	}
	h := hintsAbove(t)
	must(t, os.WriteFile(h.path, []byte("stop=true\n"), 0o600))
	must(t, os.Chown(h.path, 12345, -1))
	got := h.take()
	if got.stop || len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "owned by somebody else") {
		t.Errorf("take() of a stranger's file = %+v, want nothing but a warning", got)
	}
}

// What root makes for somebody else's retryx is handed to that user.
func TestOpenBesideAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	h := hintsAbove(t)
	must(t, os.Chown(filepath.Dir(h.path), 12345, -1))
	for range 2 {
		must(t, tellParent(h.path, &exec.Outcome{Label: exec.Success, Reason: exec.Succeeded}, nil))
	}
	info, err := os.Stat(h.path)
	must(t, err)
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 12345 {
		t.Errorf("the hint file that root made belongs to %d, want 12345", uid)
	}
}

func TestLastNested(t *testing.T) {
	data := []byte("nested={1}\nclass=x\nnested={2}\nstop=true\n")
	if got, want := lastNested(data), []byte("nested={2}\n"); !bytes.Equal(got, want) {
		t.Errorf("lastNested() = %q, want %q", got, want)
	}
	if got := lastNested([]byte("class=x\n")); got != nil {
		t.Errorf("lastNested() without one = %q, want nil", got)
	}
}

// Below the probe of a breaker nobody asks that breaker. A name in another place
// is another record.
func TestBelowAProbe(t *testing.T) {
	const fleet = "redis://fleet:6379"
	above := inherited{budgets: []string{"api", "db"}, named: true, guarded: []string{"api"}, stateDir: "/state"}
	shared := above
	shared.store = fleet
	for _, c := range []struct {
		name    string
		in      inherited
		said    settings
		place   string
		guard   string
		guarded []string
	}{
		{"top", inherited{}, settings{breaker: true, budgets: []string{"api"}}, "/state", "api", nil},
		{"top, after the tool", inherited{}, settings{breaker: true}, "/state", "curl", nil},
		{"top, without budgets", inherited{}, settings{breaker: true, noBudget: true}, "/state", "", nil},
		{"below", above, settings{breaker: true}, "/state", "", []string{"api"}},
		{"below, named again", above, settings{breaker: true, budgets: []string{"api"}}, "/state", "", []string{"api"}},
		{"below, without own ones", above, settings{breaker: true, noBudget: true}, "/state", "", []string{"api"}},
		{"below, another name", above, settings{breaker: true, budgets: []string{"cdn"}}, "/state", "cdn", []string{"api"}},
		{"below, no breaker asked for", above, settings{budgets: []string{"cdn"}}, "/state", "", []string{"api"}},
		{"below, another directory", above, settings{breaker: true}, "/elsewhere", "api", nil},
		{"below, into a fleet", above, settings{breaker: true, store: fleet}, "/state", "api", nil},
		{"in a fleet", shared, settings{breaker: true, store: fleet}, "/elsewhere", "", []string{"api"}},
		{"out of a fleet", shared, settings{breaker: true}, "/state", "api", nil},
	} {
		var at places
		at.shared.Path = c.place
		m := memberOf(&c.said, c.in, at, "curl")
		l := newLedger(&c.said, &configuration{}, at, m)
		if m.guard != c.guard || !slices.Equal(m.guarded, c.guarded) || (l.Rule != nil) != (c.guard != "") {
			t.Errorf("%s: guard %q of %q, asks %v, want %q of %q", c.name, m.guard, m.guarded, l.Rule != nil, c.guard, c.guarded)
		}
	}
}
