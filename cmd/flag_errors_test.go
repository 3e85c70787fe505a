package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestEmptyFlagsAreRefused gives an empty value to every flag of every subcommand
// that wants one. "retryx report --run-id "$ID"" once summed up the newest run
// when ID was not set.
func TestEmptyFlagsAreRefused(t *testing.T) {
	dir := t.TempDir()
	var status int
	root := newRoot(Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, &status, "help")
	eachCommand(root, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, ofRun := f.Value.(flagValue); ofRun || f.NoOptDefVal != "" {
				return
			}
			args := slices.Concat(strings.Fields(c.CommandPath())[1:], []string{"--" + f.Name, ""})
			stderr, err := os.Create(filepath.Join(dir, "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer stderr.Close()
			got := execute(Env{Args: args, Stdin: os.Stdin, Stdout: stderr, Stderr: stderr, Environ: []string{"HOME=" + dir}})
			text, err := os.ReadFile(stderr.Name())
			if err != nil {
				t.Fatal(err)
			}
			if got != exitOwn || !strings.Contains(string(text), "--"+f.Name) {
				t.Errorf("retryx %q = %d with %q, want %d and a word on the flag", args, got, text, exitOwn)
			}
		})
	})
}

// eachCommand visits the commands that do something.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			eachCommand(sub, visit)
		} else {
			visit(sub)
		}
	}
}
