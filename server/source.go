package server

import "net/netip"

// sourceBits is how much of an IPv6 address names a client: whoever has one has the
// whole /64, and could else be somebody new for each connection.
const sourceBits = 64

// sourceOf is who is counted for a connection from host:port: an IPv4 address or an IPv6
// network. The zero Addr stands for everything else, which is on this machine.
func sourceOf(remote string) netip.Addr {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(sourceBits) // the error is for too many bits
		return network.Addr()
	}
	return ip
}
