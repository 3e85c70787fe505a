package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mixed writes a file of outcomes among which are other things: every third run is
// a failure of step "a b", and after each outcome follows something that is none.
func mixed(t *testing.T, runs int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "outcomes.jsonl")
	var b bytes.Buffer
	for i := range runs {
		d := &document{Schema: outcomeSchema, Outcome: "success", Reason: "succeeded", RunID: fmt.Sprintf("run%d", i), Tool: "curl", Command: []string{"curl"}}
		if i%3 == 0 {
			step := "a b"
			d.Outcome, d.Reason, d.Step = "hard_failure", "permanent", &step
		}
		b.Write(d.full())
		b.WriteString([]string{"\n", "not JSON\n", "{}\n", `{"schema":"retryx.failure/v1"}` + "\n", string(d.full()[:40]) + "\n"}[i%5])
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// What is passed over unread must not change an answer: each question is asked with
// and without the shortcuts.
func TestShortcutsChangeNoAnswer(t *testing.T) {
	t.Parallel()
	const runs = 20
	file := mixed(t, runs)
	for _, c := range []struct {
		args []string
		want []string // the run ids, in order
	}{
		{[]string{"-n", "3"}, []string{"run17", "run18", "run19"}},
		{[]string{"-n", "3", "--outcome", "success"}, []string{"run16", "run17", "run19"}},
		{[]string{"-n", "2", "--step", "a b"}, []string{"run15", "run18"}},
		{[]string{"--run-id", "run7"}, []string{"run7"}},
		{[]string{"--run-id", "run"}, nil},
		{[]string{"-n", "1", "--tool", "curl", "--reason", "permanent"}, []string{"run18"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, historyOf(t, file, c.args...)); diff != "" {
				t.Errorf("history %v (-want +got):\n%s", c.args, diff)
			}
		})
	}
	if got := len(historyOf(t, file, "-n", "1000")); got != runs {
		t.Errorf("history -n 1000 = %d outcomes, want %d", got, runs)
	}
}

// historyOf returns the run ids that retryx history answers with.
func historyOf(t *testing.T, file string, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	env := Env{Args: append([]string{"history", "--format", "json", file}, args...), Stdin: os.Stdin, Stdout: out, Stderr: os.Stderr, Environ: []string{"HOME=" + dir}}
	if code := Main(env); code != 0 {
		t.Fatalf("history %v = %d, want 0", args, code)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(string(text)) {
		d, err := parseDocument([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.RunID)
	}
	return ids
}

func TestMayHold(t *testing.T) {
	t.Parallel()
	const line = `{"outcome":"success","step":"a\u0020b","run_id":"r1"}`
	for _, c := range []struct {
		words []string
		want  bool
	}{
		{nil, true},
		{[]string{"", ""}, true},
		{[]string{"success", "", "r1"}, true},
		{[]string{"success", "r2"}, false},
		{[]string{"succes"}, false},
		{[]string{"a b"}, true}, // may be written in more than one way
		{[]string{`"`}, true},
		{[]string{"é"}, true},
	} {
		if got := mayHold([]byte(line), c.words); got != c.want {
			t.Errorf("mayHold(%q) = %v, want %v", c.words, got, c.want)
		}
	}
}
