package cmd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The examples that some service reads: its part is played here, and what it
// would run is run, or planned where it names what no test can have.

func exampleFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../examples", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// job runs a shell's command in dir, which holds what the command names, as a
// service does that stops at the first failure.
func job(t *testing.T, dir, script string, environ ...string) (said string, status int) {
	t.Helper()
	c := exec.Command("sh", "-e", "-c", script)
	c.Dir, c.Env = dir, surroundings(dir, environ...)
	out, _ := c.CombinedOutput()
	return string(out), c.ProcessState.ExitCode()
}

func program(t *testing.T, path, script string) {
	t.Helper()
	writeFile(t, path, []byte("#!/bin/sh\n"+script+"\n"))
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// Each entry of the crontab: silent when all is well, and when a retry saved it;
// output and outcome when somebody has to look.
func TestExampleCrontab(t *testing.T) {
	t.Parallel()
	var environ, jobs []string
	for line := range strings.Lines(exampleFile(t, "cron/crontab")) {
		line = strings.TrimSpace(line)
		switch m := regexp.MustCompile(`^(?:\S+\s+){5}(retryx .* -- )(/usr/local/bin/\S+)$`).FindStringSubmatch(line); {
		case m != nil:
			jobs = append(jobs, m[1]+"./job")
		case strings.Contains(line, "=") && line[0] != '#':
			environ = append(environ, line)
		}
	}
	if len(jobs) != 2 {
		t.Fatalf("the crontab has jobs %q, want two of retryx", jobs)
	}
	for _, entry := range jobs {
		dir := t.TempDir()
		for _, tt := range []struct {
			script, want string
			status       int
		}{
			{"echo working; echo warning >&2", "", 0},
			{"echo working; echo reset by peer >&2; test $RETRYX_ATTEMPT = 2", "", 0},
			{"echo working; echo permission denied >&2; exit 3", "permission denied\n", 3},
		} {
			program(t, filepath.Join(dir, "job"), tt.script)
			said, status := job(t, dir, entry, environ...)
			if status != tt.status || (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) {
				t.Errorf("%s with %q says %q and exits with %d, want %q and %d", entry, tt.script, said, status, tt.want, tt.status)
			}
		}
	}
}

// The steps of the workflow, one after the other: annotations, a summary of the
// retries and a report.
func TestExampleGitHubActions(t *testing.T) {
	t.Parallel()
	need(t, "make")
	var workflow struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct{ Name, Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(exampleFile(t, "github-actions/retryx.yml")), &workflow); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program(t, filepath.Join(dir, "scripts/fetch-fixtures.sh"), "test $RETRYX_ATTEMPT = 2 || { echo connection reset by peer >&2; exit 1; }")
	writeFile(t, filepath.Join(dir, "Makefile"), []byte("integration:\n\t@echo tested\n"))
	environ := []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary")}
	var said []string
	for name, value := range workflow.Jobs["integration"].Env {
		environ = append(environ, name+"="+regexp.MustCompile(`\$\{\{[^}]*\}\}`).ReplaceAllString(value, "17"))
	}
	for _, step := range workflow.Jobs["integration"].Steps {
		if step.Run == "" {
			continue
		}
		out, status := job(t, dir, step.Run, environ...)
		if status != 0 {
			t.Errorf("step %s exits with %d\n%s", step.Name, status, out)
		}
		said = append(said, out)
	}
	if len(said) != 3 || !strings.Contains(said[0], "\n::warning title=retryx") || strings.Contains(said[1], "::") {
		t.Errorf("the steps say %q, want a warning of the first alone", said)
	}
	summary, _ := os.ReadFile(filepath.Join(dir, "summary"))
	for _, want := range []string{"fetch-fixtures.sh", "succeeded", "17-17", "completed"} {
		if !strings.Contains(string(summary), want) {
			t.Errorf("the summary does not hold %q:\n%s", want, summary)
		}
	}
}

func TestExampleGitLab(t *testing.T) {
	t.Parallel()
	var jobs map[string]struct {
		Script    []string
		Variables map[string]string
	}
	if err := yaml.Unmarshal([]byte(exampleFile(t, "gitlab-ci/.gitlab-ci.yml")), &jobs); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program(t, filepath.Join(dir, "scripts/push-image.sh"), "echo run $RETRYX_RUN_ID >> runs; exit 3")
	out, status := job(t, dir, strings.Join(jobs["integration"].Script, "\n"), "GITLAB_CI=true", "CI_PIPELINE_ID=17", "RETRYX_RUN_ID=17", "RETRYX_MAX_ATTEMPTS=2")
	runs, _ := os.ReadFile(filepath.Join(dir, "runs"))
	if status != 3 || string(runs) != "run 17\nrun 17\n" || strings.Contains(out, "::") {
		t.Errorf("the job exits with %d after %q, want 3 after two attempts, and plain lines\n%s", status, runs, out)
	}
	if got := jobs["integration"].Variables["RETRYX_RUN_ID"]; got != "$CI_PIPELINE_ID" {
		t.Errorf("RETRYX_RUN_ID = %q, want the pipeline's id", got)
	}
}

// The unit is one for systemd, and its command is understood.
func TestExampleSystemd(t *testing.T) {
	unit := exampleFile(t, "systemd/mirror.service")
	m := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(.*)$`).FindStringSubmatch(unit)
	if m == nil || understood(t, m[1]) != 1 {
		t.Errorf("the unit starts %q, want retryx", m)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze")
	}
	path := filepath.Join(t.TempDir(), "mirror.service")
	writeFile(t, path, []byte(strings.ReplaceAll(unit, "ExecStart=/usr/bin/retryx", "ExecStart=/bin/sh"))) // it must exist
	if out, err := exec.Command("systemd-analyze", "verify", path).CombinedOutput(); err != nil || strings.Contains(string(out), "mirror.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// What the image starts is an init, and then retryx with a command that is
// understood.
func TestExampleDockerfile(t *testing.T) {
	var argv []string
	for _, name := range []string{"ENTRYPOINT", "CMD"} {
		m := regexp.MustCompile(`(?m)^` + name + ` (\[.*\])$`).FindStringSubmatch(exampleFile(t, "docker/Dockerfile"))
		var words []string
		if m == nil || json.Unmarshal([]byte(m[1]), &words) != nil {
			t.Fatalf("%s is %q, want a list of words", name, m)
		}
		argv = append(argv, words...)
	}
	command, ok := strings.CutPrefix(strings.Join(argv, " "), "tini -- ")
	if !ok || understood(t, command) != 1 {
		t.Errorf("the image starts %q, want retryx below tini", argv)
	}
}
