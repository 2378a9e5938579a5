package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// checkReached refuses routes that no request reaches, because earlier patterns match all their requests. Only
// patterns with '*' can cause that; http.ServeMux refuses other conflicts itself.
func (rt *router) checkReached(routes []Route) error {
	if len(rt.globs) == 0 {
		return nil
	}
	for i := range routes {
		if other, reached := rt.reached(&routes[i]); !reached {
			return fmt.Errorf("%w: route %q: %w", ErrBadOptions, routes[i].Pattern, errShadowed(other))
		}
	}
	return nil
}

func errShadowed(other *Route) error {
	if other == nil {
		return errors.New("no request reaches this route: Exclude matches all its requests")
	}
	return fmt.Errorf("no request reaches this route: the earlier route %q matches all its requests; "+
		"write the narrower pattern first", other.Pattern)
}

// reached tries sample requests that a route matches, and reports whether one of them reaches it. Otherwise it
// returns the route that takes the first sample.
func (rt *router) reached(route *Route) (first *Route, ok bool) {
	p, err := parsePattern(route.Pattern)
	if err != nil {
		return nil, false
	}
	for i, text := range p.samplePaths() {
		decoded, err := url.PathUnescape(text)
		if err != nil {
			decoded = text
		}
		taker := rt.route(&http.Request{
			Method: cmp.Or(p.method, sampleMethod), Host: p.host, URL: &url.URL{Path: decoded, RawPath: text},
		})
		if taker == route {
			return taker, true
		}
		if i == 0 {
			first = taker
		}
	}
	return first, false
}

// Samples that occur in no pattern. Only a wildcard matches sampleText, and only a pattern without a method
// matches sampleMethod.
const (
	sampleText   = "%EE%80%80"
	sampleMethod = "SAMPLE"
)

// wildcards matches wildcards of one segment and of many.
var wildcards = regexp.MustCompile(`\*\*|\*|\{[^}]*\}`)

// samplePaths returns paths that a pattern matches, with a long, a short and an empty text for each wildcard.
func (p *pattern) samplePaths() (all []string) {
	text := strings.TrimSuffix(p.path, "{$}")
	if text == p.path && !p.glob && strings.HasSuffix(text, "/") {
		text += "**" // a subtree
	}
	for _, many := range []string{sampleText + "/" + sampleText + "/" + sampleText, sampleText, ""} {
		for _, one := range []string{sampleText, ""} {
			sample := wildcards.ReplaceAllStringFunc(text, func(w string) string {
				if w == "**" || strings.HasSuffix(w, "...}") {
					return many
				}
				return one
			})
			all = append(all, cleanPath(sample), cleanPath(strings.TrimSuffix(sample, "/")))
		}
	}
	return all
}
