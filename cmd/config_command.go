package cmd

// retryx config: show what is in force and where it came from, check files,
// list where they may stand. Starting one is in config_init.go.

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configOptions is what the subcommands of config share.
type configOptions struct {
	env     Env
	config  string // --config
	profile string // --profile
}

func newConfigCommand(env Env) *cobra.Command {
	o := &configOptions{env: env}
	c := &cobra.Command{
		Use:   "config",
		Short: "show, check and start a configuration",
		Long: `Configuration files are YAML. Later ones stand above earlier ones:
  /etc/retryx/config.yaml
  $XDG_CONFIG_HOME/retryx/config.yaml, else ~/.config/retryx/config.yaml
  the file of --config or RETRYX_CONFIG
  the profile of --profile or RETRYX_PROFILE, from any of these
Environment variables and flags stand above all of them. Of no_budget and budget,
and of strict and retry_on, the one that stands higher counts.`,
		Example: `  retryx config init
  retryx config check
  retryx config show --profile ci`,
		Args: wantSubcommand,
		RunE: func(c *cobra.Command, _ []string) error {
			return &usageError{[]string{"config: want " + orList(subcommandNames(c))}}
		},
	}
	c.AddCommand(newConfigShow(o), newConfigCheck(o), newConfigInit(o), newConfigPath(o))
	return c
}

// wantSubcommand refuses a word that is no subcommand; cobra would print the
// help and succeed.
func wantSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := subcommandNames(c)
	return &usageError{[]string{fmt.Sprintf("%s: want %s, not %q%s", c.Name(), orList(names), args[0], didYouMean(args[0], names))}}
}

func subcommandNames(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

func (o *configOptions) addConfig(c *cobra.Command) {
	c.Flags().StringVar(&o.config, "config", "", "read this `file` too")
}

func (o *configOptions) addProfile(c *cobra.Command) {
	c.Flags().StringVar(&o.profile, "profile", "", "with the profile of this `name`")
	_ = c.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		conf, _ := loadConfiguration(o.env.variables(), o.explicit(), "")
		return conf.profiles, cobra.ShellCompDirectiveNoFileComp
	})
}

// explicit is the file that was named, if any.
func (o *configOptions) explicit() string {
	return cmp.Or(o.config, o.env.variables()["RETRYX_CONFIG"])
}

// resolve reads everything that a run without further flags would read, with a
// profile.
func (o *configOptions) resolve(profile string) (*resolver, *settings, error) {
	flags := pflag.NewFlagSet("config", pflag.ContinueOnError)
	define(flags, table())
	for name, v := range map[string]string{"config": o.config, "profile": profile} {
		if v == "" {
			continue
		}
		if err := flags.Set(name, v); err != nil {
			return nil, nil, fmt.Errorf("set flag --%s: %w", name, err)
		}
	}
	return resolveSettings(o.env.variables(), flags, time.Now())
}

func newConfigCheck(o *configOptions) *cobra.Command {
	c := &cobra.Command{
		Use:   "check [file...]",
		Short: "name every problem of the configuration, or of these files",
		Example: `  retryx config check
  retryx config check "$HOME/.config/retryx/config.yaml"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			problems := emptyFlags(c.Flags())
			if len(args) > 0 {
				return checkFiles(c.OutOrStdout(), c.ErrOrStderr(), args, problems)
			}
			return o.check(c.OutOrStdout(), c.ErrOrStderr(), problems)
		},
	}
	o.addConfig(c)
	o.addProfile(c)
	return c
}

// check checks what a run would read, the variables of the environment
// included, with the chosen profile and with every other one.
// Its error also names the problems that the caller has found already.
func (o *configOptions) check(out, diag io.Writer, problems []string) error {
	r, _, err := o.resolve(o.profile)
	if !collect(&problems, err) {
		return err
	}
	warn(diag, r.conf.warnings)
	for _, profile := range r.conf.profiles {
		var more []string
		if _, _, err := o.resolve(profile); !collect(&more, err) {
			return err
		}
		for _, text := range more {
			if !slices.Contains(problems, text) {
				problems = append(problems, fmt.Sprintf("%s (with profile %q)", text, profile))
			}
		}
	}
	if len(problems) > 0 {
		return &usageError{problems}
	}
	return approve(out, r.conf.files)
}

func approve(out io.Writer, files []string) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(out, `no configuration file; "retryx config init" starts one`)
		return err
	}
	for _, f := range files {
		if _, err := fmt.Fprintf(out, "%s: ok\n", f); err != nil {
			return err
		}
	}
	return nil
}

// checkFiles checks files one by one, without what stands below or above them.
// Its error also names the problems that the caller has found already.
func checkFiles(out, diag io.Writer, paths, problems []string) error {
	keys := settingsByKey()
	for _, path := range paths {
		content, warning, err := configPlace{path: path, named: true}.read(os.Geteuid())
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if warning != "" {
			warn(diag, []string{warning})
		}
		_, bad := parseConfigFile(path, content, keys)
		problems = append(problems, bad...)
		if len(bad) > 0 {
			continue
		}
		if err := approve(out, []string{path}); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return &usageError{problems}
	}
	return nil
}

func warn(w io.Writer, warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(w, "retryx: warning: %s\n", text)
	}
}

func newConfigPath(o *configOptions) *cobra.Command {
	c := &cobra.Command{
		Use:     "path",
		Short:   "list where configuration files may stand, the strongest last",
		Example: "  retryx config path",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if problems := emptyFlags(c.Flags()); len(problems) > 0 {
				return &usageError{problems}
			}
			places := systemPlaces(o.env.variables())
			for _, place := range places.list(o.explicit()) {
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", place.path, place.state(places.uid)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	o.addConfig(c)
	return c
}
