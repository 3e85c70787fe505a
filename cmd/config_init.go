package cmd

// retryx config init: a file of comments, which changes nothing until a line is
// uncommented. Lines of prose start with "# ", settings with "#".

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

const configTemplateHead = `# configuration of retryx. "retryx config check" checks it, "retryx config show"
# prints what is in force and where it came from.
#
# Keys are the long names of flags with _ for -. RETRYX_ variables and flags
# stand above this file. Uncomment what you want to change.
`

const configTemplateTail = `
# profiles: sets of the same keys, chosen by --profile or RETRYX_PROFILE
#profiles:
#  patient:
#    max_attempts: 60
#    multiplier: 1
#    no_budget: true
#  ci:
#    max_elapsed: 10m
#    budget: [artifacts]

# budgets by name: capacity in tokens, refill as tokens per s, m or h, and the
# bonus in tokens that a success brings
#budgets:
#  artifacts:
#    capacity: 10
#    refill: 6/m
#    bonus: 0.1

# rules of your own, as for --rule; they stand above the built-in ones
#rules:
#  - "transient: exit=75"
#  - "permanent: stderr=license (expired|revoked)"
`

func newConfigInit(o *configOptions) *cobra.Command {
	var force, show bool
	c := &cobra.Command{
		Use:   "init",
		Short: "write a commented configuration file for you",
		Example: `  retryx config init
  retryx config init --print`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if show {
				_, err := io.WriteString(c.OutOrStdout(), configTemplate())
				return err
			}
			path := systemPlaces(o.env.variables()).user()
			if path == "" {
				return errors.New("write configuration: no home directory of your own; use --print and put the file where --config finds it")
			}
			if err := writeConfiguration(path, force); err != nil {
				return err
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), path)
			return err
		},
	}
	c.Flags().BoolVar(&force, "force", false, "overwrite the file that is there")
	c.Flags().BoolVar(&show, "print", false, "print the file instead of writing it")
	return c
}

// writeConfiguration makes the file, and its directories, for the user alone.
func writeConfiguration(path string, force bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC // in place: the path may be a link into a user's repository
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write configuration: %s exists; overwrite it with --force, or see a fresh one with --print", path)
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	_, err = io.WriteString(f, configTemplate())
	if err = errors.Join(err, f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

func configTemplate() string {
	var b strings.Builder
	b.WriteString(configTemplateHead)
	for _, g := range groups() {
		heading := "\n# --- " + g + "\n"
		for _, s := range table() {
			if s.group != g || s.noConfig {
				continue
			}
			fmt.Fprintf(&b, "%s# %s\n#%s: %s\n", heading, s.usage, s.key(), s.example())
			heading = ""
		}
	}
	b.WriteString(configTemplateTail)
	return b.String()
}

// example is a valid value of the setting as YAML: its default, if it has one.
func (s setting) example() string {
	switch {
	case s.kind == toggle:
		return "true"
	case s.def != "":
		return s.def
	case s.choices != nil:
		return s.choices[0]
	}
	example := settingExamples()[s.name]
	switch {
	case s.kind == list:
		return "[" + strconv.Quote(example) + "]"
	case strings.ContainsAny(example, ": #"):
		return strconv.Quote(example)
	}
	return example
}

// settingExamples has a value for every setting without default or choices.
func settingExamples() map[string]string {
	return map[string]string{
		"max-elapsed": "10m", "deadline": "30m", "timeout": "1m",
		"retry-exit": "75,100-110", "stop-exit": "2",
		"retry-stderr": "lock is held", "stop-stderr": "license expired",
		"retry-stdout": "status: pending", "stop-stdout": "status: rejected",
		"budget": "artifacts", "budget-capacity": "20", "budget-refill": "6/m", "budget-bonus": "0.1", "run-budget": "12",
		"budget-store": "redis://cache.internal:6379/0", "state-dir": "/var/lib/retryx",
		"cancel-file": "/run/retryx/cancel",
		"reconcile":   "./was-it-published.sh", "correct": "./correct.sh", "before-retry": "./refresh-token.sh", "on-outcome": "./notify.sh",
		"redact": "internal-[0-9]+",
	}
}
