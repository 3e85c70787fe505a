package statefile

import (
	"bytes"
	"testing"
)

// BenchmarkSlots is what every read and every write of a record pays besides the
// system's calls: both slots checked, and one sealed.
func BenchmarkSlots(b *testing.B) {
	payload := bytes.Repeat([]byte{7}, 200)
	file := append(seal(payload, 1), seal(payload, 2)...)
	valid := func([]byte) bool { return true }
	b.Run("read", func(b *testing.B) {
		var got slots
		for b.Loop() {
			got = readSlots(file, valid)
		}
		if got.seq != 2 {
			b.Errorf("readSlots = slot %d, want 2", got.seq)
		}
	})
	b.Run("seal", func(b *testing.B) {
		var got []byte
		for b.Loop() {
			got = seal(payload, 3)
		}
		if !intact(got) {
			b.Error("seal made a slot that is not intact")
		}
	})
}
