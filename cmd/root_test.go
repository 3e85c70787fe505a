package cmd

import (
	"os"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// TestRooms holds the subcommands that are built on demand to what they are
// called by: each is reachable by its name, alone, and all of them where others
// are spoken of.
func TestRooms(t *testing.T) {
	var status int
	env := Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	var all []string
	for _, r := range rooms() {
		all = append(all, r.name)
		root := newRoot(env, &status, r.name)
		c, _, err := root.Find([]string{r.name})
		if err != nil || c.Name() != r.name {
			t.Errorf("Find(%s) = %s, %v, want it", r.name, c.Name(), err)
		}
		if n := len(root.Commands()); r.name != "completion" && n != 1 {
			t.Errorf("newRoot(%s) has %d commands, want no other", r.name, n)
		}
	}
	for _, word := range []string{"help", "completion", "__complete", "__completeNoDesc"} {
		root := newRoot(env, &status, word)
		for _, name := range all {
			if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name }) {
				t.Errorf("newRoot(%s) lacks %s", word, name)
			}
		}
	}
}

func TestRoute(t *testing.T) {
	tests := []struct{ args, want []string }{
		{nil, []string{"run"}},
		{[]string{"ls"}, []string{"run", "ls"}},
		{[]string{"--", "budget"}, []string{"run", "--", "budget"}},
		{[]string{"-n", "2", "budget"}, []string{"run", "-n", "2", "budget"}},
		{[]string{"budget", "list"}, []string{"budget", "list"}},
		{[]string{"help"}, []string{"help"}},
		{[]string{"--help"}, []string{"run", "--help"}},
		{[]string{"__complete", ""}, []string{"__complete", ""}},
		{[]string{"__complete", "-"}, []string{"__complete", "run", "-"}},
		{[]string{"__complete", "ls", ""}, []string{"__complete", "run", "ls", ""}},
		{[]string{"__complete", "budget", ""}, []string{"__complete", "budget", ""}},
	}
	for _, tt := range tests {
		if got := route(tt.args); !slices.Equal(got, tt.want) {
			t.Errorf("route(%q) = %q, want %q", tt.args, got, tt.want)
		}
	}
}
