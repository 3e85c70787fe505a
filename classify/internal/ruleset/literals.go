package ruleset

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Most lines of an output hold nothing that a rule looks for, and a regular
// expression is dear. So each expression carries sets of literals of which one
// must be in every match; a line that lacks them is never given to it.

const (
	maxProduct  = 192 // strings that a sequence may be spelled out to
	maxLiterals = 192 // more literals than this are no filter any more
	maxClass    = 10  // a class of more characters says nothing worth searching for
)

// Compile reads an expression of a rules file: RE2, case-insensitive, matched
// line by line.
func Compile(expr string) (*regexp.Regexp, error) { return regexp.Compile("(?i)" + expr) }

// Cased reports whether the expression must see the text as it is written. All
// others are looked for in the text with A-Z lowered, which is much cheaper
// than overlooking case in every comparison.
func (e *Expression) Cased() bool {
	return strings.Contains(e.Expr, "(?-i") || strings.Contains(e.Expr, "[:") ||
		strings.Contains(e.Expr, `\p`) || strings.Contains(e.Expr, `\P`) || strings.Contains(e.Expr, `\Q`)
}

// Compile compiles the expression for the text that Cased says.
func (e *Expression) Compile() (*regexp.Regexp, error) {
	if e.Cased() || strings.ContainsFunc(e.Expr, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return Compile(e.Expr)
	}
	return regexp.Compile(lowered(e.Expr))
}

// lowered lowers A-Z but for the letters that a backslash makes special.
func lowered(expr string) string {
	b := []byte(expr)
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\':
			i++
		case 'A' <= c && c <= 'Z':
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// NewPattern checks an expression, takes it apart into its alternatives and
// finds the literals of each.
func NewPattern(expr string) (Pattern, error) {
	if _, err := syntax.Parse(expr, syntax.Perl); err != nil {
		return nil, err
	}
	var p Pattern
	for _, alternative := range alternatives(expr) {
		re, err := syntax.Parse("(?i)"+alternative, syntax.Perl)
		if err != nil {
			return nil, err
		}
		p = append(p, Expression{Expr: alternative, Need: useful(required(re))})
	}
	return p, nil
}

// alternatives splits an expression at the bars that stand outside of all
// groups and classes.
func alternatives(expr string) []string {
	var out []string
	depth, start, class := 0, 0, false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']' || expr[i-1] == '[' || expr[i-1] == '^' && expr[i-2] == '['
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			out = append(out, expr[start:i])
			start = i + 1
		}
	}
	return append(out, expr[start:])
}

// useful keeps the few sets that filter best, the best first.
func useful(sets [][]string) [][]string {
	const shortest, most = 2, 3
	var out [][]string
	for _, set := range sets {
		if minLen(set) >= shortest && len(set) <= maxLiterals {
			slices.Sort(set)
			out = append(out, slices.Compact(set))
		}
	}
	slices.SortStableFunc(out, func(a, b []string) int {
		const enough = 6 // a longer literal is hardly rarer
		if c := cmp.Compare(min(minLen(b), enough), min(minLen(a), enough)); c != 0 {
			return c
		}
		return cmp.Compare(len(a), len(b))
	})
	return out[:min(len(out), most)]
}

// required returns sets of strings; every match holds at least one of each.
func required(re *syntax.Regexp) [][]string {
	if set, ok := exact(re); ok && minLen(set) > 0 {
		return [][]string{set}
	}
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		return requiredOfConcat(re.Sub)
	case syntax.OpAlternate:
		return requiredOfAlternate(re.Sub)
	}
	return nil
}

func requiredOfConcat(parts []*syntax.Regexp) [][]string {
	var sets [][]string
	run := []string{""}
	for _, part := range parts {
		set, ok := exact(part)
		if ok {
			if joined := cross(run, set); joined != nil {
				run = joined
				continue
			}
		}
		sets = append(sets, run)
		if run = []string{""}; ok {
			run = set
		} else {
			sets = append(sets, required(part)...)
		}
	}
	return append(sets, run)
}

// requiredOfAlternate joins the best set of each alternative.
func requiredOfAlternate(parts []*syntax.Regexp) [][]string {
	var all []string
	for _, part := range parts {
		best := useful(required(part))
		if len(best) == 0 {
			return nil
		}
		all = append(all, best[0]...)
	}
	return [][]string{all}
}

// exact returns all the strings that an expression can match, in lower case,
// when they are few.
func exact(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}, true
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}, true
	case syntax.OpCharClass:
		return exactClass(re.Rune)
	case syntax.OpCapture:
		return exact(re.Sub[0])
	case syntax.OpQuest:
		set, ok := exact(re.Sub[0])
		return append([]string{""}, set...), ok
	case syntax.OpConcat:
		return exactConcat(re.Sub)
	case syntax.OpAlternate:
		return exactAlternate(re.Sub)
	}
	return nil, false
}

func exactClass(pairs []rune) ([]string, bool) {
	var set []string
	seen := map[string]bool{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1]-pairs[i] > 12 {
			return nil, false
		}
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			s := strings.ToLower(string(r))
			if !seen[s] {
				seen[s] = true
				set = append(set, s)
			}
		}
	}
	return set, len(set) > 0 && len(set) <= maxClass
}

func exactConcat(parts []*syntax.Regexp) ([]string, bool) {
	run := []string{""}
	for _, part := range parts {
		set, ok := exact(part)
		if !ok {
			return nil, false
		}
		if run = cross(run, set); run == nil {
			return nil, false
		}
	}
	return run, true
}

func exactAlternate(parts []*syntax.Regexp) ([]string, bool) {
	var all []string
	for _, part := range parts {
		set, ok := exact(part)
		if !ok {
			return nil, false
		}
		all = append(all, set...)
	}
	return all, len(all) <= maxProduct
}

func cross(a, b []string) []string {
	if len(a)*len(b) > maxProduct {
		return nil
	}
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

func minLen(set []string) int {
	if len(set) == 0 {
		return 0
	}
	shortest := len(set[0])
	for _, s := range set[1:] {
		shortest = min(shortest, len(s))
	}
	return shortest
}
