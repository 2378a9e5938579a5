package server

import (
	"net/netip"
	"strings"
)

// clientBitsV6 is the part of an IPv6 address that is one client: the client may use any
// address of the rest.
const clientBitsV6 = 64

// addressKind begins the keys of addresses where a key says what it names.
const addressKind = "ip:"

// checkKeyOf folds addresses, alone or behind "ip:": an IPv6 client is its /64.
func checkKeyOf(key string) string {
	text, named := strings.CutPrefix(key, addressKind)
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return key
	case named:
		return addressKind + clientOf(addr)
	}
	return clientOf(addr)
}

// clientOf names the client that an address belongs to: IPv4 as IPv4 in all of its forms, IPv6
// without its zone and as its /64.
func clientOf(addr netip.Addr) string {
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	prefix, _ := addr.Prefix(clientBitsV6) // of a valid address it never fails
	return prefix.String()
}

// parseClient reads the address of a client as proxies and operators write it: alone, with a
// port, in brackets, or as the /64 of an IPv6 client.
func parseClient(text string) (client string, ok bool) {
	text = strings.TrimSpace(text)
	if network, err := netip.ParsePrefix(text); err == nil {
		addr := network.Addr()
		whole := network.Bits() == addr.BitLen()
		if !whole && (network.Bits() != clientBitsV6 || addr.Unmap().Is4()) {
			return "", false
		}
		return clientOf(addr), true
	}
	addr, err := netip.ParseAddr(withoutPort(text))
	if err != nil {
		return "", false
	}
	return clientOf(addr), true
}

// addressArg reads an address and returns the key that a block everywhere of it has.
func addressArg(name string, b []byte) ([]byte, error) {
	if len(b) <= maxAddressBytes {
		if client, ok := parseClient(string(b)); ok {
			return append([]byte(addressKind), client...), nil
		}
	}
	return nil, badArgument(name, "must be an IP address like 192.0.2.66 or 2001:db8::1, or the /64 of an IPv6 client", b)
}

// maxAddressBytes is longer than every address with a zone and a port.
const maxAddressBytes = 128

// withoutPort is an address without what some proxies write around it: brackets, and a
// port, which is another one for each connection.
func withoutPort(hop string) string {
	if addr, err := netip.ParseAddrPort(hop); err == nil {
		return addr.Addr().String()
	}
	return strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]")
}
