package classify

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How an output is made readable before anything is looked for in it:
//
//   - only the last 64 KiB count;
//   - terminal control goes: CSI, OSC, DCS, lone escapes, backspaces;
//   - a carriage return ends a line, so that a progress bar's last state stands
//     alone and CRLF becomes one line end;
//   - NUL, other control characters and invalid UTF-8 go;
//   - lines that a nested retryx wrote go: they tell of judgements, not causes.

// maxText is how much of the end of an output is looked at, in bytes.
const maxText = 64 << 10

const (
	nestedPrefix = "retryx: "
	nestedSchema = `"schema":"retryx.outcome/v1"`
	nestedTitle  = " title=retryx%3A " // of an annotation for GitHub Actions
)

// clean returns the readable lines of an output, joined by newlines.
func clean(raw []byte) string {
	if len(raw) > maxText {
		raw = raw[len(raw)-maxText:]
	}
	if len(raw) == 0 {
		return ""
	}
	return withoutNested(withoutControl(raw))
}

func withoutControl(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == 0x1b:
			i += escapeLen(raw[i:])
		case c == '\r':
			out = endLine(out)
			i++
			if i < len(raw) && raw[i] == '\n' {
				i++
			}
		case c == '\n', c == '\t':
			out = append(out, c)
			i++
		case c == '\b':
			out = eraseLast(out)
			i++
		case c < 0x20, c == 0x7f:
			i++
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRune(raw[i:])
			if valid := r != utf8.RuneError || size > 1; valid && !unicode.IsControl(r) {
				out = append(out, raw[i:i+size]...)
			}
			i += size
		}
	}
	return string(out)
}

// endLine does not add a second line end, so that "\r\r\n" is one.
func endLine(out []byte) []byte {
	if len(out) == 0 || out[len(out)-1] == '\n' {
		return out
	}
	return append(out, '\n')
}

func eraseLast(out []byte) []byte {
	if len(out) == 0 || out[len(out)-1] == '\n' {
		return out
	}
	_, size := utf8.DecodeLastRune(out)
	return out[:len(out)-size]
}

// escapeLen returns the length of the control sequence at the start of s. A
// string sequence that is never closed ends with its line, so that a stray
// escape cannot swallow the error behind it.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 1
	}
	switch s[1] {
	case '[':
		return csiLen(s)
	case ']', 'P', 'X', '^', '_':
		return stringLen(s)
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

func csiLen(s []byte) int {
	for i := 2; i < len(s); i++ {
		switch {
		case s[i] >= 0x40 && s[i] <= 0x7e:
			return i + 1
		case s[i] < 0x20 || s[i] > 0x3f: // broken off
			return i
		}
	}
	return len(s)
}

func stringLen(s []byte) int {
	for i := 2; i < len(s); i++ {
		switch s[i] {
		case 0x07:
			return i + 1
		case 0x1b:
			if i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			return i
		case '\n', '\r':
			return i
		}
	}
	return len(s)
}

func withoutNested(s string) string {
	if !strings.Contains(s, nestedPrefix) && !strings.Contains(s, nestedSchema) && !strings.Contains(s, nestedTitle) {
		return s
	}
	var kept []string
	for line := range strings.SplitSeq(s, "\n") {
		if !isNested(line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func isNested(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, nestedPrefix) ||
		strings.HasPrefix(line, "::warning"+nestedTitle) || strings.HasPrefix(line, "::error"+nestedTitle) ||
		strings.HasPrefix(line, "{") && strings.Contains(line, nestedSchema)
}

// blank reports whether an output has nothing to read in it.
func blank(raw []byte) bool { return len(bytes.TrimSpace(raw)) == 0 }
