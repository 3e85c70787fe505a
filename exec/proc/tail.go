package proc

// A tail is a ring that keeps the last TailBytes added to it. It grows with its
// content, so that a silent child costs nothing.
type tail struct {
	ring  []byte
	next  int // where the next byte goes once the ring is full
	total int64
}

func (t *tail) add(b []byte) {
	t.total += int64(len(b))
	if len(b) >= TailBytes {
		t.ring = append(t.ring[:0], b[len(b)-TailBytes:]...)
		t.next = 0
		return
	}
	room := min(TailBytes-len(t.ring), len(b))
	t.ring = append(t.ring, b[:room]...)
	for b = b[room:]; len(b) > 0; {
		n := copy(t.ring[t.next:], b)
		t.next = (t.next + n) % TailBytes
		b = b[n:]
	}
}

// bytes returns the tail in order, and whether bytes before it were dropped.
func (t *tail) bytes() ([]byte, bool) {
	out := make([]byte, 0, len(t.ring))
	out = append(out, t.ring[t.next:]...)
	out = append(out, t.ring[:t.next]...)
	return out, t.total > int64(len(t.ring))
}
