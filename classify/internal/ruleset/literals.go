package ruleset

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// Most lines of an output hold nothing that a rule looks for, and a regular
// expression is dear. So each pattern carries the literals of which one must be
// in every match; a line without them is never given to the expression.

const (
	maxProduct   = 48 // strings that a sequence may be spelled out to
	maxLiterals  = 64 // more literals than this are no filter any more
	shortLiteral = 3  // bytes; shorter ones are found in too many lines
	maxClass     = 10 // a class of more characters says nothing worth searching for
)

// Compile reads an expression of a rules file: RE2, case-insensitive, matched
// line by line.
func Compile(expr string) (*regexp.Regexp, error) { return regexp.Compile("(?i)" + expr) }

// NewPattern checks an expression, takes it apart into its alternatives and
// finds the literals of each.
func NewPattern(expr string) (Pattern, error) {
	if _, err := syntax.Parse("(?i)"+expr, syntax.Perl); err != nil {
		return nil, err
	}
	var p Pattern
	for _, alternative := range alternatives(expr) {
		re, err := syntax.Parse("(?i)"+alternative, syntax.Perl)
		if err != nil {
			return nil, err
		}
		need := required(re)
		if minLen(need) < 2 {
			need = nil
		}
		p = append(p, Expression{Expr: alternative, Need: need})
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

// Cheap reports whether literals keep most lines away from the expression.
func (e Expression) Cheap() bool { return minLen(e.Need) >= shortLiteral }

// required returns strings of which every match holds at least one, nil when
// there is no such set.
func required(re *syntax.Regexp) []string {
	if set, ok := exact(re); ok && minLen(set) > 0 {
		return set
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
		return requiredOfAll(re.Sub)
	}
	return nil
}

func requiredOfConcat(parts []*syntax.Regexp) []string {
	var best []string
	run := []string{""}
	flush := func() {
		best = better(best, run)
		run = []string{""}
	}
	for _, part := range parts {
		set, ok := exact(part)
		if !ok {
			flush()
			best = better(best, required(part))
			continue
		}
		if joined := cross(run, set); joined != nil {
			run = joined
			continue
		}
		flush()
		run = set
	}
	flush()
	return best
}

func requiredOfAll(parts []*syntax.Regexp) []string {
	var all []string
	for _, part := range parts {
		set := required(part)
		if set == nil {
			return nil
		}
		all = append(all, set...)
	}
	if len(all) > maxLiterals {
		return nil
	}
	return all
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

// better picks the set whose shortest literal is longer, up to a length that
// filters well enough, then the smaller set.
func better(a, b []string) []string {
	const enough = 6
	la, lb := min(minLen(a), enough), min(minLen(b), enough)
	if lb > la || lb == la && len(b) < len(a) {
		return b
	}
	return a
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
