package httplimit

import (
	"fmt"
	"net/http"
	"net/url"
)

// maxGlobs bounds the patterns with '*', which are tried one after another.
const maxGlobs = 64

// router finds the route of a request. Among patterns of http.ServeMux the most specific one wins. Globs have
// no such order: among a glob and other patterns, the pattern listed first wins. Exclusions rank before the
// routes.
type router struct {
	mux     *http.ServeMux
	targets map[string]target // by pattern in the syntax of the mux
	globs   []globTarget      // exclusions first, then in the order of the routes
	hosts   bool              // whether a pattern names a host
}

// target is the destination of a pattern.
type target struct {
	route *Route // nil: the request passes
	at    int    // the position among the routes
}

const (
	excludedAt = -1                 // before all routes
	nowhere    = int(^uint(0) >> 1) // the position of requests without a pattern: after all routes
)

func (target) ServeHTTP(http.ResponseWriter, *http.Request) {}

// globTarget is a pattern with '*'. An empty method or host matches every method or host.
type globTarget struct {
	target
	*glob
	method, host string
}

func newRouter(o *Options) (*router, error) {
	rt := &router{mux: http.NewServeMux(), targets: map[string]target{}}
	for _, pattern := range o.Exclude {
		if err := rt.add(pattern, target{nil, excludedAt}); err != nil {
			return nil, err
		}
	}
	for i := range o.Routes {
		if err := rt.add(o.Routes[i].Pattern, target{&o.Routes[i], i}); err != nil {
			return nil, err
		}
	}
	return rt, rt.checkReached(o.Routes)
}

func (rt *router) add(text string, t target) error {
	p, err := parsePattern(text)
	if err == nil && p.glob {
		err = rt.addGlob(p, t)
	}
	if err != nil {
		return fmt.Errorf("%w: pattern %q: %w", ErrBadOptions, text, err)
	}
	rt.hosts = rt.hosts || p.host != ""
	if p.glob {
		return nil
	}
	return rt.addToMux(p.String(), t)
}

func (rt *router) addGlob(p pattern, t target) error {
	if len(rt.globs) == maxGlobs {
		return fmt.Errorf("there are at most %d patterns with '*'", maxGlobs)
	}
	g, err := compileGlob(p.path)
	rt.globs = append(rt.globs, globTarget{t, g, p.method, p.host})
	return err
}

// addToMux converts the mux's panic about an invalid or repeated pattern to an error.
func (rt *router) addToMux(pattern string, t target) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s", ErrBadOptions, muxComplaint(p))
		}
	}()
	rt.mux.Handle(pattern, t)
	rt.targets[pattern] = t
	return nil
}

// route returns the route of a request, or nil if the request passes.
func (rt *router) route(r *http.Request) *Route {
	host := r.Host
	if rt.hosts {
		if host = plainHost(r.Host); !muxKnows(r.Host, host) {
			r = &http.Request{Method: r.Method, Host: host, URL: r.URL}
		}
	}
	best := rt.bestFit(r)
	if len(rt.globs) == 0 && best.at != excludedAt {
		return best.route
	}
	paths := readingsOf(r.URL)
	if best.at == excludedAt && paths.odd {
		best = rt.bestFit(&http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: paths.lenient}})
	}
	for i := range rt.globs {
		g := &rt.globs[i]
		if best.at < g.at {
			break
		}
		if g.matches(r.Method, host, &paths) {
			return g.route
		}
	}
	return best.route
}

// bestFit asks the mux. If the mux would redirect a request, for instance to the clean form of its path, the
// request belongs to the pattern of the redirect.
func (rt *router) bestFit(r *http.Request) target {
	found, pattern := rt.mux.Handler(r)
	if t, ok := found.(target); ok {
		return t
	}
	if t, ok := rt.targets[pattern]; ok {
		return t
	}
	return target{nil, nowhere}
}

// matches reports whether a request matches. A route must match one reading of the path. An exclusion must match
// every reading, so that an unusual spelling does not exclude a request.
func (g *globTarget) matches(method, host string, paths *readings) bool {
	if g.method != "" && g.method != method && (g.method != http.MethodGet || method != http.MethodHead) {
		return false
	}
	if g.host != "" && g.host != host {
		return false
	}
	matches := g.match(paths.plain)
	if !paths.odd || matches == (g.route != nil) {
		return matches
	}
	return g.match(paths.lenient)
}
