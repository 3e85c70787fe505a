package classify

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "a\nb", "a\nb"},
		{"colour", "\x1b[1;31merror\x1b[0m: x", "error: x"},
		{"erase inside a word", "Connec\x1b[Ktion refused", "Connection refused"},
		{"title", "\x1b]0;title\x07error", "error"},
		{"hyperlink", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"title never closed", "\x1b]0;title\nerror", "\nerror"},
		{"charset", "\x1b(Berror", "error"},
		{"lone escape", "a\x1b", "a"},
		{"broken CSI", "\x1b[12\nerror", "\nerror"},
		{"CRLF", "a\r\nb\r\n", "a\nb\n"},
		{"progress bar", "10%\r20%\rerror: x\n", "10%\n20%\nerror: x\n"},
		{"NUL and bell", "a\x00b\x07c", "abc"},
		{"UTF-16", "e\x00r\x00r\x00", "err"},
		{"invalid UTF-8", "refus\xe9e \xff\xfe", "refuse "},
		{"C1 control", "a\u009bb", "ab"},
		{"overstrike", "x\bxy\by", "xy"},
		{"backspace at line start", "\n\bx", "\nx"},
		{"nested line", "retryx: retry 1 after 503\nboom", "boom"},
		{"nested annotation", "::warning title=retryx%3A attempt 1 of 4 failed::HTTP 404; permanent\n::error title=eslint::boom", "::error title=eslint::boom"},
		{"nested outcome", "boom\n{\"schema\":\"retryx.outcome/v1\",\"class\":\"transient\"}\n", "boom\n"},
		{"its name elsewhere", "see retryx: docs", "see retryx: docs"},
		{"empty", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := clean([]byte(tc.in)); got != tc.want {
				t.Errorf("clean(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestCleanKeepsTheEnd(t *testing.T) {
	in := strings.Repeat("x", maxText) + "end"
	if got := clean([]byte(in)); len(got) != maxText || !strings.HasSuffix(got, "end") {
		t.Errorf("clean(%d bytes) = %d bytes ending %q, want the last %d", len(in), len(got), got[len(got)-3:], maxText)
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("\x1b[31mx\x1b]0;y\x07\r\n\b\xff\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got := clean(in)
		if len(got) > maxText {
			t.Errorf("clean(%q) has %d bytes, want at most %d", in, len(got), maxText)
		}
		if !utf8.ValidString(got) {
			t.Errorf("clean(%q) = %q, want valid UTF-8", in, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }); i >= 0 {
			t.Errorf("clean(%q) = %q, want no control characters", in, got)
		}
	})
}
