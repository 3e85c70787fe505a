// Package classify judges failures: from the command line, the exit status and
// the output of an attempt it says what kind of failure it was.
//
// Who answers, first that does:
//
//  1. the user's rules from flags, then a hint of the child's, then the user's
//     rules from the environment, those from profile or configuration, and the
//     user's rules files;
//  2. the limit that retryx itself enforced, if that ended the attempt;
//  3. the built-in rules of the tool and of the wrappers around it;
//  4. the generic built-in rules, together with the rules of other tools that
//     betray themselves in the output (a script that runs curl);
//  5. the same two once more for lines of retry chatter, which count only when
//     no other line was recognised;
//  6. fallback rules (boilerplate, misleading last lines, bare exit statuses),
//     of the tool, then generic; then guesses by single words, likewise;
//  7. nobody: unknown.
//
// Within one source, among the user's rules, stop beats retry, then the first
// written wins. Among built-in rules: a decisive rule wins; then the later
// line, because the final error outweighs what was said before it (stderr
// counts as later than stdout, a rule without a text condition as earlier than
// any line); on one line stop beats retry, then the longer match wins, then
// the first written. Step 3 and 4 look again at lines joined across the breaks
// of a fixed-width console before step 5 may answer.
package classify

import (
	"slices"
	"strconv"
	"time"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// Class is the kind of a failure.
type Class string

// The classes.
const (
	Transient   Class = "transient"   // passes by itself
	Permanent   Class = "permanent"   // repeating it unchanged cannot help
	Config      Class = "config"      // a human must act
	Correctable Class = "correctable" // the input is malformed, the caller could correct it
	Ambiguous   Class = "ambiguous"   // an external write may have happened
	Unexpected  Class = "unexpected"  // a bug or a crash
	Unknown     Class = "unknown"     // nothing matched
)

// ruled reports whether a rule may name the class.
func (c Class) ruled() bool {
	switch c {
	case Transient, Permanent, Config, Correctable, Ambiguous, Unexpected:
		return true
	case Unknown:
	}
	return false
}

// retried reports whether the class is retried by default.
func (c Class) retried() bool { return c == Transient || c == Unknown }

// Attempt is one finished run of the command. Of Stderr and Stdout only the
// last 64 KiB are looked at.
type Attempt struct {
	Argv           []string
	Exit           int // -1 when a signal ended it
	Signal         int // 0 for none
	TimedOut       bool
	Stderr, Stdout []byte
	Ended          time.Time // for waits stated as a date; may be zero
}

// Verdict is the judgement of an attempt.
type Verdict struct {
	Class      Class
	Rule       string        // id of the rule, "" when nothing matched
	Evidence   string        // one cleaned line, uncut and unredacted
	RetryAfter time.Duration // stated in the output, 0 for none
	MinWait    time.Duration // the rule's least sensible wait
	Why        string        // one line
	Source     string        // where the rule's knowledge comes from
	Matched    bool          // a rule matched
}

// Options are the user's words on the matter.
type Options struct {
	Effect      Effect // overrides what argv shows; "" does not
	Idempotent  bool
	Flags       []Rule  // by ParseRule, as those below
	Env, Config []Rule  // below a hint
	Files       []Rules // by ParseFile; give them to ReadWith too
}

// Classifier judges the attempts of one command. It is not safe for concurrent
// use.
type Classifier struct {
	tables   *tables
	command  Command
	options  Options
	effect   Effect
	compiled map[string]expression
}

// New makes a classifier. It compiles nothing.
func New(cmd Command, o Options) *Classifier {
	c := &Classifier{tables: cmd.tables, command: cmd, options: o, effect: cmd.Effect}
	if c.tables == nil { // a Command that was not made by Read
		c.tables = builtin()
	}
	if o.Effect != "" {
		c.effect = o.Effect
	}
	if c.effect == "" {
		c.effect = EffectUnknown
	}
	c.options.Flags = named(o.Flags, "flag/")
	c.options.Env, c.options.Config = named(o.Env, "env/"), named(o.Config, "config/")
	return c
}

// Effect returns the effect that judgements assume.
func (c *Classifier) Effect() Effect { return c.effect }

// ruledEffect is the effect that a rule may ask for: what is declared idempotent
// is a write that may be repeated.
func (c *Classifier) ruledEffect() Effect {
	if c.options.Idempotent && c.effect != EffectRead {
		return EffectRepeatable
	}
	return c.effect
}

// Classify judges an attempt that failed.
func (c *Classifier) Classify(a Attempt) Verdict { return c.ClassifyHinted(a, "", 0) }

// ClassifyHinted is Classify with a class ("" for none) and a wait (0 for none)
// from the child's hint. A hinted class yields to rules from flags only.
func (c *Classifier) ClassifyHinted(a Attempt, hinted Class, hintRetryAfter time.Duration) Verdict {
	m := c.matcher(a)
	v := c.judge(m, hinted)
	if v.Evidence == "" {
		v.Evidence = m.finalLine()
	}
	switch {
	case hintRetryAfter > 0:
		v.RetryAfter = hintRetryAfter
	case v.Class.retried() || v.Class == Ambiguous:
		v.RetryAfter = m.retryAfter(a.Ended)
	}
	return v
}

func (c *Classifier) judge(m *matcher, hinted Class) Verdict {
	if v, ok := m.byUser(c.options.Flags); ok {
		return v
	}
	if hinted != "" {
		return Verdict{Class: hinted, Rule: "hint/class", Why: "the command said so itself", Matched: true}
	}
	for _, rules := range [...][]Rule{c.options.Env, c.options.Config} {
		if v, ok := m.byUser(rules); ok {
			return v
		}
	}
	if v, ok := m.byFiles(c.options.Files); ok {
		return c.weigh(v)
	}
	if m.attempt.TimedOut {
		return Verdict{
			Class: afterTimeout(&c.command, &c.options, c.effect), Rule: "retryx/timed-out",
			Why: "the attempt reached its time limit", Source: "retryx", Matched: true,
		}
	}
	v := m.byBuiltins()
	return c.weigh(v)
}

// weigh applies the command's effect to what a rule of a file said.
func (c *Classifier) weigh(w found) Verdict {
	if w.rule == nil {
		return Verdict{Class: afterEffect(Unknown, false, c.effect, c.options.Idempotent), Why: "nothing in the output was recognised"}
	}
	return Verdict{
		Class: afterEffect(Class(w.rule.Class), w.rule.MaybeApplied, c.effect, c.options.Idempotent),
		Rule:  w.rule.ID, Evidence: w.evidence, MinWait: w.rule.Wait,
		Why: w.rule.Why, Source: w.rule.Source, Matched: true,
	}
}

// SuccessRuleMatch reports whether an attempt that would count as a success is
// a failure, because a rule names its exit status and matches. Built-in rules
// speak only about status 0: a status that the user declared a success is one.
// It costs nothing when no rule names the status.
func (c *Classifier) SuccessRuleMatch(a Attempt) (Verdict, bool) {
	if !c.namesSuccess(a.Exit) {
		return Verdict{}, false
	}
	m := c.matcher(a)
	m.successOnly = true
	for _, rules := range [...][]Rule{c.options.Flags, c.options.Env, c.options.Config} {
		if v, ok := m.byUser(rules); ok {
			return m.stated(v), true
		}
	}
	w, ok := m.byFiles(c.options.Files)
	if !ok && a.Exit == 0 {
		w = m.byTool()
		ok = w.rule != nil
	}
	if !ok {
		return Verdict{}, false
	}
	return m.stated(c.weigh(w)), true
}

func (c *Classifier) namesSuccess(status int) bool {
	if anyNames(c.options.Flags, status) || anyNames(c.options.Env, status) || anyNames(c.options.Config, status) {
		return true
	}
	for i := range c.options.Files {
		if anyNames(c.options.Files[i].Rules, status) {
			return true
		}
	}
	return status == 0 && c.command.file != nil && c.command.file.JudgesSuccess
}

func anyNames(rules []Rule, status int) bool {
	for i := range rules {
		if Contains(rules[i].Exit, status) {
			return true
		}
	}
	return false
}

// named gives rules without an id one that says where they stand.
func named(rules []Rule, prefix string) []Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].ID == "" {
			rules[i].ID = prefix + strconv.Itoa(i+1)
		}
	}
	return rules
}

// found is the rule that won, nil when none did.
type found struct {
	rule     *ruleset.Rule
	evidence string
}
