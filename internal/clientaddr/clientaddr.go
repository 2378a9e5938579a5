// Package clientaddr determines the client of an address. It promises that all protocols, limiters and blocks count a
// client alike.
package clientaddr

import "net/netip"

// BitsV6 is the prefix length that identifies an IPv6 client, because a household or a machine may use any address of
// its /64.
const BitsV6 = 64

// nat64 is the well-known prefix of IPv4 addresses behind a translator (RFC 6052). All of them are in one /64.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Plain returns the address without zone, and as IPv4 if it is an IPv4 address in IPv6 form: mapped (::ffff:192.0.2.1)
// or translated by NAT64 (64:ff9b::192.0.2.1).
func Plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !nat64.Contains(addr) {
		return addr
	}
	bytes := addr.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}

// Append appends the client of a valid address: IPv4 in dotted form, and IPv6 as its /64.
func Append(b []byte, addr netip.Addr) []byte {
	addr = Plain(addr)
	if addr.Is4() {
		return addr.AppendTo(b)
	}
	prefix, _ := addr.Prefix(BitsV6) // never fails for a valid address
	return prefix.AppendTo(b)
}
