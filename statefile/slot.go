package statefile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A record file is two slots of slotSize bytes:
//
//	offset  0  magic "rtyx"
//	offset  4  version, 2 bytes little-endian
//	offset  6  length of the payload, 2 bytes
//	offset  8  sequence number, 8 bytes
//	offset 16  payload, then zeros
//	offset 508 CRC-32C of the 508 bytes before
//
// The valid slot with the higher sequence number is the record. Every version
// keeps the first two fields and the checksum where they are, so that an older
// program can tell a newer file from a damaged one.

const (
	slotSize   = 512
	fileSize   = 2 * slotSize
	headerSize = 16
	crcOffset  = slotSize - 4
	version    = 1

	// MaxPayload is the most bytes a record can hold.
	MaxPayload = crcOffset - headerSize
)

const magic = "rtyx"

// highestSeq is where numbers end. A slot beyond it cannot have been written by
// counting, and nothing could ever follow it.
const highestSeq = 1 << 62

// slots is what was read from a file.
type slots struct {
	payload []byte // of the current slot, nil if none is valid
	seq     uint64
	at      int // which slot is the current one
	newer   bool
}

// readSlots finds the current slot in the bytes of a file: the newer one that is
// intact and whose payload is valid. A file that lost its end is like one whose
// second slot is damaged.
func readSlots(data []byte, valid func([]byte) bool) slots {
	switch {
	case len(data) == fileSize:
	case claimsNewer(data):
		return slots{newer: true}
	case len(data) > fileSize:
		return slots{}
	default: // cut off
		data = append(data, make([]byte, fileSize-len(data))...)
	}
	current, other := readSlot(data, 0), readSlot(data, 1)
	if current.payload == nil || other.payload != nil && other.seq > current.seq {
		current, other = other, current
	}
	switch {
	case current.newer || other.newer:
		return slots{newer: true}
	case current.payload != nil && valid(current.payload):
		return current
	case other.payload != nil && valid(other.payload):
		return other
	}
	return slots{}
}

func readSlot(data []byte, at int) slots {
	slot := data[at*slotSize : (at+1)*slotSize]
	if !intact(slot) {
		return slots{}
	}
	if claimsNewer(slot) {
		return slots{newer: true}
	}
	payload, seq, ok := unseal(slot)
	if !ok {
		return slots{}
	}
	return slots{payload: payload, seq: seq, at: at}
}

// seal makes a slot.
func seal(payload []byte, seq uint64) []byte {
	slot := make([]byte, slotSize)
	copy(slot, magic)
	binary.LittleEndian.PutUint16(slot[4:], version)
	binary.LittleEndian.PutUint16(slot[6:], uint16(len(payload)))
	binary.LittleEndian.PutUint64(slot[8:], seq)
	copy(slot[headerSize:crcOffset], payload)
	binary.LittleEndian.PutUint32(slot[crcOffset:], checksum(slot))
	return slot
}

func unseal(slot []byte) (payload []byte, seq uint64, ok bool) {
	length := int(binary.LittleEndian.Uint16(slot[6:]))
	seq = binary.LittleEndian.Uint64(slot[8:])
	if binary.LittleEndian.Uint16(slot[4:]) != version || length > MaxPayload || seq >= highestSeq {
		return nil, 0, false
	}
	return slot[headerSize : headerSize+length : headerSize+length], seq, true
}

func intact(slot []byte) bool {
	return bytes.HasPrefix(slot, []byte(magic)) &&
		binary.LittleEndian.Uint32(slot[crcOffset:]) == checksum(slot)
}

func claimsNewer(data []byte) bool {
	return len(data) >= headerSize && bytes.HasPrefix(data, []byte(magic)) &&
		binary.LittleEndian.Uint16(data[4:]) > version
}

func checksum(slot []byte) uint32 {
	return crc32.Checksum(slot[:crcOffset], crc32.MakeTable(crc32.Castagnoli))
}
