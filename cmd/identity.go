package cmd

// Who a run is. Run ids and keys are ULIDs: they sort by time. The key of a
// nested invocation is derived from the inherited one, its step, its command
// and its ordinal among equal calls in this attempt of the parent: two writes
// under one parent never share a key, and an outer retry reproduces the keys
// of the inner ones.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

const longestRunID = 128

// id is a ULID: 48 bits of milliseconds since 1970, then 80 random ones.
type id [16]byte

func newID() string {
	var i id
	binary.BigEndian.PutUint64(i[:8], uint64(time.Now().UnixMilli())<<16|rand.Uint64()>>48)
	binary.BigEndian.PutUint64(i[8:], rand.Uint64())
	return i.String()
}

// String writes the 128 bits as 26 digits of base 32, in Crockford's alphabet,
// whose order is that of the bits.
func (i id) String() string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	high, low := binary.BigEndian.Uint64(i[:8]), binary.BigEndian.Uint64(i[8:])
	var text [26]byte
	for n := len(text) - 1; n >= 0; n-- {
		text[n] = digits[low&31]
		high, low = high>>5, high<<59|low>>5
	}
	return string(text[:])
}

// parseRunID accepts what can stand in file names, keys and reports.
func parseRunID(s string) (string, error) {
	if len(s) > longestRunID || !wellFormedRunID(s) {
		return "", fmt.Errorf("want up to %d letters, digits and . _ : - after a letter or digit, not %q", longestRunID, s)
	}
	return s, nil
}

func wellFormedRunID(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == ':' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// callHash names what is called: its step and its command.
func callHash(step string, argv []string) [sha256.Size]byte {
	h := sha256.New()
	part := func(s string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:]) // lengths keep ["ab","c"] and ["a","bc"] apart
		h.Write([]byte(s))
	}
	part(step)
	for _, a := range argv {
		part(a)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// deriveKey is the key of the ordinal-th call under a parent with key parent.
func deriveKey(parent string, call [sha256.Size]byte, ordinal int) string {
	h := sha256.New()
	h.Write([]byte(parent))
	h.Write(call[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(ordinal))
	h.Write(n[:])
	return id(h.Sum(nil)[:16]).String()
}
