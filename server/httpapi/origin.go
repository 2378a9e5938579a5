package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// proxyHeaders are what proxies add to the requests that they hand on. A page of another site
// cannot have a browser send one of them: the browser would ask weir for permission first (a CORS
// preflight), and weir gives none.
var proxyHeaders = []string{
	"Forwarded", "Via", "X-Real-Ip",
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Method", "X-Forwarded-Proto", "X-Forwarded-Uri",
	"X-Original-Method", "X-Original-Uri", "X-Original-Url",
}

// isThisMachine says whether somebody on this machine sent a request, and meant this machine:
// neither a proxy for a stranger, nor a page whose name an attacker made to point here (DNS
// rebinding). No browser speaks HTTP/1.0; nginx does unless it is told otherwise, says nothing of
// itself, and names weir as it was told to reach it.
func isThisMachine(r *http.Request) bool {
	return fromThisMachine(r) && namesThisMachine(r) && !handedOn(r) && r.ProtoAtLeast(1, 1)
}

// fromThisMachine says whether a request comes from this machine, whatever host it names: a
// proxy hands on the name that its client asked for.
func fromThisMachine(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// namesThisMachine says whether the Host of a request is localhost, an address that no other
// machine has, or the address at which the request was received. Any other name may be an
// attacker's.
func namesThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	named, err := netip.ParseAddr(host)
	return err == nil && (named.Unmap().IsLoopback() || named.Unmap() == receivedAddr(r))
}

// receivedAddr is the address of this machine at which a request was received; the zero Addr
// when that is not known.
func receivedAddr(r *http.Request) netip.Addr {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return netip.Addr{}
	}
	at, _ := netip.ParseAddrPort(local.String())
	return at.Addr().Unmap()
}

// handedOn says whether a proxy says of itself that it handed a request on. An empty header counts:
// a client may send one, and a proxy that adds a line of its own puts it behind that.
func handedOn(r *http.Request) bool {
	return slices.ContainsFunc(proxyHeaders, func(name string) bool { return len(r.Header[name]) > 0 })
}

// mayBeBrowsers says whether a browser may have sent a request to weir itself. Proxies hand on
// the headers of their clients' browsers, Origin and Sec-Fetch-Site among them, so these prove
// nothing. But proxies say who they are, or speak HTTP/1.0, or send no Connection header, or
// close the connection; browsers always keep or upgrade theirs, and no script changes that.
func mayBeBrowsers(r *http.Request) bool {
	if handedOn(r) || !r.ProtoAtLeast(1, 1) {
		return false
	}
	connection := strings.ToLower(r.Header.Get("Connection"))
	return r.ProtoMajor > 1 || strings.Contains(connection, "keep-alive") || strings.Contains(connection, "upgrade")
}

// forAnotherSite says whether a browser says that it sends a request for a page of another
// origin.
func forAnotherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	from, err := url.Parse(origin)
	return origin != "" && (err != nil || from.Host != r.Host)
}
