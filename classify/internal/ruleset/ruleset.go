// Package ruleset is the format of the knowledge base: what a rules file may
// say, how it is read, and the plain values that it becomes. The generator
// prints these values as Go; `--rules FILE` reads them at run time.
package ruleset

import "time"

// Rank says when a rule may answer. Within a rank the later line of the output
// wins, because the final error outweighs what was said before it.
type Rank int8

// The ranks, strongest first when compared by what they may overrule.
const (
	Normal   Rank = iota // the error itself
	Decisive             // right wherever it stands: a test summary, a rate limit behind a 403
	Fallback             // boilerplate and bare exit codes: only if no error was recognised
	Guess                // single words: only if nothing else was recognised
)

// File is one rules file: a tool, or a generic vocabulary (Generic).
type File struct {
	Name    string   // the tool's canonical name, or the vocabulary's; the prefix of rule ids
	Generic bool     // applies to every tool
	Names   []string // further base names of the tool
	Marks   []string // literals in lower case that betray this tool in another program's output

	Values       []string // flags that take the next word as their value
	Depth        int      // how many words a subcommand has at most, 0 for none
	LongDash     bool     // the tool has -long flags, so -abc is never -a -b -c
	Secrets      []string // flags whose value must never be shown
	StdoutErrors bool     // known to print errors on stdout
	Remote       []Remote // invocations that go on running elsewhere when the client is ended
	Effects      []Effect // first match wins

	Chatter Pattern // lines that tell of the tool's own retries, not of the end
	Rules   []Rule
	Later   func() []Rule // makes the rules of a built-in file, which has none in Rules

	JudgesSuccess bool // a rule names exit status 0
}

// When is a condition on the command line. All its parts must hold; an empty
// part holds always; within a part one entry is enough.
type When struct {
	Program []string // names of the program, where a file is about several
	Sub     []string // subcommand phrases: "push", "s3 cp", "* list", "get-*"
	Flags   []string // "-d", "--data*", "-X=POST|PATCH"
	Without []string // flags that must not be there
	Words   []string // words of any argument, such as an SQL verb
}

// Effect is what the command does to the world under a condition.
type Effect struct {
	When
	Effect string // read, repeatable, write, unknown, or inner
	After  int    // for inner: how many words stand between the subcommand and the inner command
}

// Remote is an invocation that runs something on another machine.
type Remote struct {
	When
	ExceptRead bool // not when the effect is known to be read
}

// Pattern is a set of alternatives; it matches where one of them does. They
// are kept apart because a large alternation is slow to compile and to match,
// while most single alternatives are ruled out by their literals.
type Pattern []Expression

// Expression is a regular expression and sets of literals (lower case): any
// matching line holds at least one of each set. Without sets every line is
// tried.
type Expression struct {
	Expr  string
	Need  [][]string
	Whole bool // a user's own: case-sensitive, against the whole output
}

// Range is an inclusive range of exit statuses.
type Range struct{ Lo, Hi int }

// Rule is one judgement.
type Rule struct {
	ID    string // "curl/connect-refused"
	Class string

	Exit    []Range
	Signals []string // "SIGSEGV"; also matches the exit status 128+n of a shell
	Stderr  Pattern
	Stdout  Pattern
	Output  Pattern
	And     []Pattern // must match somewhere in the output too
	Not     Pattern   // must match nowhere in the output
	Empty   bool      // only if there is no output at all
	When    When
	Effects []string

	ExactSignal  bool // do not take 128+n for a signal
	Rank         Rank
	MaybeApplied bool // the request may have done its work before this failure
	Wait         time.Duration
	Why, Source  string

	Examples []Example
	Line     int // in the file
}

// Example is a failure that its rule must recognise.
type Example struct {
	Argv           []string
	Exit           int // -1 when a signal ended it
	Signal         string
	Stderr, Stdout string
	Class          string // the rule's class when empty
	RetryAfter     time.Duration
}

// Text reports whether the rule has a condition on the output.
func (r *Rule) Text() bool {
	return len(r.Stderr) > 0 || len(r.Stdout) > 0 || len(r.Output) > 0
}
