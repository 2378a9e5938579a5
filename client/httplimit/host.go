package httplimit

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// hostName is a name as clients write it: small, without a port.
var hostName = regexp.MustCompile(`^[a-z0-9_][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

// parseHost returns the host of a pattern as plainHost returns those of requests. A name of
// one label ends in a dot, as full names do: without it, it is rather a path without its slash.
func parseHost(host, rest string) (string, error) {
	name := strings.TrimSuffix(host, ".")
	isName := hostName.MatchString(name) && strings.Contains(host, ".")
	if host == "" || host == "localhost" || isName {
		return name, nil
	}
	literal := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(literal); err == nil && addr.String() == literal {
		return literal, nil
	}
	if strings.HasPrefix(host, "*") {
		return "", errOneStar
	}
	return "", fmt.Errorf("what stands before the first slash is a host, like %q, %q or %q (small letters, "+
		"no scheme, no port, no wildcards); a path begins with a slash: %q",
		"api.example.com"+rest, "intranet."+rest, "[::1]"+rest, "/"+host+rest)
}

// plainHost is the host of a request without its port, the brackets of IPv6, and the dot at the
// end of a full name, in small letters: clients may write a host in all these ways.
func plainHost(host string) string {
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// muxKnows says whether http.ServeMux finds the plain host in the one of a request: it takes
// off a port.
func muxKnows(host, plain string) bool {
	return strings.HasPrefix(host, plain) && (len(host) == len(plain) || host[len(plain)] == ':')
}
