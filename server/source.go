package server

import (
	"net"
	"net/netip"
)

// sourceBits is how much of an IPv6 address names a client: whoever has one has the
// whole /64, and could else be somebody new for each connection.
const sourceBits = 64

// sourceOf is who is counted for a connection: an IPv4 address or an IPv6 network. The
// zero Addr stands for everything else, which is on this machine.
func sourceOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(sourceBits) // the error is for too many bits
		return network.Addr()
	}
	return ip
}
