package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// A scenario is one way of retrying. Each call runs Argv with the URL appended;
// without an Argv all calls are jobs of one GNU parallel.
type scenario struct {
	Name   string
	Title  string
	Layers int
	Budget bool
	Argv   []string
	Needs  string // what must be installed
}

// budgetName is the one budget of the scenarios that have one.
const budgetName = "service"

// attempts is what every scenario is told, but for the endless loop: the default
// of retryx, and what the others are given as their limit.
const attempts = 4

// scenarios returns all of them. Delays are one second where a tool takes a
// delay; retryx has its defaults.
func scenarios() []scenario {
	return []scenario{
		{Name: "loop", Title: "sh, 4 times", Layers: 1, Argv: []string{"sh", "./loop"}},
		{Name: "until", Title: "sh, until it works", Layers: 1, Argv: []string{"sh", "./until"}},
		{Name: "retry", Title: "Debian's retry", Layers: 1, Needs: "retry", Argv: []string{"retry", "--times=4", "--delay=1", "--", "probe"}},
		{Name: "parallel", Title: "GNU parallel --retries", Layers: 1, Needs: "parallel"},
		{Name: "no-budget", Title: "retryx --no-budget", Layers: 1, Argv: []string{"retryx", "--no-budget", "--", "probe"}},
		{Name: "budget", Title: "retryx", Layers: 1, Budget: true, Argv: []string{"retryx", "-b", budgetName, "--", "probe"}},
		{Name: "loop3", Title: "sh, 4 times", Layers: 3, Argv: []string{"sh", "./loop3"}},
		{
			Name: "no-budget3", Title: "retryx --no-budget", Layers: 3,
			Argv: []string{"retryx", "--no-budget", "--", "retryx", "--no-budget", "--", "retryx", "--no-budget", "--", "probe"},
		},
		{
			Name: "budget3", Title: "retryx", Layers: 3, Budget: true,
			Argv: []string{"retryx", "-b", budgetName, "--", "retryx", "--", "retryx", "--", "probe"},
		},
	}
}

// scripts are the loops that people write.
func scripts(dir string) error {
	loop := func(body string) string {
		return "for i in 1 2 3 4; do " + body + ` "$1" && exit 0; sleep 1; done; exit 1` + "\n"
	}
	for name, text := range map[string]string{
		"loop":  loop("probe"),
		"loop2": loop("sh ./loop"),
		"loop3": loop("sh ./loop2"),
		"until": `until probe "$1"; do sleep 1; done` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write script: %w", err)
		}
	}
	return nil
}
