package classify

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// expression is a compiled pattern; nil when it does not compile, which only a
// hand-made Rule can bring about.
type expression = *regexp.Regexp

// matcher holds one attempt's output while rules are tried on it.
type matcher struct {
	c           *Classifier
	attempt     *Attempt
	stderr      *text
	stdout      *text
	signal      string
	empty       bool
	args        []arguments // parsed for files that ask, found by file
	successOnly bool        // only rules that name the exit status count
}

func (c *Classifier) matcher(a Attempt) *matcher {
	return &matcher{
		c: c, attempt: &a,
		stderr: newText(clean(a.Stderr)), stdout: newText(clean(a.Stdout)),
		signal: signalName(a.Signal),
		empty:  blank(a.Stderr) && blank(a.Stdout),
	}
}

func (c *Classifier) compile(p *ruleset.Expression) expression {
	key := p.Expr
	if p.Whole {
		key = "\x00" + key
	}
	if re, ok := c.compiled[key]; ok {
		return re
	}
	var re expression
	if p.Whole {
		re, _ = regexp.Compile("(?m)" + p.Expr)
	} else {
		re, _ = p.Compile()
	}
	if c.compiled == nil {
		c.compiled = map[string]expression{}
	}
	c.compiled[key] = re
	return re
}

// match is where and how well a rule matched.
type match struct {
	rule   *ruleset.Rule
	bucket int // smaller answers first
	line   int // of stdout and stderr joined in this order; -1 without text
	length int
	text   string // the line
}

// beats reports whether m answers rather than other.
func (m *match) beats(other *match) bool {
	switch {
	case other.rule == nil:
		return true
	case m.bucket != other.bucket:
		return m.bucket < other.bucket
	case m.line != other.line:
		return m.line > other.line
	}
	if stop, otherStop := !Class(m.rule.Class).retried(), !Class(other.rule.Class).retried(); stop != otherStop {
		return stop
	}
	return m.length > other.length
}

// byUser finds the answer of rules from flags or configuration.
func (m *matcher) byUser(rules []Rule) (Verdict, bool) {
	var best match
	for i := range rules {
		r := &rules[i]
		got, ok := m.try(r, nil)
		if !ok {
			continue
		}
		if best.rule == nil || Class(best.rule.Class).retried() && !Class(r.Class).retried() {
			best = got
		}
	}
	if best.rule == nil {
		return Verdict{}, false
	}
	return Verdict{
		Class: Class(best.rule.Class), Rule: best.rule.ID, Evidence: strings.TrimSpace(best.text),
		MinWait: best.rule.Wait, Why: best.rule.Why, Source: best.rule.Source, Matched: true,
	}, true
}

// byFiles finds the answer of the user's rules files.
func (m *matcher) byFiles(files []Rules) (found, bool) {
	var best match
	for i := range files {
		f := &files[i]
		if f.Generic || about(f, m.c.command.Tool) {
			m.chatter(f)
			m.scan(f, own, &best)
		}
	}
	return best.found(), best.rule != nil
}

func (b *match) found() found { return found{b.rule, strings.TrimSpace(b.text)} }

// Sources of built-in rules, the nearer the smaller.
const (
	own     = 0
	generic = 1
)

// Buckets: what answers before what. Within a bucket lines compete.
const (
	bucketOwn      = 0 // and decisive before normal
	bucketGeneric  = 2
	bucketNoise    = 4
	bucketFallback = 6
	bucketGuess    = 8
	bucketLast     = 10
)

func bucket(rank ruleset.Rank, source int, noisy bool) int {
	switch {
	case rank == ruleset.Fallback:
		return bucketFallback + source
	case rank == ruleset.Guess && !noisy:
		return bucketGuess + source
	case rank == ruleset.Guess:
		return bucketLast + source
	case noisy:
		return bucketNoise + source
	case rank == ruleset.Decisive:
		return bucketOwn + 2*source
	}
	return bucketOwn + 2*source + 1
}

// byTool finds the answer of the tool's own built-in rules.
func (m *matcher) byTool() found {
	var best match
	m.scanOwn(&best)
	return best.found()
}

func (m *matcher) byBuiltins() found {
	m.chatterOfAll()
	best := m.scanAll()
	if best.rule != nil && best.bucket < bucketNoise {
		return best.found()
	}
	for _, glue := range [...]string{" ", ""} {
		wide := *m
		wide.stderr, wide.stdout = m.stderr.unwrapped(glue), m.stdout.unwrapped(glue)
		if wide.stderr == nil && wide.stdout == nil {
			break
		}
		wide.chatterOfAll()
		if joined := wide.scanAll(); joined.rule != nil && joined.bucket < bucketNoise {
			return joined.found()
		}
	}
	return best.found()
}

func (m *matcher) scanAll() match {
	var best match
	m.scanOwn(&best)
	for i := range m.c.tables.files {
		f := &m.c.tables.files[i]
		switch {
		case f.Generic:
			m.scan(f, generic, &best)
		case f != m.c.command.file && m.betrayed(f):
			m.scanForeign(f, &best)
		}
	}
	return best
}

func (m *matcher) scanOwn(best *match) {
	if f := m.c.command.file; f != nil {
		m.scan(f, own, best)
	}
	for _, f := range m.c.command.wrappers {
		m.scan(f, own, best)
	}
}

// betrayed reports whether the output holds one of the marks of a file.
func (m *matcher) betrayed(f *ruleset.File) bool {
	return slices.ContainsFunc(f.Marks, func(mark string) bool {
		for _, t := range [...]*text{m.stderr, m.stdout} {
			if t.lines() > 0 && t.mayHold(mark) && strings.Contains(t.lower, mark) {
				return true
			}
		}
		return false
	})
}

func (m *matcher) scan(f *ruleset.File, source int, best *match) {
	rules := rulesOf(f)
	for i := range rules {
		m.consider(f, &rules[i], source, best)
	}
}

// scanForeign tries the rules of another tool that speak of text alone: exit
// status and command line are not that tool's.
func (m *matcher) scanForeign(f *ruleset.File, best *match) {
	rules := rulesOf(f)
	for i := range rules {
		r := &rules[i]
		if r.Text() && len(r.Exit) == 0 && len(r.Signals) == 0 && bare(&r.When) {
			m.consider(f, r, generic, best)
		}
	}
}

func bare(w *ruleset.When) bool {
	return len(w.Program) == 0 && len(w.Sub) == 0 && len(w.Flags) == 0 && len(w.Without) == 0 && len(w.Words) == 0
}

func (m *matcher) consider(f *ruleset.File, r *ruleset.Rule, source int, best *match) {
	if best.rule != nil && bucket(r.Rank, source, false) > best.bucket {
		return // it cannot win, so its expressions need not be tried
	}
	got, ok := m.try(r, f)
	if !ok {
		return
	}
	got.bucket = bucket(r.Rank, source, got.bucket != 0)
	if got.beats(best) {
		*best = got
	}
}

// try matches one rule. A match on a line of chatter has bucket 1, else 0.
func (m *matcher) try(r *ruleset.Rule, f *ruleset.File) (match, bool) {
	if !m.statusFits(r) || r.Empty && !m.empty {
		return match{}, false
	}
	if len(r.Effects) > 0 && !slices.Contains(r.Effects, string(m.c.ruledEffect())) {
		return match{}, false
	}
	if f != nil && !bare(&r.When) {
		a := m.arguments(f)
		if ok, _ := a.match(&r.When); !ok {
			return match{}, false
		}
	}
	got := match{rule: r, line: -1}
	if !m.textFits(r, &got) {
		return match{}, false
	}
	return got, true
}

func (m *matcher) statusFits(r *ruleset.Rule) bool {
	if len(r.Exit) > 0 && !Contains(r.Exit, m.attempt.Exit) {
		return false
	}
	if m.successOnly && len(r.Exit) == 0 {
		return false
	}
	if len(r.Signals) == 0 {
		return true
	}
	signal := m.signal
	if signal == "" && !r.ExactSignal && m.attempt.Exit > 128 {
		signal = signalName(m.attempt.Exit - 128)
	}
	return signal != "" && slices.Contains(r.Signals, signal)
}

func (m *matcher) textFits(r *ruleset.Rule, got *match) bool {
	for _, p := range r.And { // first, as these words are the rarer ones
		if !m.find(p, true, true, nil) {
			return false
		}
	}
	for _, want := range [...]struct {
		p      ruleset.Pattern
		stderr bool
		stdout bool
	}{{r.Stderr, true, false}, {r.Stdout, false, true}, {r.Output, true, true}} {
		if len(want.p) > 0 && !m.find(want.p, want.stderr, want.stdout, got) {
			return false
		}
	}
	return len(r.Not) == 0 || !m.find(r.Not, true, true, nil)
}

// find looks for a pattern, on stderr first, and notes in got where it is.
func (m *matcher) find(p ruleset.Pattern, stderr, stdout bool, got *match) bool {
	var noise match
	for _, side := range [...]struct {
		t     *text
		asked bool
		base  int
	}{{m.stderr, stderr, m.stdout.lines()}, {m.stdout, stdout, 0}} {
		if !side.asked {
			continue
		}
		s := m.locate(side.t, p)
		if s.line < 0 {
			continue
		}
		here := match{line: side.base + s.line, length: s.length, text: side.t.line(s.line)}
		if !s.noisy {
			got.at(here, 0)
			return true
		}
		if noise.text == "" {
			noise = here
		}
	}
	if noise.text == "" {
		return false
	}
	got.at(noise, 1)
	return true
}

// at notes the place of the latest match of a rule.
func (b *match) at(here match, noise int) {
	if b == nil || b.line > here.line {
		return
	}
	b.line, b.length, b.text, b.bucket = here.line, here.length, here.text, noise
}

func (m *matcher) locate(t *text, p ruleset.Pattern) spot {
	best := nowhere()
	for i := range p {
		e := &p[i]
		switch {
		case t.lines() == 0:
		case e.Whole:
			if re := m.c.compile(e); re != nil {
				best = t.whole(re)
			}
		default:
			best = t.last(e, m.c.compile, best)
		}
	}
	return best
}

// arguments parses the command line by a file's flags, once per file.
func (m *matcher) arguments(f *ruleset.File) *arguments {
	for i := range m.args {
		if m.args[i].file == f {
			return &m.args[i]
		}
	}
	argv := m.c.command.Argv
	if len(argv) == 0 {
		argv = []string{""}
	}
	m.args = append(m.args, parseArguments(f, argv))
	return &m.args[len(m.args)-1]
}

// chatterOfAll marks the lines that tell of retries, by the words of all files
// that have a say.
func (m *matcher) chatterOfAll() {
	for i := range m.c.tables.files {
		f := &m.c.tables.files[i]
		if len(f.Chatter) > 0 && (f.Generic || f == m.c.command.file || slices.Contains(m.c.command.wrappers, f) || m.betrayed(f)) {
			m.chatter(f)
		}
	}
}

func (m *matcher) chatter(f *ruleset.File) {
	for i := range f.Chatter {
		e := &f.Chatter[i]
		for _, t := range [...]*text{m.stderr, m.stdout} {
			for _, line := range t.candidates(e.Need, maxChatter) {
				re := m.c.compile(e)
				t.noisy[line] = t.noisy[line] || re != nil && re.MatchString(t.seenBy(e, line))
			}
		}
	}
}

// finalLine is the evidence when no rule pointed at a line.
func (m *matcher) finalLine() string {
	if line := m.stderr.finalLine(); line != "" {
		return line
	}
	return m.stdout.finalLine()
}

// retryAfter is the wait that the output states, 0 for none.
func (m *matcher) retryAfter(ended time.Time) time.Duration {
	for _, t := range [...]*text{m.stderr, m.stdout} {
		if d, ok := statedWait(t, ended); ok {
			return d
		}
	}
	return 0
}

func (m *matcher) stated(v Verdict) Verdict {
	if v.Evidence == "" {
		v.Evidence = m.finalLine()
	}
	if v.Class.retried() || v.Class == Ambiguous {
		v.RetryAfter = m.retryAfter(m.attempt.Ended)
	}
	return v
}
