package cmd

// What a child wrote, or a name that somebody else chose, is shown to people
// and stored for machines. Neither may be steered by it:
//
//   - terminal control goes: escape sequences as a whole, then every other
//     control character but newline and tab;
//   - characters that are not seen but change what is seen go: bidirectional
//     overrides, zero-width spaces, tags (all of Unicode's Cf, except the two
//     joiners that some scripts cannot be written without);
//   - a carriage return and the line separators of Unicode end a line;
//   - a run of bytes that are no UTF-8 becomes one replacement character, so
//     that nothing around it can close up into a new character.

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	escape    = 0x1b
	del       = 0x7f
	nonJoiner = 0x200c
	joiner    = 0x200d
)

// printable returns s as valid UTF-8 with nothing in it that acts instead of
// being seen. It returns its argument when that is plain ASCII text.
func printable(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	broken := false // the last bytes were no UTF-8
	for i := 0; i < len(s); {
		if s[i] == escape {
			i += escapeLength(s[i:])
			broken = false
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		wasBroken := broken
		broken = r == utf8.RuneError && size == 1
		switch {
		case broken && wasBroken:
		case r == '\r', r == 0x2028, r == 0x2029:
			if !strings.HasPrefix(s[i+size:], "\n") {
				b.WriteByte('\n')
			}
		case shown(r):
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= del {
			return false
		}
	}
	return true
}

func shown(r rune) bool {
	switch r {
	case '\n', '\t', nonJoiner, joiner:
		return true
	}
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
}

// escapeLength returns the length of the escape sequence at the start of s. A
// sequence that is broken off ends where the text goes on, so that a stray
// escape never swallows the error behind it.
func escapeLength(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		return csiLength(s)
	case ']', 'P', 'X', '^', '_':
		return stringLength(s)
	}
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		i++
	}
	return i
}

// csiLength is the length of ESC [ parameters final.
func csiLength(s string) int {
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x3f {
			return i
		}
	}
	return len(s)
}

// stringLength is the length of ESC ] text BEL and its kin, which set titles
// and links; one that its own line does not close is only its introducer.
func stringLength(s string) int {
	for i := 2; i < len(s); i++ {
		switch s[i] {
		case '\a':
			return i + 1
		case escape:
			if strings.HasPrefix(s[i:], "\x1b\\") {
				return i + 2
			}
			return i
		case '\n', '\r':
			return 2
		}
	}
	return 2
}

// oneLine puts a space in place of each run of blanks that breaks a line.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\t") {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	b.Grow(len(s))
	for s = strings.TrimSpace(s); s != ""; {
		n := strings.IndexAny(s, " \n\t")
		if n < 0 {
			n = len(s)
		}
		b.WriteString(s[:n])
		rest := strings.TrimLeft(s[n:], " \n\t")
		blanks := s[n : len(s)-len(rest)]
		if strings.ContainsAny(blanks, "\n\t") {
			blanks = " "
		}
		b.WriteString(blanks)
		s = rest
	}
	return b.String()
}

// cut returns the longest start of s of at most limit bytes that splits no
// character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
