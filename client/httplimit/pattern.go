package httplimit

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// pattern is [METHOD ][HOST]/PATH as in http.ServeMux. A path with '*' may begin with "**" instead of a slash.
type pattern struct {
	method, host, path string
	glob               bool // whether the path has a '*'
}

// String returns the pattern in the syntax of http.ServeMux.
func (p *pattern) String() string { return strings.TrimSpace(p.method + " " + p.host + p.path) }

// parsePattern refuses patterns that match no request, or other requests than they seem to match: routes of
// other frameworks, and unclean paths. A route that never matches would silently limit nothing. parsePattern
// does not repeat the checks of http.ServeMux.
func parsePattern(text string) (p pattern, err error) {
	rest := text
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		p.method, rest = rest[:i], strings.TrimLeft(rest[i:], " \t")
	}
	at := strings.IndexByte(rest, '/')
	if strings.HasPrefix(rest, "**") {
		at = 0
	}
	switch {
	case at < 0 && strings.HasPrefix(rest, "*"):
		return p, errOneStar
	case at < 0:
		return p, errors.New(`the pattern has no path; ` +
			`a path begins with a slash: "/login", "POST /login", "/" for everything`)
	}
	p.path, p.glob = rest[at:], strings.Contains(wildcardNames.ReplaceAllString(rest[at:], ""), "*")
	if err := checkMethod(p.method, rest); err != nil {
		return p, err
	}
	if p.host, err = parseHost(rest[:at], p.path); err != nil {
		return p, err
	}
	return p, p.checkPath()
}

// wildcardNames are the wildcards of http.ServeMux.
var wildcardNames = regexp.MustCompile(`\{[^}]*\}`)

// methodName matches registered methods: capitals, possibly with hyphens.
var methodName = regexp.MustCompile(`^[A-Z][A-Z-]*$`)

func checkMethod(method, rest string) error {
	switch upper := strings.ToUpper(method); {
	case method == "":
		return nil
	case method == "*" || upper == "ANY" || upper == "ALL":
		return fmt.Errorf("%q is not an HTTP method; to match every method, leave it out: %q", method, rest)
	case strings.ContainsRune(method, '|'):
		one, _, _ := strings.Cut(upper, "|")
		return fmt.Errorf("a pattern has one method; write a route for each method, with the same Name: %q, and so on",
			one+" "+rest)
	case method != upper:
		return fmt.Errorf("write the method in capitals: %q", upper+" "+rest)
	case !methodName.MatchString(method):
		return fmt.Errorf("a method is a word in capitals, like %q", "POST "+rest)
	}
	return nil
}

// refusedInPaths are the characters that a URL has to escape (RFC 3986).
const refusedInPaths = "?#<>[]|^\\\" \t"

func (p *pattern) checkPath() error {
	for _, segment := range strings.Split(strings.TrimPrefix(p.path, "/"), "/") {
		if err := checkSegment(segment, p.path); err != nil {
			return err
		}
	}
	if p.glob && strings.ContainsAny(p.path, "{}") {
		return fmt.Errorf("a pattern cannot combine '*' with {wildcards}: %q",
			wildcardNames.ReplaceAllString(p.path, "*"))
	}
	if clean := strings.TrimPrefix(cleanPath(p.path), "/"); clean != strings.TrimPrefix(p.path, "/") {
		return fmt.Errorf("the path is not in its clean form, so no request matches it; write %q",
			"/"+clean)
	}
	return nil
}

func checkSegment(segment, p string) error {
	if strings.HasPrefix(segment, "{") {
		return nil // http.ServeMux checks it
	}
	if name, ok := strings.CutPrefix(segment, ":"); ok && name != "" {
		return fmt.Errorf("write a wildcard for one segment as {name}, not %q: %q",
			segment, strings.Replace(p, segment, "{"+name+"}", 1))
	}
	at := strings.IndexAny(segment, refusedInPaths)
	switch {
	case at >= 0 && (segment[at] == '?' || segment[at] == '#'):
		return errors.New("a pattern matches only the path, not the query after '?' or the fragment after '#'; " +
			"write the character itself as %3F or %23")
	case at >= 0:
		return fmt.Errorf("a path cannot contain %q: write a wildcard as {name}, the rest of a path as {name...}, and "+
			"the character itself as %%%02X",
			segment[at], segment[at])
	case strings.HasSuffix(segment, "}"):
		return fmt.Errorf("the segment %q has '}' without '{': write {name}, or %%7D for the character",
			segment)
	case strings.HasSuffix(segment, "$") && len(segment) > 1:
		return fmt.Errorf("a pattern is not a regular expression: %q already matches only that path; '/{$}' matches a "+
			"path that ends in a slash",
			strings.TrimSuffix(p, "$"))
	}
	return nil
}

// errOneStar is the error of a pattern that begins with a single '*'.
var errOneStar = errors.New(
	`a pattern begins with a slash, a host or "**": write "**/login" for any path with this end, ` +
		`"/*/login" for one segment before it; hosts cannot have wildcards`)

// registeredAt matches the source position in panics of http.ServeMux. It is always a position in this package, so it
// does not help the user.
var registeredAt = regexp.MustCompile(` \(registered at [^)]*\)|(?s:\n.*)`)

// muxComplaint returns the panic of http.ServeMux about a pattern, without source positions.
func muxComplaint(p any) string { return registeredAt.ReplaceAllString(fmt.Sprint(p), "") }
