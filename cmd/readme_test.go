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

// The transcript on the README's first screen is what is seen: apart from waits
// and from what is cut out of the JSON line, word for word.
func TestTranscript(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```console\n$ ")
	shown, _, _ = strings.Cut(shown, "```")
	command, output, ok := strings.Cut(shown, "\n")
	arguments, isRun := strings.CutPrefix(command, "go run . ")
	if !ok || !isRun {
		t.Fatalf("the README begins with %q, want a run from the checkout", command)
	}
	stdout, stderr, status := example(t, "sh", "-c", "cd .. && exec retryx "+arguments)
	if status != 0 || stdout != "ready\n" {
		t.Fatalf("%s ends with %d and prints %q, want 0 and ready\n%s", command, status, stdout, stderr)
	}
	wait := regexp.MustCompile(`retrying in [0-9.]+m?s`)
	seen := wait.ReplaceAllString(stderr, "retrying in D") + stdout
	for line := range strings.Lines(wait.ReplaceAllString(output, "retrying in D")) {
		for part := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), ",…") {
			if !strings.Contains(seen, strings.TrimSuffix(part, "}")) {
				t.Errorf("%s does not say %q\n%s", command, part, seen)
			}
		}
	}
}
