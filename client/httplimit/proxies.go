package httplimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

const (
	// maxHops bounds how far a chain of trusted proxies is followed. Real chains are less than half as long.
	maxHops = 16
	// unixPeer is the argument of Trust for proxies that connect over a Unix socket.
	unixPeer = "unix"
)

// Proxies determines the address of a request's client. The zero value trusts no proxy: the client is the peer
// of the connection.
type Proxies struct {
	networks []netip.Prefix
	unix     bool
	headers  []string
}

// Trust trusts the entries that proxies in the given networks write into X-Forwarded-For. A network is an
// address, a CIDR prefix, or "unix" for proxies that connect over a Unix socket.
func Trust(networks ...string) (*Proxies, error) {
	p := &Proxies{headers: []string{"X-Forwarded-For"}}
	for _, text := range networks {
		if text == unixPeer {
			p.unix = true
			continue
		}
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%w: a trusted network must be like 10.0.0.0/8, 10.1.2.3 or unix, not %q",
				ErrBadOptions, text)
		}
		p.networks = append(p.networks, prefix)
	}
	return p, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		return prefix.Masked(), err
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return addr.Prefix(addr.BitLen())
}

// In returns a copy that reads these headers instead, in this order. The first header that names an address
// determines the client, and the connection does if no header names one. In("X-Forwarded-For", "X-Real-IP") is
// such a chain. The trusted proxies must set or remove each of these headers. A header that they pass on
// unchanged is chosen by the client.
func (p *Proxies) In(headers ...string) *Proxies {
	other := *p
	other.headers = make([]string, len(headers))
	for i, header := range headers {
		other.headers[i] = http.CanonicalHeaderKey(header)
	}
	return &other
}

// Client returns the address nearest to this server that is not a trusted proxy. Entries before it in the
// header are claims of that client. The address is invalid if the connection has none.
func (p *Proxies) Client(r *http.Request) netip.Addr {
	peer, trusted := p.peer(r.RemoteAddr)
	if !trusted {
		return peer
	}
	for _, header := range p.headers {
		if addr := p.claimed(r.Header[header]); addr.IsValid() {
			return addr
		}
	}
	return peer
}

// claimed returns the client that the lines of a header name. It reads them from the end, as far as trusted
// proxies wrote them. The address is invalid if the last entry is not an address.
func (p *Proxies) claimed(lines []string) (addr netip.Addr) {
	for range maxHops {
		word, rest, ok := lastWord(lines)
		if !ok {
			break
		}
		hop, ok := parseHop(word)
		if !ok { // a trusted proxy wrote something else than an address: stop at the last hop
			break
		}
		if addr, lines = hop, rest; !p.trusts(hop) {
			break
		}
	}
	return addr
}

// peer returns the address of the connection.
func (p *Proxies) peer(remote string) (addr netip.Addr, trusted bool) {
	addr, ok := parseHop(remote)
	if !ok {
		return netip.Addr{}, p.unix
	}
	return addr, p.trusts(addr)
}

func (p *Proxies) trusts(addr netip.Addr) bool {
	for _, n := range p.networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// lastWord cuts the last element off a list that may span several lines. It does not change the lines, which
// belong to the request.
func lastWord(lines []string) (word string, rest []string, ok bool) {
	if len(lines) == 0 {
		return "", nil, false
	}
	last := lines[len(lines)-1]
	at := strings.LastIndexByte(last, ',')
	if at < 0 {
		return last, lines[:len(lines)-1], true
	}
	return last[at+1:], append(append([]string(nil), lines[:len(lines)-1]...), last[:at]), true
}

// parseHop parses an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1],
// [2001:db8::1]:80.
func parseHop(word string) (netip.Addr, bool) {
	word = strings.TrimSpace(word)
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(word, "["), "]"))
	if err != nil {
		withPort, errPort := netip.ParseAddrPort(word)
		addr, err = withPort.Addr(), errPort
	}
	return addr.Unmap().WithZone(""), err == nil
}
