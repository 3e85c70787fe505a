package cmd_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The commands that a new user copies, from a HOME with nothing in it.

// fromHere runs a line of sh with the program in PATH and an empty HOME.
func fromHere(t *testing.T, line string) (stdout, stderr string, status int) {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command("sh", "-c", line)
	c.Dir, c.Env = dir, append(clientEnv(dir), "RETRYX_DELAY=1ms", "url=http://127.0.0.1:9/")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// aRun is a call of retryx with flags, or with -- at once: one that a plan can be
// made of.
var aRun = regexp.MustCompile(`\bretryx -`)

// shLines returns the lines of the sh blocks of a Markdown text that call retryx.
func shLines(text string) []string {
	var lines []string
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == "```sh"
		case in && strings.Contains(line, "retryx ") && !strings.HasPrefix(line, "#"):
			lines = append(lines, line)
		}
	}
	return lines
}

// helpLines returns the examples of --help.
func helpLines(t *testing.T) []string {
	t.Helper()
	help, _, _ := fromHere(t, "retryx --help")
	_, rest, _ := strings.Cut(help, "examples:\n")
	rest, _, ok := strings.Cut(rest, "\n\n")
	if !ok {
		t.Fatalf("no examples in --help:\n%s", help)
	}
	var lines []string
	for line := range strings.Lines(rest) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// Every call in the README and in --help is understood. A plan of it is made in
// its place, as the commands need networks and files that a test has not.
func TestPrintedCommandsAreUnderstood(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := shLines(string(readme))
	if len(lines) < 5 {
		t.Fatalf("the README has %d lines that call retryx, want some more: %q", len(lines), lines)
	}
	planned := 0
	for _, line := range append(lines, helpLines(t)...) {
		if !aRun.MatchString(line) && !strings.Contains(line, "retryx plan") {
			continue
		}
		planned++
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := fromHere(t, aRun.ReplaceAllString(line, "retryx plan -"))
			if status != 0 || stderr != "" {
				t.Errorf("a plan of %q ends with %d and says %q, want 0 and nothing", line, status, stderr)
			}
			if stdout == "" && !strings.Contains(line, "$(") {
				t.Errorf("a plan of %q is empty", line)
			}
		})
	}
	if planned < 8 {
		t.Errorf("%d lines planned, want all of the README and of --help", planned)
	}
}

// The transcript on the README's first screen is what is seen.
func TestTranscript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on this machine")
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, ok := strings.Cut(string(readme), "```console\n$ ")
	command, _, ok2 := strings.Cut(shown, "\n")
	if !ok || !ok2 || !strings.HasPrefix(command, "retryx -- curl ") {
		t.Skipf("the README begins with %q and not with curl", command)
	}
	_, stderr, status := fromHere(t, command)
	if status != 7 {
		t.Errorf("%s ends with %d, want 7", command, status)
	}
	for _, want := range []string{"curl: (7) Failed to connect", "retryx: attempt 1 of 4 failed: curl: (7)", "; transient; retrying in ", "; budget curl has 19 of 20 tokens"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%s says\n%s\nwant %q in it", command, stderr, want)
		}
	}
}
