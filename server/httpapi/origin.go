package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// proxyHeaders are headers that proxies add to forwarded requests. A page of another site cannot make a browser send
// one of them. The browser would first ask weir for permission (a CORS preflight), and weir grants none.
var proxyHeaders = []string{
	"Forwarded", "Via", "X-Real-Ip",
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Method", "X-Forwarded-Proto", "X-Forwarded-Uri",
	"X-Original-Method", "X-Original-Uri", "X-Original-Url",
}

// isThisMachine reports whether a program on this machine sent the request to this machine. It excludes requests that a
// proxy forwards, and pages whose DNS name an attacker pointed here (DNS rebinding). It excludes HTTP/1.0, because
// nginx forwards requests in HTTP/1.0 by default, adds no header about itself, and sends weir's configured name as the
// Host. No browser speaks HTTP/1.0.
func isThisMachine(r *http.Request) bool {
	return fromThisMachine(r) && namesThisMachine(r) && !handedOn(r) && r.ProtoAtLeast(1, 1)
}

// fromThisMachine reports whether a request comes from this machine, whatever Host it names. A proxy forwards the name
// that its client requested.
func fromThisMachine(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// namesThisMachine reports whether the Host of a request is localhost, a loopback address, or the address at which the
// request arrived. An attacker may control any other name.
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

// receivedAddr returns the local address at which a request arrived, or the zero Addr if it is unknown.
func receivedAddr(r *http.Request) netip.Addr {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return netip.Addr{}
	}
	at, _ := netip.ParseAddrPort(local.String())
	return at.Addr().Unmap()
}

// handedOn reports whether a proxy marked a request as forwarded. An empty header counts, because a client may send an
// empty line before the line that the proxy appends.
func handedOn(r *http.Request) bool {
	return slices.ContainsFunc(proxyHeaders, func(name string) bool { return len(r.Header[name]) > 0 })
}

// mayBeBrowsers reports whether a browser may have sent a request directly to weir. Proxies forward the headers of
// their clients' browsers, so Origin and Sec-Fetch-Site prove nothing. But a proxy identifies itself, speaks HTTP/1.0,
// sends no Connection header, or sends Connection: close. A browser sends Connection: keep-alive or upgrade, or speaks
// HTTP/2, and no script can change that.
func mayBeBrowsers(r *http.Request) bool {
	if handedOn(r) || !r.ProtoAtLeast(1, 1) {
		return false
	}
	connection := strings.ToLower(r.Header.Get("Connection"))
	return r.ProtoMajor > 1 || strings.Contains(connection, "keep-alive") || strings.Contains(connection, "upgrade")
}

// forAnotherSite reports whether a browser marks a request as sent for a page of another origin.
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
