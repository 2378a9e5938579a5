package arg

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weir-project/weir/engine/network"
	"github.com/weir-project/weir/internal/clientaddr"
	"github.com/weir-project/weir/limits"
)

// AddressPrefix begins a key that is an address and names its kind, like ip:192.0.2.66.
const AddressPrefix = "ip:"

// KeyOf normalises a key that is an address, alone or after "ip:". An IPv6 client becomes its /64.
func KeyOf(key string) string {
	text, named := strings.CutPrefix(key, AddressPrefix)
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return key
	case named:
		return AddressPrefix + clientOf(addr)
	}
	return clientOf(addr)
}

func clientOf(addr netip.Addr) string { return string(clientaddr.Append(nil, addr)) }

// Client parses the address of a client as proxies and operators write it: alone, with a port, in brackets, or as the
// /64 of an IPv6 client.
func Client(text string) (client string, ok bool) {
	text = strings.TrimSpace(text)
	if network, err := netip.ParsePrefix(text); err == nil {
		addr := network.Addr()
		whole := network.Bits() == addr.BitLen()
		if !whole && (network.Bits() != clientaddr.BitsV6 || clientaddr.Plain(addr).Is4()) {
			return "", false
		}
		return clientOf(addr), true
	}
	addr, err := netip.ParseAddr(WithoutPort(text))
	if err != nil {
		return "", false
	}
	return clientOf(addr), true
}

// Address parses an address, and returns the key of its block EVERYWHERE.
func Address(name string, b []byte) ([]byte, error) {
	if len(b) <= maxAddressBytes {
		if client, ok := Client(string(b)); ok {
			return append([]byte(AddressPrefix), client...), nil
		}
	}
	return nil, limits.Bad(name,
		"must be an IP address like 192.0.2.66 or 2001:db8::1, or the /64 of an IPv6 client", b)
}

// Network parses an address or a network, and returns the key of its block EVERYWHERE.
func Network(name string, b []byte) ([]byte, error) {
	if key, err := Address(name, b); err == nil {
		return key, nil
	}
	b = bytes.TrimSpace(b)
	n, ok := network.Parse(b)
	p, err := netip.ParsePrefix(string(b))
	if !ok || err != nil {
		return nil, badNetwork(name, b)
	}
	addr := clientaddr.Plain(p.Addr())
	masked, _ := addr.Prefix(n.Bits) // never fails: n has the bits of this address
	switch {
	case !n.V4 && n.Bits > clientaddr.BitsV6:
		return []byte(AddressPrefix + clientOf(addr)), nil
	case !n.IsSeveral():
		return nil, badNetwork(name, b)
	case masked.Addr() != addr:
		return nil, limits.Bad(name, "must be the network "+masked.String()+" or the address "+addr.String(), b)
	}
	return []byte(AddressPrefix + masked.String()), nil
}

func badNetwork(name string, got []byte) error {
	return limits.Bad(name, fmt.Sprintf("must be an IP address like 192.0.2.66 or 2001:db8::1, or a network like "+
		"192.0.2.0/24 that is no wider than /%d (IPv4) or /%d (IPv6)", network.WidestV4, network.WidestV6), got)
}

// maxAddressBytes exceeds every address with a zone and a port.
const maxAddressBytes = 128

// WithoutPort removes brackets and the port that some proxies add to an address. The port differs for each connection.
func WithoutPort(hop string) string {
	if addr, err := netip.ParseAddrPort(hop); err == nil {
		return addr.Addr().String()
	}
	return strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]")
}
