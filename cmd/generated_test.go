package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/cmd"
)

// TestGeneratedFiles holds the completions and the manual page in the tree to
// what the program prints. UPDATE_GENERATED=1 writes them anew.
func TestGeneratedFiles(t *testing.T) {
	t.Parallel()
	for file, args := range map[string][]string{
		"completions/retryx.bash": {"completion", "bash"},
		"completions/_retryx":     {"completion", "zsh"},
		"completions/retryx.fish": {"completion", "fish"},
		"completions/retryx.ps1":  {"completion", "powershell"},
		"docs/retryx.1":           {"man"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got := printed(t, args...)
			path := filepath.Join("..", file)
			if os.Getenv("UPDATE_GENERATED") != "" {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s is stale; run make generate (-file +program):\n%s", file, diff)
			}
		})
	}
}

// printed runs a subcommand in this process and returns its stdout.
func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if got := cmd.Main(cmd.Env{Args: args, Stdin: os.Stdin, Stdout: out, Stderr: os.Stderr}); got != 0 {
		t.Fatalf("retryx %v = %d, want 0", args, got)
	}
	data, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The manual is sound for mandoc, and has the sections that people go to.
func TestManualIsSound(t *testing.T) {
	t.Parallel()
	text := string(printed(t, "man"))
	for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "TIME", "SIGNALS", "OUTCOME", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"} {
		if !strings.Contains(text, "\n.SH "+section+"\n") {
			t.Errorf("the manual has no section %s", section)
		}
	}
	lint := exec.Command(wantShell(t, "mandoc"), "-T", "lint", "-W", "style")
	lint.Stdin = strings.NewReader(text)
	out, _ := lint.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// A date would be that of the build, and builds are to be reproducible.
		if !strings.Contains(line, "missing date") {
			t.Errorf("mandoc: %s", line)
		}
	}
}
