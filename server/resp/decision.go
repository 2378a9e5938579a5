package resp

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// maxDecisionBytes is the longest reply of five integers: the header, and five times a colon, a sign, 19 digits and the
// line end. Eight more bytes are spare: putInt writes words of four or eight bytes, which may extend beyond the reply.
const maxDecisionBytes = 4 + 5*(1+1+19+2) + 8

// Decision is on the hot path, so it writes in place instead of appending byte by byte.
func (w *Wire) Decision(more int, allowed, remaining, retryMs, resetMs, limit int64) {
	n := len(w.Out)
	if cap(w.Out)-n < maxDecisionBytes {
		w.Out = append(w.Out, make([]byte, maxDecisionBytes)...)[:n]
	}
	buf := w.Out[:n+maxDecisionBytes]
	le.PutUint32(buf[n:], '*'|uint32('0'+5+more)<<8|crlf<<16)
	n = putInt(buf, n+4, allowed)
	n = putInt(buf, n, remaining)
	n = putInt(buf, n, retryMs)
	n = putInt(buf, n, resetMs)
	n = putInt(buf, n, limit)
	w.Out = buf[:n]
}

// putInt writes ":v\r\n" at buf[at:], which has enough space for the longest integer, and returns its end. Most numbers
// of a decision are small, and those take one store.
func putInt(buf []byte, at int, v int64) int {
	switch u := uint64(v); {
	case u < 10:
		le.PutUint32(buf[at:], ':'|uint32(u+'0')<<8|crlf<<16)
		return at + 4
	case u < 100:
		le.PutUint64(buf[at:], ':'|(u/10+'0')<<8|(u%10+'0')<<16|crlf<<24)
		return at + 5
	case u < 1000:
		le.PutUint64(buf[at:], ':'|(u/100+'0')<<8|(u/10%10+'0')<<16|(u%10+'0')<<24|crlf<<32)
		return at + 6
	case u < 1e8:
		return putDigits(buf, at, u)
	}
	line := strconv.AppendInt(append(buf[:at], ':'), v, 10)
	line = append(line, '\r', '\n')
	return len(line)
}

// putDigits does the same as putInt for numbers from 1 to 1e8-1: times and large limits.
//
// digits has the eight decimal digits of the number, one in each byte, the first in the lowest byte. The number is
// split into two groups of four digits, then into four groups of two, then into single digits. Each step splits all
// groups with one multiplication (Paul Khuong, "How to print integers really fast", pvk.ca, 2017): n*10486>>20 equals
// n/100 for n below 1e4, and n*103>>10 equals n/10 for n below 100.
func putDigits(buf []byte, at int, u uint64) int {
	fours := u/1e4 | u%1e4<<32
	hundreds := fours * 10486 >> 20 & 0x7f_0000_007f
	twos := hundreds | (fours-100*hundreds)<<16
	tens := twos * 103 >> 10 & 0x0f_000f_000f_000f
	digits := tens | (twos-10*tens)<<8
	zeros := bits.TrailingZeros64(digits) / 8 // leading zeros
	buf[at] = ':'
	le.PutUint64(buf[at+1:], (digits|'0'*eachByte)>>(8*zeros))
	end := at + 1 + 8 - zeros
	le.PutUint16(buf[end:], crlf)
	return end + 2
}

// eachByte times a byte repeats that byte eight times.
const eachByte = 0x0101_0101_0101_0101

var le = binary.LittleEndian

// crlf is a line end as a little-endian number.
const crlf = '\r' | '\n'<<8
