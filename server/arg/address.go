package arg

import (
	"net/netip"
	"strings"
)

// ClientBitsV6 is the part of an IPv6 address that is one client: the client may use any
// address of the rest.
const ClientBitsV6 = 64

// AddressPrefix begins the keys of addresses where a key says what it names.
const AddressPrefix = "ip:"

// KeyOf folds addresses, alone or behind "ip:": an IPv6 client is its /64.
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

// clientOf names the client that an address belongs to: IPv4 as IPv4 in all of its forms, IPv6
// without its zone and as its /64.
func clientOf(addr netip.Addr) string {
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	prefix, _ := addr.Prefix(ClientBitsV6) // of a valid address it never fails
	return prefix.String()
}

// Client reads the address of a client as proxies and operators write it: alone, with a
// port, in brackets, or as the /64 of an IPv6 client.
func Client(text string) (client string, ok bool) {
	text = strings.TrimSpace(text)
	if network, err := netip.ParsePrefix(text); err == nil {
		addr := network.Addr()
		whole := network.Bits() == addr.BitLen()
		if !whole && (network.Bits() != ClientBitsV6 || addr.Unmap().Is4()) {
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

// Address reads an address and returns the key that a block everywhere of it has.
func Address(name string, b []byte) ([]byte, error) {
	if len(b) <= maxAddressBytes {
		if client, ok := Client(string(b)); ok {
			return append([]byte(AddressPrefix), client...), nil
		}
	}
	return nil, Bad(name, "must be an IP address like 192.0.2.66 or 2001:db8::1, or the /64 of an IPv6 client", b)
}

// maxAddressBytes is longer than every address with a zone and a port.
const maxAddressBytes = 128

// WithoutPort is an address without what some proxies write around it: brackets, and a
// port, which is another one for each connection.
func WithoutPort(hop string) string {
	if addr, err := netip.ParseAddrPort(hop); err == nil {
		return addr.Addr().String()
	}
	return strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]")
}
