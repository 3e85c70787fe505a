package classify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
)

func shellLines() []string {
	return []string{
		"curl -fsS http://h/", "  curl  x\t y ", "curl 'a b' \"c d\" e\\ f", `curl "a\"b\$c\d" $X "${Y:-z}" $1 $? a$`,
		"A=1 B='x y' curl z", "A=1", "curl x > out 2>&1", "curl x>out", "curl 2>/dev/null x", "curl x &> all", "curl x; ",
		"curl x;", "curl x # note", "curl x#y", "curl a=b", "ls *.go ~ [a-c] {a,b}", "", "# nothing", "curl ''", "sh -c 'x y'",
		"curl x | jq", "a && b", "a || b", "a; b", "a &", "(a)", "a $(b)", "a `b`", "a \"$(b)\"", "a \"`b`\"", "if a; then b; fi",
		"for i in 1; do x; done", "! a", "{ a; }", "a <<X", "a <<< x", "a <(b)", "a\nb", "a $'x'", "a \"b", "a 'b", "[[ -e x ]]", "time x",
		"a 2>", "a ${b", "a > \"$x\" b", "f() { x; }", "a=(1 2)", "a >&2", "a >| b", "a <> b", "a 2>&1 b",
	}
}

// TestSimpleCommandAgreesWithAShellsParser holds the small reader to a parser
// of the whole language: what it takes for one simple command is one.
func TestSimpleCommandAgreesWithAShellsParser(t *testing.T) {
	for _, line := range shellLines() {
		if d := cmp.Diff(parsed(line), simpleCommand(line)); d != "" {
			t.Errorf("simpleCommand(%q) differs from the parser (-parser +got):\n%s", line, d)
		}
	}
}

func FuzzSimpleCommand(f *testing.F) {
	for _, line := range shellLines() {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := simpleCommand(line)
		if got == nil || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			return
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
		if err == nil && len(file.Stmts) > 1 {
			t.Errorf("simpleCommand(%q) = %q, want nil: it is %d commands", line, got, len(file.Stmts))
		}
	})
}

// parsed is simpleCommand by the book.
func parsed(line string) []string {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Background || stmt.Negated || len(call.Args) == 0 {
		return nil
	}
	for _, r := range stmt.Redirs {
		if r.Hdoc != nil || r.Op == syntax.WordHdoc {
			return nil
		}
	}
	var argv []string
	for _, word := range call.Args {
		var b strings.Builder
		if !literalParts(&b, word.Parts) {
			return nil
		}
		argv = append(argv, b.String())
	}
	return argv
}

func literalParts(b *strings.Builder, parts []syntax.WordPart) bool {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar || !quotedParts(b, p.Parts) {
				return false
			}
		case *syntax.ParamExp:
			b.WriteByte('$')
		default:
			return false
		}
	}
	return true
}

func quotedParts(b *strings.Builder, parts []syntax.WordPart) bool {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.NewReplacer(`\"`, `"`, `\$`, `$`, `\\`, `\`).Replace(p.Value))
		case *syntax.ParamExp:
			b.WriteByte('$')
		default:
			return false
		}
	}
	return true
}

func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func TestCommandsOf(t *testing.T) {
	for line, want := range map[string][][]string{
		"a b":                             {{"a", "b"}},
		"cd /x && npm publish":            {{"npm", "publish"}},
		"a; b || c | d & e":               {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}},
		"set -e\na 'x;y'\n# note; no\nb":  {{"a", "x;y"}, {"b"}},
		"if a; then b; else c; fi":        {{"a"}, {"b"}, {"c"}},
		"for i in 1 2; do a $i; done":     {{"a", "$"}},
		"while ! a; do b; done":           {{"a"}, {"b"}},
		"{ a; b; }":                       {{"a"}, {"b"}},
		"a > out 2>&1 && X=1 b &> log; c": {{"a"}, {"b"}, {"c"}},
		"export A=1; exit 3":              nil,
		"a $(b)":                          nil,
		"a; (b)":                          nil,
		"case $x in a) b;; esac":          nil,
		"a 'b":                            nil,
		"":                                nil,
	} {
		got, _ := commandsOf(line)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("commandsOf(%q) differs (-want +got):\n%s", line, d)
		}
	}
}
