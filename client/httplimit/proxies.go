package httplimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

const (
	// maxHops bounds how far a chain of trusted proxies is followed: no real one is half
	// as long.
	maxHops = 16
	// unixPeer is how Trust is told of a proxy that connects over a Unix socket.
	unixPeer = "unix"
)

// Proxies knows whom to believe about where a request came from. The zero value believes
// nobody: the client is whoever holds the connection.
type Proxies struct {
	networks []netip.Prefix
	unix     bool
	headers  []string
}

// Trust believes what proxies in some networks write into X-Forwarded-For: addresses
// and CIDR prefixes, and "unix" for those that connect over a Unix socket.
func Trust(networks ...string) (*Proxies, error) {
	p := &Proxies{headers: []string{"X-Forwarded-For"}}
	for _, text := range networks {
		if text == unixPeer {
			p.unix = true
			continue
		}
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%w: a trusted network must be like 10.0.0.0/8, 10.1.2.3 or unix, not %q", ErrBadOptions, text)
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

// In reads these headers instead, in this order: the first that names an address counts, and
// the connection where none does. In("X-Forwarded-For", "X-Real-IP") is such a chain. The
// trusted proxies must set or remove each of them, because a header that they pass on as it came is
// the client's to choose.
func (p *Proxies) In(headers ...string) *Proxies {
	other := *p
	other.headers = make([]string, len(headers))
	for i, header := range headers {
		other.headers[i] = http.CanonicalHeaderKey(header)
	}
	return &other
}

// Client is the address nearest to this server that no trusted proxy has: what stands
// before it in the header is that client's own claim. Invalid where the connection has
// no address.
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

// claimed is the client that the lines of a header name, from their end as far as trusted
// proxies wrote them. Invalid where the last word is no address.
func (p *Proxies) claimed(lines []string) (addr netip.Addr) {
	for range maxHops {
		word, rest, ok := lastWord(lines)
		if !ok {
			break
		}
		hop, ok := parseHop(word)
		if !ok { // a trusted proxy wrote what is no address: it is as far as we know
			break
		}
		if addr, lines = hop, rest; !p.trusts(hop) {
			break
		}
	}
	return addr
}

// peer is the address of the connection.
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

// lastWord cuts the last element off a list that may span several lines. The lines are
// the request's own and stay as they are.
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

// parseHop reads an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1,
// [2001:db8::1], [2001:db8::1]:80.
func parseHop(word string) (netip.Addr, bool) {
	word = strings.TrimSpace(word)
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(word, "["), "]"))
	if err != nil {
		withPort, errPort := netip.ParseAddrPort(word)
		addr, err = withPort.Addr(), errPort
	}
	return addr.Unmap().WithZone(""), err == nil
}
