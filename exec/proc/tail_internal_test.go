package proc

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTailAgainstModel(t *testing.T) { // scenario 55
	rapid.Check(t, func(t *rapid.T) {
		var ring tail
		var all []byte
		for range rapid.IntRange(0, 12).Draw(t, "writes") {
			b := make([]byte, rapid.OneOf(
				rapid.IntRange(0, 200),
				rapid.IntRange(0, 2*TailBytes),
				rapid.IntRange(TailBytes-1, TailBytes+1),
			).Draw(t, "size"))
			for i := range b {
				b[i] = byte(len(all) + i*7)
			}
			all = append(all, b...)
			ring.add(b)
		}
		want := all[max(0, len(all)-TailBytes):]
		got, truncated := ring.bytes()
		if !bytes.Equal(got, want) || truncated != (len(all) > TailBytes) {
			t.Fatalf("after %d bytes: tail of %d bytes, truncated %v, is not the last %d",
				len(all), len(got), truncated, len(want))
		}
	})
}

func TestPieces(t *testing.T) {
	long := strings.Repeat("x", pieceBytes)
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"short\nlines", "short\nlines"},
		{long, long},
		{long + "y", long},
		{"a\n" + long, "a\n"},
		{"a\nb\n" + long, "a\nb\n"},
	} {
		if got := string(piece([]byte(test.in))); got != test.want {
			t.Errorf("piece(%d bytes) = %d bytes, want %d", len(test.in), len(got), len(test.want))
		}
	}
}
