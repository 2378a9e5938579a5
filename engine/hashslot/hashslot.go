package hashslot

import "bytes"

// Count is the number of slots.
const Count = 16384

// Of returns the slot of a key, from 0 to Count-1. If the key has a non-empty hash tag, only the tag is hashed. The
// hash tag is the text between the first '{' and the first '}' after it.
func Of(key []byte) uint16 {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if length := bytes.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return crc16(key) % Count
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, initial value 0, no reflection.
func crc16(b []byte) (crc uint16) {
	for _, c := range b {
		crc = crc<<8 ^ remainders[byte(crc>>8)^c]
	}
	return crc
}

// remainders are the remainders of each byte followed by 16 zero bits.
var remainders = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()
