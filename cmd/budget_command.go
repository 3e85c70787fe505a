package cmd

// retryx budget: list and show only look, write nothing and wait for nobody;
// set and reset are one locked decision each. A budget exists when it has a
// record or the configuration names it; a budget without a record is full.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retryx/retryx/budget"
)

func newBudgetCommand(env Env, status *int) *cobra.Command {
	c := &cobra.Command{
		Use:   "budget",
		Short: "show and set budgets",
		Long: `A budget is a bucket of tokens that all invocations naming it share. A retry
costs one token, a first attempt nothing. Tokens come back with time and with
successful runs; a run whose budget holds less than one token is not retried.`,
		Example: `  retryx budget list
  retryx budget set artifacts --capacity 10 --refill 6/m
  retryx budget show artifacts
  retryx budget reset artifacts`,
		Args: wantSubcommand,
		RunE: func(c *cobra.Command, _ []string) error {
			return &usageError{[]string{"budget: want " + orList(subcommandNames(c))}}
		},
	}
	c.AddCommand(newBudgetList(env, status), newBudgetShow(env), newBudgetSet(env), newBudgetReset(env))
	return c
}

func newBudgetList(env Env, status *int) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "list budgets", Example: "  retryx budget list --format json", Args: cobra.NoArgs,
	}
	flags, format := bankFlags(c), addFormat(c, "table", "json")
	c.RunE = func(*cobra.Command, []string) error {
		b, err := openBank(env, flags, format.problems())
		if err != nil {
			return err
		}
		accounts, err := b.all()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(accounts, func(a account) bool { return a.unreadable() }) {
			*status = 1
		}
		if format.text == "json" {
			return printJSON(env.Stdout, b.document(accounts))
		}
		return b.printTable(env.Stdout, accounts)
	}
	return c
}

func newBudgetShow(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "show NAME", Short: "show what a budget holds and what it allows",
		Example: "  retryx budget show artifacts", ValidArgsFunction: completeBudget(env),
	}
	flags, format := bankFlags(c), addFormat(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		name, problems := oneBudget(c, args)
		b, err := openBank(env, flags, append(problems, format.problems()...))
		if err != nil {
			return err
		}
		a, err := b.existing(name)
		if err != nil {
			return err
		}
		if format.text == "json" {
			doc := a.document()
			doc.Schema = budgetSchema
			return printJSON(env.Stdout, doc)
		}
		return printRows(env.Stdout, a.rows())
	}
	return c
}

func newBudgetSet(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "set NAME", Short: "change a budget's parameters, or make one",
		Long: `The time until now is settled at the old rate. New parameters never add tokens:
"retryx budget reset" fills the bucket. A budget that does not exist is made,
full. What the configuration says about a budget wins at the next run.`,
		Example:           "  retryx budget set artifacts --capacity 50 --refill 0.5/s --bonus 0.2",
		ValidArgsFunction: completeBudget(env),
	}
	flags := bankFlags(c)
	for _, p := range [][3]string{
		{"capacity", "N", "tokens that it can hold"},
		{"refill", "RATE", "tokens that come back, as 0.1/s, 6/m or 10/h"},
		{"bonus", "F", "tokens that a successful run brings, 0 to 1"},
	} {
		c.Flags().Var(&textValue{setting: &setting{unit: p[1]}}, p[0], p[2])
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		name, problems := oneBudget(c, args)
		change, more := readChange(c.Flags())
		b, err := openBank(env, flags, append(problems, more...))
		if err != nil {
			return err
		}
		return b.set(env, name, change)
	}
	return c
}

func newBudgetReset(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "reset NAME", Short: "fill a budget's bucket and close its breaker",
		Example: "  retryx budget reset artifacts", ValidArgsFunction: completeBudget(env),
	}
	flags := bankFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		name, problems := oneBudget(c, args)
		b, err := openBank(env, flags, problems)
		if err != nil {
			return err
		}
		return b.reset(env, name)
	}
	return c
}

// bankFlags gives c the settings that say where budgets live.
func bankFlags(c *cobra.Command) *pflag.FlagSet {
	return share(c, func(s setting) bool {
		return slices.Contains([]string{"state-dir", "allow-remote-state", "budget-store", "config", "profile"}, s.name)
	})
}

// share gives c the flags of some settings. It returns all settings' flags,
// which is what they are read from; those that c does not have keep their
// defaults.
func share(c *cobra.Command, wanted func(setting) bool) *pflag.FlagSet {
	all := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	define(all, table())
	for _, s := range table() {
		if wanted(s) {
			c.Flags().AddFlag(all.Lookup(s.name))
		}
	}
	return all
}

// oneBudget reads the only argument.
func oneBudget(c *cobra.Command, args []string) (string, []string) {
	if len(args) != 1 {
		return "", []string{fmt.Sprintf("budget %s: want one name, not %d; \"retryx budget list\" shows them", c.Name(), len(args))}
	}
	name, err := budget.ParseName(args[0])
	if err != nil {
		return "", []string{err.Error()}
	}
	return name, nil
}

func completeBudget(env Env) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return knownBudgets(env), cobra.ShellCompDirectiveNoFileComp
	}
}

// readChange reads what set was given.
func readChange(flags *pflag.FlagSet) (budget.Change, []string) {
	var c budget.Change
	var problems []string
	readGiven(flags, "capacity", budget.ParseCapacity, &c.Capacity, &problems)
	readGiven(flags, "refill", budget.ParseRefill, &c.Refill, &problems)
	readGiven(flags, "bonus", budget.ParseBonus, &c.Bonus, &problems)
	if c.Empty() && len(problems) == 0 {
		problems = append(problems, "budget set: say what to change: --capacity, --refill or --bonus")
	}
	return c, problems
}

func readGiven[T any](flags *pflag.FlagSet, name string, parse func(string) (T, error), to **T, problems *[]string) {
	f := flags.Lookup(name)
	if !f.Changed {
		return
	}
	v, err := parse(f.Value.String())
	if err != nil {
		*problems = append(*problems, "--"+name+": "+err.Error())
		return
	}
	*to = &v
}

// bank is where this user's budgets are.
type bank struct {
	store budget.Store
	conf  *configuration
	place func(name string) string // where the record of a budget lives
}

// openBank reads the settings. Its error names their problems and those that
// the caller has found already.
func openBank(env Env, flags *pflag.FlagSet, problems []string) (*bank, error) {
	vars := env.variables()
	s, conf, err := readTogether(vars, flags, time.Now(), problems)
	if err != nil {
		return nil, err
	}
	warn(env.Stderr, conf.warnings)
	at := findPlaces(vars, s)
	store := openStore(s, at)
	return &bank{store, conf, func(name string) string { return recordPlace(store, s, at, name) }}, nil
}

// readTogether is readSettings whose error also names the problems that the
// caller has found already, so that all are named at once.
func readTogether(vars map[string]string, flags *pflag.FlagSet, now time.Time, problems []string) (*settings, *configuration, error) {
	s, conf, err := readSettings(vars, flags, now)
	if usage, ok := errors.AsType[*usageError](err); ok {
		problems = append(problems, usage.problems...)
	} else if err != nil {
		return nil, nil, err
	}
	if len(problems) > 0 {
		return nil, nil, &usageError{problems}
	}
	return s, conf, nil
}

// recordPlace says where a budget's record lives. A password is not shown.
func recordPlace(store budget.Store, s *settings, at places, name string) string {
	if store.Kind() == budget.KindFile {
		return filepath.Join(at.shared.Path, "budgets", name)
	}
	u, err := url.Parse(s.store)
	if err != nil {
		return store.Kind()
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// account is one budget as it stands now.
type account struct {
	name   string
	kind   string // of the store
	place  string
	record budget.Record
	found  bool  // it has a record
	err    error // why the record could not be read, or what is wrong with it
}

// unreadable reports whether nothing is known of the account.
func (a account) unreadable() bool { return a.err != nil && !a.found }

// look reads an account and writes nothing.
func (b *bank) look(name string) account {
	a := account{name: name, kind: b.store.Kind(), place: b.place(name)}
	a.record, a.found, a.err = b.store.Peek(context.Background(), b.key(name))
	return a
}

// key names an account to the store; one without a record is made with what the
// configuration says.
func (b *bank) key(name string) budget.Account {
	return budget.Account{Space: budget.Named, Name: name, Params: b.conf.budgets[name].Apply(budget.Defaults())}
}

// names lists the budgets that exist.
func (b *bank) names() ([]string, error) {
	names, err := b.store.List(context.Background(), budget.Named)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	names = slices.Concat(names, slices.Collect(maps.Keys(b.conf.budgets)))
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (b *bank) all() ([]account, error) {
	names, err := b.names()
	if err != nil {
		return nil, err
	}
	accounts := make([]account, len(names))
	for i, name := range names {
		accounts[i] = b.look(name)
	}
	return accounts, nil
}

// existing reads an account that must exist.
func (b *bank) existing(name string) (account, error) {
	a := b.look(name)
	if a.unreadable() {
		return a, fmt.Errorf("read budget %q: %w", name, a.err)
	}
	if _, configured := b.conf.budgets[name]; a.found || configured {
		return a, nil
	}
	names, err := b.names()
	switch {
	case err != nil:
		return a, err
	case len(names) == 0:
		return a, &usageError{[]string{fmt.Sprintf("budget %q does not exist, nor does any other; the first retry that names one makes it", name)}}
	}
	return a, &usageError{[]string{fmt.Sprintf("budget %q does not exist; there is %s%s", name, orList(names), didYouMean(name, names))}}
}

// set writes parameters. What only a person can know to be a mistake is said on
// stderr and done all the same.
func (b *bank) set(env Env, name string, change budget.Change) error {
	before := b.look(name)
	if before.unreadable() {
		return fmt.Errorf("read budget %q: %w", name, before.err)
	}
	got, err := b.store.Configure(context.Background(), b.key(name), change)
	if err != nil {
		return fmt.Errorf("set budget %q: %w", name, err)
	}
	if got.Damaged != "" {
		say(env.Stderr, "budget %q: its record was damaged; restarted at 0 tokens, %s", name, got.Damaged)
	}
	if c := b.conf.budgets[name]; change.Apply(c.Apply(budget.Params{})) != c.Apply(change.Apply(budget.Params{})) {
		say(env.Stderr, "budget %q: %s says otherwise and wins at the next run", name, c.where)
	}
	if change.Bonus != nil && *change.Bonus > bonusWarned {
		say(env.Stderr, "budget %q: a bonus of %s allows that much extra load for good; 0.25 is plenty", name, change.Bonus)
	}
	did := "changed"
	if !before.found {
		did = "made"
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s budget %q\n", did, name); err != nil {
		return err
	}
	return printRows(env.Stdout, b.look(name).parameterRows())
}

func (b *bank) reset(env Env, name string) error {
	a, err := b.existing(name)
	if err != nil {
		return err
	}
	if !a.found {
		_, err := fmt.Fprintf(env.Stdout, "budget %q has no record yet, so it is full\n", name)
		return err
	}
	if err := b.store.Reset(context.Background(), b.key(name)); err != nil {
		return fmt.Errorf("reset budget %q: %w", name, err)
	}
	a = b.look(name)
	_, err = fmt.Fprintf(env.Stdout, "budget %q holds %s tokens again, its breaker is %s\n", name, a.holds(), a.record.Breaker.State)
	return err
}
