package hashslot

import (
	"bytes"

	"github.com/weir-project/weir/engine/internal/rule"
)

// Count is the number of slots.
const Count = 16384

// Of returns the slot of a key, from 0 to Count-1. If the key has a non-empty hash tag, only the tag is hashed. The
// hash tag is the text between the first '{' and the first '}' after it.
//
// The slot of a stored key (see engine.AppendStored) does not depend on its database.
func Of(key []byte) uint16 {
	_, key = rule.CutDatabase(key)
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if length := bytes.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return crc16(key) % Count
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, initial value 0, no reflection. It takes four bytes in a step
// (slicing-by-4), because each node computes the slot of each operation.
func crc16(b []byte) (crc uint16) {
	r := &remainders
	for ; len(b) >= 4; b = b[4:] {
		crc = r[3][byte(crc>>8)^b[0]] ^ r[2][byte(crc)^b[1]] ^ r[1][b[2]] ^ r[0][b[3]]
	}
	for _, c := range b {
		crc = crc<<8 ^ r[0][byte(crc>>8)^c]
	}
	return crc
}

// remainders[n] are the remainders of each byte followed by n zero bytes and 16 zero bits.
var remainders = func() (tables [4][256]uint16) {
	for i := range tables[0] {
		crc := uint16(i) << 8
		for n := range tables {
			for range 8 {
				carry := crc&0x8000 != 0
				crc <<= 1
				if carry {
					crc ^= 0x1021
				}
			}
			tables[n][i] = crc
		}
	}
	return tables
}()
