package cmd_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// example runs a program of the examples folder as a new user would, with
// retryx in PATH, and returns its output and exit status.
func example(t *testing.T, argv ...string) (stdout, stderr string, status int) {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "retryx")); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = "../examples"
	c.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DELAY=1ms"}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func TestExampleMake(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make")
	}
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		want   []string
	}{
		{"all well", nil, 0, []string{": completed (succeeded); 6 attempts, 0 of them retries"}},
		{
			"one step cannot work",
			[]string{"PUBLISH=false"},
			75,
			[]string{": completed_with_unknowns (attempts_exhausted); 9 attempts, 3 of them retries", "publish  unknown", "notify   verified"},
		},
		{"a step is not there", []string{"BUILD=./nosuch"}, 1, []string{": failed (start_failed)", "build    failed"}},
		{
			"the run's budget is shared by all steps",
			[]string{"FETCH=false", "BUILD=false", "TEST=false", "PACKAGE=false", "PUBLISH=false", "NOTIFY=false"},
			75,
			[]string{"18 attempts, 12 of them retries"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out, errs, status := example(t, append([]string{"make/run.sh"}, tc.args...)...)
			if status != tc.status {
				t.Errorf("run.sh %v exits with %d, want %d\n%s%s", tc.args, status, tc.status, out, errs)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("run.sh %v does not print %q:\n%s", tc.args, want, out)
				}
			}
		})
	}
}

func TestExampleShell(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	out, errs, status := example(t, "shell/sync.sh", "http://127.0.0.1:1/")
	if status != 7 || out != "" || !strings.Contains(errs, "sync: the service does not answer") {
		t.Errorf("sync.sh on a refused connection exits with %d, want 7\nstdout %q\nstderr %s", status, out, errs)
	}
	_, errs, status = example(t, "shell/sync.sh", "nosuchscheme://x")
	if status != 1 || !strings.Contains(errs, "sync: somebody has to look at this") {
		t.Errorf("sync.sh on a bad address exits with %d, want 1\n%s", status, errs)
	}
}

// TestExampleCron runs the commands of the crontab's pattern: silent when all is
// well, the command's output and one outcome when it is not.
func TestExampleCron(t *testing.T) {
	t.Parallel()
	cron := func(script string) (string, string, int) {
		return example(t, "env", "RETRYX_QUIET=1", "RETRYX_OUTCOME_ON=failure", "retryx", "--hold-output", "--delay", "1ms", "-n", "2", "--", "sh", "-c", script)
	}
	if out, errs, status := cron("echo working; echo warning >&2"); out+errs != "" || status != 0 {
		t.Errorf("a good run prints %q and %q and exits with %d, want silence and 0", out, errs, status)
	}
	if out, errs, status := cron("echo working; test $RETRYX_ATTEMPT = 2"); out+errs != "" || status != 0 {
		t.Errorf("a run that a retry saved prints %q and %q and exits with %d, want silence and 0", out, errs, status)
	}
	out, errs, status := cron("echo working; echo xyzzy >&2; exit 3")
	if status != 3 || strings.Count(out, "working") != 2 || strings.Count(errs, "xyzzy\n") != 2 || strings.Count(errs, "retryx.outcome/v1") != 1 {
		t.Errorf("a bad run exits with %d, want 3\nstdout %q\nstderr %q", status, out, errs)
	}
}
