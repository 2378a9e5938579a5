// Package network parses the addresses and networks of clients.
//
// Replicas decide by these networks, so all versions of weir and of Go must parse a text alike. The package therefore
// has a parser of its own. It promises that an address that several texts name is one Network: an IPv4 address may be
// in IPv6 form (::ffff:192.0.2.1), or translated by NAT64 (64:ff9b::192.0.2.1).
package network

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// Network is an address (Bits is 32 or 128), or the addresses that begin with the first Bits bits of one.
type Network struct {
	hi, lo uint64 // IPv4: the upper half of hi
	Bits   int
	V4     bool
}

// The bounds of a network that a block may name. Wider ones block much of the Internet by a typo. A longer IPv6 network
// is one client, and is blocked as its /64.
const (
	WidestV4, LongestV4 = 8, 31
	WidestV6, LongestV6 = 16, 63
)

// IsSeveral reports whether the network has several clients, and is no wider than a block may be.
func (n Network) IsSeveral() bool {
	if n.V4 {
		return WidestV4 <= n.Bits && n.Bits <= LongestV4
	}
	return WidestV6 <= n.Bits && n.Bits <= LongestV6
}

// Mask returns the network of the first bits bits.
func (n Network) Mask(bits int) Network {
	n.Bits = bits
	n.hi &= first(bits)
	n.lo &= first(bits - 64)
	return n
}

// Append appends the text of an address or a network as the server writes it: IPv4 addresses, IPv6 clients (their /64),
// and networks. IsWritten reports whether a text is one.
func (n Network) Append(b []byte) []byte {
	if n.V4 {
		for i := range 4 {
			if i > 0 {
				b = append(b, '.')
			}
			b = strconv.AppendUint(b, n.hi>>(56-8*i)&0xff, 10)
		}
		if n.Bits == 32 {
			return b
		}
	} else {
		for hi := n.hi; hi != 0; hi <<= 16 {
			b = append(strconv.AppendUint(b, hi>>48, 16), ':')
		}
		if b = append(b, ':'); n.hi == 0 {
			b = append(b, ':')
		}
	}
	return strconv.AppendInt(append(b, '/'), int64(n.Bits), 10)
}

// IsWritten reports whether a text is an address or a network as Append writes it.
func IsWritten(text string) bool {
	n, ok := Parse([]byte(text))
	one := n.V4 && n.Bits == 32 || !n.V4 && n.Bits == 64
	return ok && (one || n.IsSeveral()) && n.Mask(n.Bits) == n && string(n.Append(nil)) == text
}

// Bytes returns bytes that differ for different networks.
func (n Network) Bytes() (b [18]byte) {
	binary.BigEndian.PutUint64(b[:], n.hi)
	binary.BigEndian.PutUint64(b[8:], n.lo)
	if b[16] = byte(n.Bits); n.V4 {
		b[17] = 1
	}
	return b
}

// first returns a number whose first n bits are set.
func first(n int) uint64 {
	if n <= 0 {
		return 0
	}
	return ^uint64(0) << max(64-n, 0)
}

// Parse parses an address like 192.0.2.1 or 2001:db8::1, or a network like 192.0.2.0/24. It accepts a zone after an
// IPv6 address.
func Parse(text []byte) (n Network, ok bool) {
	addr, length, isPrefix := bytes.Cut(text, []byte{'/'})
	n.Bits = 128
	v4, ok := parseV4(addr)
	if ok {
		n.V4, n.hi, n.Bits = true, uint64(v4)<<32, 32
	} else if addr, ok = cutZone(addr, !isPrefix); ok {
		n.hi, n.lo, ok = parseV6(addr)
	}
	if isPrefix && ok {
		n.Bits, ok = parseBits(length, n.Bits)
	}
	return n.plain(), ok
}

// plain returns the IPv4 form of an IPv4 address in IPv6 form.
func (n Network) plain() Network {
	mapped := n.hi == 0 && n.lo>>32 == 0xffff
	if nat64 := n.hi == 0x64ff9b<<32 && n.lo>>32 == 0; n.V4 || !mapped && !nat64 {
		return n
	}
	return Network{hi: n.lo << 32, Bits: max(n.Bits-96, 0), V4: true}
}

func parseBits(b []byte, most int) (bits int, ok bool) {
	if len(b) == 0 || len(b) > 3 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		bits = 10*bits + int(c-'0')
	}
	return bits, bits <= most
}

func parseV4(b []byte) (v uint32, ok bool) {
	for i := range 4 {
		part := b
		if i < 3 {
			dot := bytes.IndexByte(b, '.')
			if dot < 0 {
				return 0, false
			}
			part, b = b[:dot], b[dot+1:]
		}
		octet, ok := parseBits(part, 255)
		if !ok {
			return 0, false
		}
		v = v<<8 | uint32(octet)
	}
	return v, true
}

// cutZone removes the zone of an address, if it may have one.
func cutZone(b []byte, allowed bool) (addr []byte, ok bool) {
	addr, zone, found := bytes.Cut(b, []byte{'%'})
	return addr, !found || allowed && len(zone) > 0
}

func parseV6(b []byte) (hi, lo uint64, ok bool) {
	left, right, elided := bytes.Cut(b, []byte("::"))
	if !elided {
		n := 0
		hi, lo, n, ok = parseGroups(b, true)
		return hi, lo, ok && n == 8
	}
	n, m := 0, 0
	if len(left) > 0 {
		if hi, lo, n, ok = parseGroups(left, false); !ok {
			return 0, 0, false
		}
		hi, lo = shift(hi, lo, 8-n)
	}
	if len(right) > 0 {
		var rightHi, rightLo uint64
		if rightHi, rightLo, m, ok = parseGroups(right, true); !ok {
			return 0, 0, false
		}
		hi, lo = hi|rightHi, lo|rightLo
	}
	return hi, lo, n+m < 8
}

// parseGroups parses up to 8 groups of 16 bits, of which the last two may be an IPv4 address. The last group is the
// lowest of lo.
func parseGroups(b []byte, v4 bool) (hi, lo uint64, n int, ok bool) {
	for more := true; more; {
		var group []byte
		group, b, more = bytes.Cut(b, []byte{':'})
		if v, is := parseV4(group); is && v4 && !more && n <= 6 {
			hi, lo = shift(hi, lo, 2)
			return hi, lo | uint64(v), n + 2, true
		}
		v, ok := parseHex(group)
		if !ok || n == 8 {
			return 0, 0, 0, false
		}
		hi, lo = shift(hi, lo, 1)
		lo, n = lo|v, n+1
	}
	return hi, lo, n, true
}

// shift shifts a number of 128 bits to the left by n times 16 bits.
func shift(hi, lo uint64, n int) (uint64, uint64) {
	if n >= 4 {
		return lo << (16 * (n - 4)), 0
	}
	return hi<<(16*n) | lo>>(64-16*n), lo << (16 * n)
}

func parseHex(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 4 {
		return 0, false
	}
	for _, c := range b {
		digit := uint64(c - '0')
		switch lower := c | 0x20; {
		case digit <= 9:
		case lower >= 'a' && lower <= 'f':
			digit = uint64(lower-'a') + 10
		default:
			return 0, false
		}
		v = v<<4 | digit
	}
	return v, true
}
