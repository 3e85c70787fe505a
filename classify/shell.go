package classify

import "strings"

// What of a shell line is looked into: one simple command. Its words may be
// quoted and may hold parameters, whose values are not known but hide neither
// tool nor flags; assignments before it and redirections are left out, but that
// a command which only reads saves its output is remembered: what the file is
// for (a log, a queue) nobody can tell. A line
// with a pipe, a second command, a substitution or a keyword is a program of
// its own, and its tool is the shell; its commands are read only for what they
// do to the world. A parser of the whole language would cost every run more
// than it could tell here.

// simpleCommand returns the words of a shell line that is one simple command,
// else nil.
func simpleCommand(line string) []string {
	s := shellLine{rest: strings.TrimSpace(line)}
	for s.next() {
	}
	if s.odd || len(s.words) > 0 && keyword(s.words[0]) {
		return nil
	}
	return s.words
}

// saves reports whether the simple command of a line writes to a file.
func saves(line string) bool {
	if strings.IndexByte(line, '>') < 0 {
		return false
	}
	s := shellLine{rest: strings.TrimSpace(line)}
	for s.next() {
	}
	return s.saves
}

// commandsOf returns the simple commands of a shell line, without keywords and
// without those that only prepare (cd, export), and whether any command of it
// writes to a file; nil for a line that cannot be taken apart.
func commandsOf(line string) (all [][]string, saves bool) {
	s := shellLine{rest: strings.TrimSpace(line)}
	for {
		for s.next() {
		}
		if s.odd && separator(s.rest) == 0 {
			return nil, false
		}
		saves = saves || s.saves
		words, ok := withoutKeywords(s.words)
		if !ok {
			return nil, false
		}
		if len(words) > 0 && !preparation(words[0]) {
			all = append(all, words)
		}
		s = shellLine{rest: afterCommand(s.rest)}
		if s.rest == "" {
			return all, saves
		}
	}
}

// separator returns the length of what ends a command at the start of s, 0 for
// nothing.
func separator(s string) int {
	for _, end := range [...]string{"&&", "||", "|&", ";;", ";", "|", "&", "\n"} {
		if strings.HasPrefix(s, end) && !strings.HasPrefix(s, "&>") {
			return len(end)
		}
	}
	return 0
}

// afterCommand returns what follows the command that ends at the start of s.
func afterCommand(s string) string {
	if strings.HasPrefix(s, "#") {
		_, s, _ = strings.Cut(s, "\n")
	}
	return strings.TrimSpace(s[separator(s):])
}

// withoutKeywords takes off what stands before a command within a compound one;
// false when the words are no command at all.
func withoutKeywords(words []string) ([]string, bool) {
	for len(words) > 0 {
		switch words[0] {
		case "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "}", "fi", "done":
			words = words[1:]
		case "for":
			return nil, true
		default:
			return words, !keyword(words[0])
		}
	}
	return nil, true
}

// preparation reports whether a command only sets the stage for others.
func preparation(word string) bool {
	switch word {
	case "cd", "pushd", "popd", "set", "export", "unset", "umask", "ulimit", "exit", "wait", "trap", "shift",
		"local", "readonly", "declare", "[", ":", "return", "read", "true", "false", "break", "continue", "shopt", "alias":
		return true
	}
	return false
}

// keyword reports whether a command word begins a compound command.
func keyword(word string) bool {
	switch word {
	case "if", "for", "while", "until", "case", "function", "select", "time", "coproc", "{", "}", "!", "[[",
		"then", "do", "done", "fi", "elif", "else", "esac", "in":
		return true
	}
	return false
}

// shellLine is a line that is being taken apart.
type shellLine struct {
	rest  string
	words []string
	odd   bool // it is more than one simple command
	skip  bool // the next word is where a redirection goes
	out   bool // and it is one of output
	saves bool // output goes to a file
}

// next takes one word or redirection and reports whether there may be more.
func (s *shellLine) next() bool {
	s.rest = strings.TrimLeft(s.rest, " \t")
	if s.rest == "" || s.rest[0] == '#' || s.rest == ";" || s.odd {
		s.odd = s.odd || s.skip
		return false
	}
	if n := redirection(s.rest); n > 0 {
		s.odd = s.skip
		s.out = strings.IndexByte(s.rest[:n], '>') >= 0
		s.rest, s.skip = s.rest[n:], true
		return !s.odd
	}
	if separator(s.rest) > 0 {
		s.odd = true
		return false
	}
	before := s.rest
	word, ok := s.word()
	switch {
	case !ok:
		s.odd = true
	case s.skip:
		s.skip = false
		s.saves = s.saves || s.out && isFile(word)
	case len(s.words) == 0 && assignment(before):
	default:
		s.words = append(s.words, word)
	}
	return !s.odd
}

// isFile reports whether output that goes there stays there. What follows >& may
// be a descriptor, too.
func isFile(target string) bool {
	switch target {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return false
	}
	return strings.Trim(target, "0123456789-") != "" && !strings.HasPrefix(target, "/dev/fd/")
}

// redirection returns the length of the operator at the start of s, with the
// descriptor before it; 0 when there is none. Here documents are none.
func redirection(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	for _, op := range [...]string{"&>>", "&>", ">>", ">&", ">|", "<>", "<&", ">", "<"} {
		after, found := strings.CutPrefix(s[n:], op)
		if found && !strings.HasPrefix(after, "(") && !strings.HasPrefix(after, "<") {
			return n + len(op)
		}
	}
	return 0
}

// assignment reports whether a word starts with NAME=.
func assignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	name = strings.TrimSuffix(name, "+")
	return found && name != "" && strings.IndexByte("0123456789", name[0]) < 0 && strings.IndexFunc(name, notInName) < 0
}

func notInName(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// word takes a word off the line, without its quotes; false when there is
// something in or behind it that is more than a word.
func (s *shellLine) word() (string, bool) {
	var b strings.Builder
	for s.rest != "" {
		c := s.rest[0]
		switch c {
		case ' ', '\t':
			return b.String(), true
		case ';', '\n', '&', '|':
			return b.String(), true // what ends the command is the caller's
		case '<', '>':
			return b.String(), redirection(s.rest) > 0 // it needs no blank before it
		case '\r', '(', ')', '`':
			return "", false
		}
		part, n := s.part(c)
		if n == 0 {
			return "", false
		}
		b.WriteString(part)
		s.rest = s.rest[n:]
	}
	return b.String(), true
}

// part reads a quoted string, an escape, a parameter or one plain character,
// which begins with c, and returns its length; 0 when it is more than that.
func (s *shellLine) part(c byte) (string, int) {
	switch c {
	case '\'':
		if end := strings.IndexByte(s.rest[1:], '\''); end >= 0 {
			return s.rest[1 : 1+end], end + 2
		}
		return "", 0
	case '"':
		return doubleQuoted(s.rest)
	case '\\':
		if len(s.rest) > 1 && s.rest[1] != '\n' {
			return s.rest[1:2], 2
		}
		return "", 0
	case '$':
		return parameter(s.rest, false)
	}
	return s.rest[:1], 1
}

func doubleQuoted(s string) (string, int) {
	var b strings.Builder
	for i := 1; i < len(s); {
		switch c := s[i]; c {
		case '"':
			return b.String(), i + 1
		case '`':
			return "", 0
		case '\\':
			if i+1 < len(s) && strings.IndexByte("\\\"$`", s[i+1]) >= 0 {
				i++
			}
			if i < len(s) {
				b.WriteByte(s[i])
				i++
			}
		case '$':
			part, n := parameter(s[i:], true)
			if n == 0 {
				return "", 0
			}
			b.WriteString(part)
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return "", 0 // never closed
}

// parameter reads $NAME, ${...} or a lone $, and stands for it with a "$".
func parameter(s string, quoted bool) (string, int) {
	if len(s) == 1 {
		return "$", 1
	}
	switch c := s[1]; {
	case c == '(' || !quoted && (c == '\'' || c == '"'):
		return "", 0
	case c == '{':
		end := strings.IndexByte(s, '}')
		if end < 0 || strings.ContainsAny(s[:end], "`'\"\\") || strings.Contains(s[2:end], "$") {
			return "", 0 // may nest; no matter what it means
		}
		return "$", end + 1
	case strings.IndexByte("@*#?-$!0123456789", c) >= 0:
		return "$", 2
	}
	n := 1
	for n < len(s) && !notInName(rune(s[n])) {
		n++
	}
	return "$", n
}
