package cmd

// retryx rules: look into the knowledge base, and test rules files of one's own.

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retryx/retryx/classify"
)

const (
	ruleSchema  = "retryx.rule/v1"
	rulesSchema = "retryx.rules/v1"
)

func newRulesCommand(env Env, status *int) *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "list, show and test the rules",
		Long: `A rule says what kind of failure an attempt was, from the exit status, the signal,
the output and the arguments. The outcome of a run names the rule that judged it.`,
		Example: `  retryx rules list curl
  retryx rules show curl/connect-refused
  retryx rules test my-rules.yaml`,
		Args: wantSubcommand,
		RunE: func(c *cobra.Command, _ []string) error {
			return &usageError{[]string{"rules: want " + orList(subcommandNames(c))}}
		},
	}
	c.AddCommand(newRulesList(env), newRulesShow(env), newRulesTest(env, status))
	return c
}

func newRulesList(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "list [TOOL]", Short: "list the built-in rules, or those of a tool",
		Example: "  retryx rules list\n  retryx rules list git --format json",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return ruleGroups(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	format := addFormat(c, "table", "json")
	c.RunE = func(_ *cobra.Command, args []string) error {
		problems := format.problems()
		if len(args) > 1 {
			problems = append(problems, fmt.Sprintf("rules list: want at most one tool, not %d", len(args)))
		}
		if len(problems) > 0 {
			return &usageError{problems}
		}
		rules, err := rulesOf(strings.Join(args, ""))
		if err != nil {
			return err
		}
		if format.text == "json" {
			return printJSON(env.Stdout, ruleList(rules))
		}
		return printRules(env.Stdout, rules)
	}
	return c
}

func newRulesShow(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "show when a rule applies and why",
		Example: "  retryx rules show curl/connect-refused",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return ruleIDs(allRules()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	format := addFormat(c, "text", "json")
	c.RunE = func(_ *cobra.Command, args []string) error {
		problems := format.problems()
		if len(args) != 1 {
			problems = append(problems, fmt.Sprintf("rules show: want one rule, not %d; \"retryx rules list\" shows them", len(args)))
		}
		if len(problems) > 0 {
			return &usageError{problems}
		}
		r, err := ruleByID(args[0])
		if err != nil {
			return err
		}
		if format.text == "json" {
			doc := documentOf(r)
			doc.Schema = ruleSchema
			return printJSON(env.Stdout, doc)
		}
		return printRows(env.Stdout, ruleRows(r))
	}
	return c
}

func newRulesTest(env Env, status *int) *cobra.Command {
	return &cobra.Command{
		Use: "test FILE...", Short: "check rules files of your own and judge their examples",
		Long: `Every example of a file must be answered by the very rule that it stands under, as
a run with --rules FILE would be. Exit status 1 when one is not, 125 when a file
is malformed. A file is YAML:

  tool: deployctl
  rules:
    - id: lock-held
      class: transient
      exit: "1,75"
      output: lock is held by
      why: somebody else deploys, and the lock goes away
      source: deployctl(1)
      examples:
        - argv: deployctl up
          exit: 75
          stderr: "error: lock is held by ci-7"

Conditions are exit, signal, output, status, stderr, stdout, and, not, empty, sub
and flags; all that are given must hold. Classes are transient, permanent, config, correctable, ambiguous
and unexpected. The rest is told in classify/rules/README.md of retryx's sources.`,
		Example:           "  retryx rules test my-rules.yaml",
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := readRules(args)
			if err != nil {
				return err
			}
			for _, f := range files {
				good, err := f.try(env.Stdout)
				if err != nil {
					return err
				}
				if !good {
					*status = 1
				}
			}
			return nil
		},
	}
}

// rulesFile is a rules file of the user's.
type rulesFile struct {
	path  string
	rules classify.Rules
}

// readRules reads files. The error names every problem of all of them.
func readRules(paths []string) ([]rulesFile, error) {
	var files []rulesFile
	var problems []string
	if len(paths) == 0 {
		problems = append(problems, "rules test: want a rules file")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		rules, err := classify.ParseFile(path, data)
		if err != nil {
			problems = append(problems, strings.Split(err.Error(), "\n")...)
			continue
		}
		files = append(files, rulesFile{path, rules})
	}
	if len(problems) > 0 {
		return nil, &usageError{problems}
	}
	return files, nil
}

// try judges every example, says what is wrong and sums up. It reports whether
// all is well.
func (f rulesFile) try(w io.Writer) (bool, error) {
	var out strings.Builder
	examples, wrong, bare := 0, 0, 0
	for _, r := range f.rules.Rules {
		if len(r.Examples) == 0 {
			bare++
			fmt.Fprintf(&out, "%s:%d: rule %s: has no example\n", f.path, r.Line, r.ID)
		}
		for i := range r.Examples {
			examples++
			if text := f.fault(&r, i); text != "" {
				wrong++
				fmt.Fprintf(&out, "%s:%d: rule %s: example %d: %s\n", f.path, r.Line, r.ID, i+1, text)
			}
		}
	}
	fmt.Fprintf(&out, "%s: %d rules (%d without an example), %d examples, %d wrong\n", f.path, len(f.rules.Rules), bare, examples, wrong)
	_, err := io.WriteString(w, out.String())
	return wrong == 0, err
}

// fault judges example i as a run with this file would and says what differs
// from what the example wants.
func (f rulesFile) fault(r *classify.Rule, i int) string {
	e := r.Examples[i]
	a := classify.Attempt{Argv: e.Argv, Exit: e.Exit, Stderr: []byte(e.Stderr), Stdout: []byte(e.Stdout)}
	if len(a.Argv) == 0 {
		return "has no argv"
	}
	if e.Signal != "" {
		n, err := parseSignal(e.Signal)
		if err != nil {
			return err.Error()
		}
		a.Signal = int(n)
	}
	v := judgement(&settings{success: []classify.Range{{}}, ruleFiles: []classify.Rules{f.rules}}, a)
	want := orNone(e.Class, r.Class)
	switch {
	case v.succeeded:
		return "is taken for a success, as no rule of the file that names exit 0 matches"
	case v.Rule != r.ID:
		return fmt.Sprintf("judged %s by %s", v.Class, orNone(v.Rule, "no rule"))
	case string(v.Class) != want:
		return fmt.Sprintf("judged %s, want %s; the effect of the command is %s", v.Class, want, v.effect)
	case e.RetryAfter != 0 && v.RetryAfter != e.RetryAfter:
		return fmt.Sprintf("stated wait read as %s, want %s", v.RetryAfter, e.RetryAfter)
	}
	return ""
}

// allRules lists what a judgement can name, but for the user's own rules.
func allRules() []classify.Rule {
	return slices.Concat(ownRules(), slices.Collect(classify.Builtins()))
}

// ownRules are the judgements that retryx makes without the knowledge base.
func ownRules() []classify.Rule {
	return []classify.Rule{
		{ID: "hint/class", Why: "the command named its class in the file of RETRYX_HINT", Source: "retryx(1)"},
		{ID: inputLostRule, Class: string(classify.Permanent), Why: "the command's input could not be read to its end for --stdin replay", Source: "retryx(1)"},
		{ID: outputLostRule, Class: string(classify.Permanent), Why: "the command's output could not be kept or passed on", Source: "retryx(1)"},
		{ID: nestedRule, Why: "a retryx below judged it so and said that nobody should go on", Source: "retryx(1)"},
		{ID: "retryx/timed-out", Class: string(classify.Transient), MaybeApplied: true, Why: "the attempt reached its time limit", Source: "retryx(1)"},
		{ID: "start/failed", Class: string(classify.Config), Why: "the command could not be started", Source: "execve(2)"},
		{ID: "start/resources", Class: string(classify.Transient), Why: "the system was short of processes, memory or files when the command was to start", Source: "execve(2), fork(2)"},
	}
}

func ruleIDs(rules []classify.Rule) []string {
	ids := make([]string, len(rules))
	for i := range rules {
		ids[i] = rules[i].ID
	}
	return ids
}

// group is the tool or the vocabulary that a rule belongs to.
func group(id string) string {
	name, _, _ := strings.Cut(id, "/")
	return name
}

func ruleGroups() []string {
	var names []string
	for _, r := range allRules() {
		names = append(names, group(r.ID))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// rulesOf lists the rules of a tool or a vocabulary; all when it is empty.
func rulesOf(tool string) ([]classify.Rule, error) {
	rules := allRules()
	if tool == "" {
		return rules, nil
	}
	for _, name := range []string{tool, classify.Read([]string{tool}).File} {
		mine := slices.Clone(rules)
		mine = slices.DeleteFunc(mine, func(r classify.Rule) bool { return group(r.ID) != name })
		if len(mine) > 0 {
			return mine, nil
		}
	}
	groups := ruleGroups()
	return nil, &usageError{[]string{fmt.Sprintf("rules list: no rules stand under %q; there is %s%s", tool, orList(groups), didYouMean(tool, groups))}}
}

func ruleByID(id string) (*classify.Rule, error) {
	rules := allRules()
	if i := slices.IndexFunc(rules, func(r classify.Rule) bool { return r.ID == id }); i >= 0 {
		return &rules[i], nil
	}
	if g := group(id); g == "flag" || g == "config" {
		return nil, &usageError{[]string{fmt.Sprintf("rule %q is one of yours: the nth --rule (or its shorthands), or the nth of rules: in the configuration", id)}}
	}
	hint := didYouMean(id, ruleIDs(rules))
	others := "\"retryx rules list\" shows all"
	mine, err := rulesOf(group(id))
	switch {
	case err == nil && len(mine) > rulesNamed:
		others = fmt.Sprintf("\"retryx rules list %s\" shows those that do", group(id))
	case err == nil:
		others = fmt.Sprintf("%s has %s", group(id), orList(ruleIDs(mine)))
	case hint == "" && !strings.Contains(id, "/"): // a tool
		hint = didYouMean(group(id), ruleGroups())
	}
	return nil, &usageError{[]string{fmt.Sprintf("rule %q does not exist; %s%s", id, others, hint)}}
}

// rulesNamed is how many rules a message lists.
const rulesNamed = 6

func printRules(w io.Writer, rules []classify.Rule) error {
	lines := [][]string{{"RULE", "CLASS", "OF A WRITE", "WHY"}}
	for i := range rules {
		r := &rules[i]
		ofWrite := "-"
		if r.MaybeApplied {
			ofWrite = string(classify.Ambiguous)
		}
		lines = append(lines, []string{r.ID, orNone(r.Class, "-"), ofWrite, r.Why})
	}
	return printTable(w, lines)
}

// waitOf is a rule's least wait in milliseconds, null for none.
func waitOf(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	return new(ceilMS(d))
}
