package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stop is a command that fails in a way that is not retried.
type stop struct {
	name   string
	flags  []string
	script string
	want   string // the class
}

func stops() []stop {
	return []stop{
		{"permanent", nil, `echo "error 404: not found" >&2; exit 3`, "permanent"},
		{"config", nil, `echo "permission denied" >&2; exit 4`, "config"},
		{"correctable", nil, `echo "invalid JSON" >&2; exit 5`, "correctable"},
		{"unexpected status", nil, `exit 139`, "unexpected"},
		{"signal", nil, `kill -SEGV $$`, "unexpected"},
		{"unknown, strictly", []string{"--strict"}, `echo odd >&2; exit 6`, "unknown"},
		{"unknown, of a narrow set", []string{"--retry-on", "permanent"}, `echo odd >&2; exit 6`, "unknown"},
		{"killed, strictly", []string{"--strict"}, `kill -KILL $$`, "unexpected"},
		{"ambiguous by a hint", nil, `echo class=ambiguous >> "$RETRYX_HINT"; exit 9`, "ambiguous"},
		{"write that broke", []string{"--effect", "write"}, `echo "connection reset by peer" >&2; exit 7`, "ambiguous"},
		{"write that hung", []string{"--effect", "write", "-t", shortLimit}, `exec sleep 9`, "ambiguous"},
		{"hint", nil, `echo class=config >> "$RETRYX_HINT"; exit 8`, "config"},
		{"failure with status 0", nil, `echo "NOAUTH Authentication required."`, "config"},
	}
}

// TestStopsSayHowToOverruleThem takes the advice that a stop gives and wants the
// command to be retried, and one that succeeds to be left alone.
func TestStopsSayHowToOverruleThem(t *testing.T) {
	t.Parallel()
	advice := regexp.MustCompile(`retryx: stopped: .*(?:to retry it anyway: |does no harm: )(--[a-z-]+)(?: '([^']+)'| ([\w,]+))?`)
	for _, tc := range stops() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			run := func(script string, more ...string) (ended, string) {
				dir := t.TempDir()
				program := filepath.Join(dir, "redis-cli") // of which the rules know that it fails with status 0
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				flags := append([]string{"-n", "2", "--delay", "1ms", "--kill-after", "1s"}, tc.flags...)
				return retryxRun(t, dir, append(append(flags, more...), "--", program, "get", "k"))
			}
			got, output := run(tc.script)
			if got != stopped(tc.want) {
				t.Fatalf("retryx -- %q = %+v, want %+v; it said:\n%s", tc.script, got, stopped(tc.want), output)
			}
			said := advice.FindStringSubmatch(output)
			if said == nil {
				t.Fatalf("retryx -- %q gives no advice; it said:\n%s", tc.script, output)
			}
			flags := slices.DeleteFunc(said[1:], func(s string) bool { return s == "" })
			want := ended{"retryable_failure", "attempts_exhausted", 2}
			if got, output := run(tc.script, flags...); got != want {
				t.Errorf("retryx %q -- %q = %+v, want %+v; it said:\n%s", flags, tc.script, got, want, output)
			}
			flags = append(flags, "-t", "1m") // a success may take its time
			if got, output := run("exit 0", flags...); got != recovered(1) {
				t.Errorf("retryx %q of a success = %+v, want %+v; it said:\n%s", flags, got, recovered(1), output)
			}
		})
	}
}

// TestVerboseNamesTheRule wants a retry's rule and its reason under -v.
func TestVerboseNamesTheRule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	got, output := retryxRun(t, dir, []string{"-v", "-n", "2", "--delay", "1ms", "--", "sh", "-c", `echo "HTTP error 503" >&2; exit 1`})
	if want := (ended{"retryable_failure", "attempts_exhausted", 2}); got != want {
		t.Errorf("retryx -v = %+v, want %+v", got, want)
	}
	for _, want := range []string{"transient (http/server-error); retrying", "the server failed"} {
		if !strings.Contains(output, want) {
			t.Errorf("retryx -v does not say %q; it said:\n%s", want, output)
		}
	}
}
