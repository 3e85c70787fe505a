package cmd_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exampleOutcome is the outcome at the end of what an example wrote to stderr.
func exampleOutcome(t *testing.T, stderr string) map[string]any {
	t.Helper()
	stderr = strings.TrimRight(stderr, "\n")
	line := stderr[strings.LastIndexByte(stderr, '\n')+1:]
	var doc map[string]any
	if err := json.Unmarshal([]byte(line), &doc); err != nil {
		t.Fatalf("the last line is no outcome: %v\n%s", err, stderr)
	}
	schema, err := outcomeSchema()
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(any(doc)); err != nil {
		t.Error(err)
	}
	return doc
}

func TestExampleAgentLoop(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		stdout string
		want   map[string]string
	}{
		{
			"two corrections", nil, 0, "notified with {\"to\":\"ops\",\"level\":3}\n",
			map[string]string{
				"outcome": "success", "attempt_count": "3", "budgets.0.granted": "2",
				"attempts.0.class": "correctable", "attempts.1.class": "correctable",
				"corrections.1.argv": `["./notify.sh","{\"to\":\"ops\",\"level\":3}"]`,
			},
		},
		{
			"a good call",
			[]string{`{"to":"ops","level":1}`},
			0, "notified with {\"to\":\"ops\",\"level\":1}\n",
			map[string]string{"outcome": "success", "attempt_count": "1", "corrections": "[]"},
		},
		{
			"nobody can correct it",
			[]string{`{"level":3}`},
			2, "",
			map[string]string{
				"outcome": "hard_failure", "reason": "correctable", "attempt_count": "1",
				"corrections.0.error": "the hook exited with 1", "budgets.0.granted": "1", "budgets.0.refunded": "1",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out, errs, status := example(t, append([]string{"agent-loop/run.sh"}, tc.args...)...)
			if status != tc.status || out != tc.stdout {
				t.Errorf("run.sh %q exits with %d and prints %q, want %d and %q\n%s", tc.args, status, out, tc.status, tc.stdout, errs)
			}
			outcomeHas(t, exampleOutcome(t, errs), tc.want)
		})
	}
}

func outcomeHas(t *testing.T, doc map[string]any, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := field(doc, name); got != value {
			t.Errorf("outcome %s = %s, want %s", name, got, value)
		}
	}
}

func TestExamplePublish(t *testing.T) {
	t.Parallel()
	need(t, "curl", "go")
	program := filepath.Join(t.TempDir(), "registry")
	if text, err := exec.Command("go", "build", "-o", program, "../examples/publish-with-reconcile/registry").CombinedOutput(); err != nil {
		t.Fatalf("build the registry: %v\n%s", err, text)
	}
	for _, tc := range []struct {
		name, flags string
		status      int
		posts       string
		want        map[string]string
	}{
		{"all well", "", 0, "1", map[string]string{"outcome": "success", "reason": "succeeded", "attempt_count": "1"}},
		{"it happened", "-lose 1", 0, "1", map[string]string{
			"outcome": "success", "reason": "reconciled", "attempt_count": "1", "attempts.0.class": "ambiguous", "reconciled.answer": "happened",
		}},
		{"it did not", "-busy 1", 0, "2", map[string]string{
			"outcome": "success", "reason": "succeeded", "attempt_count": "2", "attempts.0.class": "ambiguous", "reconciled.answer": "did_not", "budgets.0.name": "registry", "budgets.0.granted": "1",
		}},
		{"it did not, then it did", "-busy 1 -lose 1", 0, "2", map[string]string{
			"outcome": "success", "reason": "reconciled", "attempt_count": "2", "reconciled.answer": "happened", "reconciled.after": "2",
		}},
		{"nobody can tell", "-lose 1 -blind", 52, "1", map[string]string{
			"outcome": "hard_failure", "reason": "ambiguous", "attempt_count": "1", "reconciled.answer": "unclear", "budgets.0.granted": "0",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, program, strings.Fields(tc.flags)...)
			_, errs, status := example(t, "publish-with-reconcile/publish.sh", address, "demo-1.0")
			if status != tc.status {
				t.Errorf("publish.sh exits with %d, want %d\n%s", status, tc.status, errs)
			}
			outcomeHas(t, exampleOutcome(t, errs), tc.want)
			if got := body(t, address+"/posts"); got != tc.posts {
				t.Errorf("the registry saw %s posts, want %s", got, tc.posts)
			}
		})
	}
}

// serve starts a server that prints its address, and ends it with the test.
func serve(t *testing.T, program string, flags ...string) (address string) {
	t.Helper()
	c := exec.Command(program, flags...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	address, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

func body(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
