package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"strings"
)

// checkPattern refuses patterns that http.ServeMux accepts although they match no request, or
// other requests than they seem to: globs, routes of other frameworks, unclean paths. A route
// that never matches limits nothing, without a sign. checkPattern does not repeat the checks of
// http.ServeMux.
func checkPattern(pattern string) error {
	method, host, rest, ok := splitPattern(pattern)
	if !ok {
		return errors.New(`there is no path, which begins with a slash: "/login", "POST /login", "/" for everything`)
	}
	if err := checkMethod(method, host+rest); err != nil {
		return err
	}
	if err := checkHost(host, rest); err != nil {
		return err
	}
	return checkPath(rest)
}

// splitPattern cuts a pattern as http.ServeMux does: [METHOD ][HOST]/[PATH].
func splitPattern(pattern string) (method, host, rest string, ok bool) {
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, pattern = pattern[:i], strings.TrimLeft(pattern[i:], " \t")
	}
	i := strings.IndexByte(pattern, '/')
	if i < 0 {
		return "", "", "", false
	}
	return method, pattern[:i], pattern[i:], true
}

// methodName is how methods are registered: capitals, perhaps with hyphens.
var methodName = regexp.MustCompile(`^[A-Z][A-Z-]*$`)

func checkMethod(method, rest string) error {
	switch upper := strings.ToUpper(method); {
	case method == "":
		return nil
	case method == "*" || upper == "ANY" || upper == "ALL":
		return fmt.Errorf("no request has the method %q; for every method leave it out: %q", method, rest)
	case strings.ContainsRune(method, '|'):
		one, _, _ := strings.Cut(upper, "|")
		return fmt.Errorf("a pattern has one method; give each a route, with one Name: %q, and so on", one+" "+rest)
	case method != upper:
		return fmt.Errorf("methods are in capitals: %q", upper+" "+rest)
	case !methodName.MatchString(method):
		return fmt.Errorf("a method is a word in capitals, like %q", "POST "+rest)
	}
	return nil
}

// refusedInPaths are the characters that a URL has to escape (RFC 3986), and the star.
const refusedInPaths = "*?#<>[]|^\\\" \t"

func checkPath(p string) error {
	for _, segment := range strings.Split(p[1:], "/") {
		if err := checkSegment(segment, p); err != nil {
			return err
		}
	}
	if clean := cleanPath(p); clean != p {
		return fmt.Errorf("paths are matched in their clean form: %q", clean)
	}
	return nil
}

func checkSegment(segment, p string) error {
	if strings.HasPrefix(segment, "{") {
		return nil // http.ServeMux knows what is right
	}
	if name, ok := strings.CutPrefix(segment, ":"); ok && name != "" {
		return fmt.Errorf("a wildcard for one segment is written {name}, not %q: %q",
			segment, strings.Replace(p, segment, "{"+name+"}", 1))
	}
	at := strings.IndexAny(segment, refusedInPaths)
	switch {
	case at >= 0 && segment[at] == '*':
		return errStar
	case at >= 0 && (segment[at] == '?' || segment[at] == '#'):
		return errors.New("only the path of a request is matched, not what follows '?' or '#'; the character itself is written %3F or %23")
	case at >= 0:
		return fmt.Errorf("%q is in no path as it stands: a wildcard is {name}, the rest of a path {name...}; the character itself is written %%%02X",
			segment[at], segment[at])
	case strings.HasSuffix(segment, "}"):
		return fmt.Errorf("the segment %q ends a wildcard that does not begin: write {name}, or %%7D for the character",
			segment)
	case strings.HasSuffix(segment, "$") && len(segment) > 1:
		return fmt.Errorf("a pattern is no regular expression: %q matches that path alone anyway; '/{$}' is for a path that ends in a slash",
			strings.TrimSuffix(p, "$"))
	}
	return nil
}

// errStar names what stands for the usual globs.
var errStar = errors.New("'*' stands for nothing here: write '/api/' for everything below a path, " +
	"'/{name}/login' for one segment whatever it is, '/files/{name...}' for the rest of a path, " +
	"and a route of its own, with the same Name, for each depth; the character itself is written %2A")

// cleanPath is a path as http.ServeMux matches it.
func cleanPath(p string) string {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// hostName is a name of several labels, as clients write it: small, without a port.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*)(\.[a-z0-9_-]+)+$`)

func checkHost(host, rest string) error {
	if host == "" || host == "localhost" || hostName.MatchString(host) {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.String() == host {
		return nil // of an IPv6 literal http.ServeMux cuts brackets and port off
	}
	if strings.Contains(host, "*") {
		return errStar
	}
	return fmt.Errorf("what stands before the first slash is a host, like %q (small letters, no scheme, no port); a path begins with a slash: %q",
		"api.example.com"+rest, "/"+host+rest)
}

// checkPreflight refuses a route for requests that pass anyway.
func (o *Options) checkPreflight(pattern string) error {
	if method, _, _, _ := splitPattern(pattern); method == http.MethodOptions && !o.LimitPreflight {
		return errors.New("OPTIONS requests pass unless LimitPreflight is set: set it, or leave the route out")
	}
	return nil
}

// registeredAt is where, says http.ServeMux, a pattern was registered: always here.
var registeredAt = regexp.MustCompile(` \(registered at [^)]*\)|(?s:\n.*)`)

// muxComplaint is what http.ServeMux panics with about a pattern, without its source lines.
func muxComplaint(p any) string { return registeredAt.ReplaceAllString(fmt.Sprint(p), "") }
