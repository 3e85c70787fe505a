package cmd

// retryx config show: every effective value and where it came from. Secrets,
// such as the password in the address of a store, are hidden.

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

const configShowSchema = "retryx.config-show/v1"

// shownConfiguration is the JSON of config show.
type shownConfiguration struct {
	Schema   string         `json:"schema"`
	Files    []string       `json:"files"`
	Profile  *string        `json:"profile"`
	Settings []shownSetting `json:"settings"`
	Budgets  []shownBudget  `json:"budgets"`
	Rules    []shownRule    `json:"rules"`
	Warnings []string       `json:"warnings"`
}

// shownSetting is one value in force: text, a list of texts, or a bool.
type shownSetting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // default, config, environment or flag
	Where  string `json:"where"`  // file:line, a variable or a flag; empty for a default
}

// shownBudget is a budget's parameters; null is what no file says.
type shownBudget struct {
	Name     string  `json:"name"`
	Capacity *int    `json:"capacity"`
	Refill   *string `json:"refill"`
	Bonus    *string `json:"bonus"`
	Where    string  `json:"where"`
}

type shownRule struct {
	Rule  string `json:"rule"`
	Where string `json:"where"`
}

func newConfigShow(o *configOptions) *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "print every effective value and where it came from",
		Example: `  retryx config show
  retryx config show --profile ci`,
		Args: cobra.NoArgs,
	}
	o.addConfig(c)
	o.addProfile(c)
	format := addFormat(c, "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		shown, err := o.show(append(emptyFlags(c.Flags()), format.problems()...))
		if err != nil {
			return err
		}
		warn(c.ErrOrStderr(), shown.Warnings)
		if format.text == "json" {
			return printJSON(c.OutOrStdout(), shown)
		}
		return shown.text(c.OutOrStdout())
	}
	return c
}

// show reads what is in force. Its error also names the problems that the caller
// has found already.
func (o *configOptions) show(problems []string) (*shownConfiguration, error) {
	r, s, err := o.resolve(o.profile)
	if !collect(&problems, err) {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, &usageError{problems}
	}
	hide := newRedactor(o.env.Environ, nil, s.redact).script // hooks are commands
	shown := &shownConfiguration{
		Schema: configShowSchema, Files: append([]string{}, r.conf.files...), Warnings: append([]string{}, r.conf.warnings...),
		Budgets: []shownBudget{}, Rules: []shownRule{},
	}
	if p := r.text("profile"); p != "" {
		shown.Profile = &p
	}
	for _, row := range table() {
		if !row.noConfig || r.origin(row.name).given() {
			shown.Settings = append(shown.Settings, r.shown(row, hide))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.conf.budgets)) {
		shown.Budgets = append(shown.Budgets, showBudget(name, r.conf.budgets[name]))
	}
	for _, rule := range r.conf.rules {
		shown.Rules = append(shown.Rules, shownRule{hide(rule.text), rule.where})
	}
	return shown, nil
}

func (r *resolver) shown(row setting, hide func(string) string) shownSetting {
	out := shownSetting{Key: row.key()}
	switch by, from := r.source(row.name); from.kind {
	case fromDefault:
		out.Origin = "default"
	case fromConfig:
		out.Origin, out.Where = "config", r.conf.lines[r.row(by).key()]
	case fromEnv:
		out.Origin, out.Where = "environment", from.where
	case fromFlag:
		out.Origin, out.Where = "flag", from.where
	}
	switch row.kind {
	case toggle:
		out.Value = r.toggle(row.name)
	case list:
		values := []string{}
		for _, v := range r.list(row.name) {
			values = append(values, hide(v))
		}
		out.Value = values
	case text:
		out.Value = hide(r.text(row.name))
	}
	return out
}

func showBudget(name string, b budgetConfig) shownBudget {
	out := shownBudget{Name: name, Capacity: b.Capacity, Where: b.where}
	if b.Refill != nil {
		v := b.Refill.String()
		out.Refill = &v
	}
	if b.Bonus != nil {
		v := b.Bonus.String()
		out.Bonus = &v
	}
	return out
}

func (s *shownConfiguration) text(w io.Writer) error {
	var b strings.Builder
	for _, row := range s.Settings {
		where := row.Where
		if where == "" {
			where = row.Origin
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", row.Key, shownValue(row.Value), where)
	}
	for _, x := range s.Budgets {
		fmt.Fprintf(&b, "budgets.%s\t%s\t%s\n", x.Name, x.parameters(), x.Where)
	}
	for _, r := range s.Rules {
		fmt.Fprintf(&b, "rules\t%s\t%s\n", shownValue(r.Rule), r.Where)
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(columns, b.String()); err != nil {
		return err
	}
	return columns.Flush()
}

func shownValue(v any) string {
	switch v := v.(type) {
	case []string:
		if len(v) > 0 {
			return fmt.Sprintf("%q", v)
		}
	case string:
		if strings.ContainsAny(v, "\n\t\v\f") { // would break the columns
			return fmt.Sprintf("%q", v)
		}
		if v != "" {
			return v
		}
	default:
		return fmt.Sprint(v)
	}
	return "-"
}

// parameters is what the files say about a budget, in the words of flags.
func (b shownBudget) parameters() string {
	var parts []string
	if b.Capacity != nil {
		parts = append(parts, fmt.Sprintf("capacity %d", *b.Capacity))
	}
	if b.Refill != nil {
		parts = append(parts, "refill "+*b.Refill)
	}
	if b.Bonus != nil {
		parts = append(parts, "bonus "+*b.Bonus)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
