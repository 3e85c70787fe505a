package cmd_test

import (
	"os"
	"path/filepath"
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
