package statefile

import (
	"bytes"
	"encoding/binary"
)

// Reseal returns the bytes of a file with another sequence number in a slot, and
// a checksum that fits.
func Reseal(data []byte, slot int, seq uint64) []byte {
	return patch(data, slot, func(s []byte) { binary.LittleEndian.PutUint64(s[8:], seq) })
}

// Reversion does the same for the version of a slot.
func Reversion(data []byte, slot int, version uint16) []byte {
	return patch(data, slot, func(s []byte) { binary.LittleEndian.PutUint16(s[4:], version) })
}

func patch(data []byte, slot int, change func([]byte)) []byte {
	data = bytes.Clone(data)
	s := data[slot*slotSize : (slot+1)*slotSize]
	change(s)
	binary.LittleEndian.PutUint32(s[crcOffset:], checksum(s))
	return data
}
