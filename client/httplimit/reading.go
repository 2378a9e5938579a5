package httplimit

import (
	"net/url"
	"path"
	"strings"
)

// encodedSlash represents an encoded slash in a reading that keeps it.
const encodedSlash = "%2F"

// readings are the two ways in which servers interpret an unusual path. A route's glob is matched against both, so
// that no spelling of a path reaches a server's login without matching "**/login".
type readings struct {
	// plain is the decoded path in its clean form. An encoded slash does not separate segments.
	plain string
	// lenient is the same path, but an encoded slash separates segments, and path parameters (";jsessionid=1") are
	// removed, as in Java servers.
	lenient string
	// odd reports whether servers may interpret the path differently.
	odd bool
}

func readingsOf(u *url.URL) readings {
	if u.RawPath == "" && strings.IndexByte(u.Path, ';') < 0 {
		p := cleanPath(u.Path)
		return readings{plain: p, lenient: p}
	}
	return readings{
		plain: cleanPath(keepSlashes(u.EscapedPath())), lenient: cleanPath(withoutParameters(u.Path)), odd: true,
	}
}

// keepSlashes decodes an escaped path except its encoded slashes.
func keepSlashes(escaped string) string {
	parts := strings.Split(strings.ReplaceAll(escaped, "%2f", encodedSlash), encodedSlash)
	for i, part := range parts {
		if decoded, err := url.PathUnescape(part); err == nil {
			parts[i] = decoded
		}
	}
	return strings.Join(parts, encodedSlash)
}

// withoutParameters cuts each segment at its first semicolon.
func withoutParameters(p string) string {
	segments := strings.Split(p, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}

// cleanPath returns a path as http.ServeMux matches it: without dot segments and double slashes. It does not
// allocate if p is clean already.
func cleanPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		if clean == p[:len(p)-1] {
			return p
		}
		clean += "/"
	}
	return clean
}
