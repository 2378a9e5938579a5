package httplimit

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// hostName matches a host name in lower case without a port.
var hostName = regexp.MustCompile(`^[a-z0-9_][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

// parseHost returns the host of a pattern in the form that plainHost gives to hosts of requests. A name of one
// label, except localhost, must end in a dot, as fully qualified names may. Without the dot it is probably a path
// without its slash. rest is the path after the host, for error messages.
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
	return "", fmt.Errorf("the part before the first slash must be a host, like %q, %q or %q (small letters, "+
		"no scheme, no port, no wildcards); a path begins with a slash: %q",
		"api.example.com"+rest, "intranet."+rest, "[::1]"+rest, "/"+host+rest)
}

// plainHost returns the host of a request in lower case, without port, brackets of IPv6, and the dot at the end of
// a fully qualified name. Clients may send all these forms.
func plainHost(host string) string {
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// muxKnows reports whether http.ServeMux derives the plain host from the host of a request. The mux only removes the
// port.
func muxKnows(host, plain string) bool {
	return strings.HasPrefix(host, plain) && (len(host) == len(plain) || host[len(plain)] == ':')
}
