package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// simpleCommand returns the words of a shell line that is one simple command
// of literal words, else nil: a line with a pipe, a second command or an
// expansion is a program of its own, and its tool is the shell.
func simpleCommand(line string) []string {
	if plain(line) {
		return strings.Fields(line)
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Background || stmt.Coprocess || stmt.Negated || len(call.Args) == 0 {
		return nil
	}
	var argv []string
	for _, word := range call.Args {
		s, ok := literal(word)
		if !ok {
			return nil
		}
		argv = append(argv, s)
	}
	return argv
}

// plain reports whether a line has nothing in it that a shell would treat
// specially; most lines are like this and need no parser.
func plain(line string) bool {
	return line != "" && !strings.ContainsAny(line, "\\\"'`$&|;<>(){}[]*?~#!=\n\r") && !keyword(line)
}

func keyword(line string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch first {
	case "if", "for", "while", "until", "case", "function", "select", "time", "coproc":
		return true
	}
	return false
}

func literal(word *syntax.Word) (string, bool) {
	var b strings.Builder
	return literalParts(&b, word.Parts)
}

func literalParts(b *strings.Builder, parts []syntax.WordPart) (string, bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if _, ok := literalParts(b, p.Parts); !ok {
				return "", false
			}
		case *syntax.ParamExp:
			// The value is not known, but that hides neither tool nor flags.
			b.WriteByte('$')
		default:
			return "", false
		}
	}
	return b.String(), true
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
