package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/internal/keys"
	"github.com/weir-project/weir/httpfields"
)

// ErrBadOptions: an option is missing or wrong.
var ErrBadOptions = errors.New("httplimit: bad options")

// Route is a set of requests with the same limits.
type Route struct {
	// Pattern is a pattern of http.ServeMux, such as "POST /login", "/api/", "/users/{id}", or "/" for all other
	// requests. Or it is a glob, such as "**/login", "POST /v*/login" or "/api/**": see the package comment. New
	// refuses a pattern that would match nothing, and a route that no request reaches.
	Pattern string
	Rule    *client.Rule
	Key     Key
	// Policy returns the name of a request's policy. It replaces Rule if requests of one pattern have different
	// policies, for instance in a gateway whose routes change at run time. A request passes if Policy returns "".
	// The name must come from the program's own table. A name sent by the client would let the client choose its
	// limit.
	Policy func(*http.Request) string
	// Name identifies the limit. Routes with the same Name share their limiters, and problem documents and fields
	// report it. The default is the policy's name, or else the pattern. It has at most 128 bytes. Several
	// middlewares around one handler need different names.
	Name string
	// Cost returns the units of a request. nil means 1. It must not be negative, and 0 counts as 1.
	Cost func(*http.Request) int64
	// Also are up to 15 additional limits of each request. weir decides under all of them in one step: a request
	// takes from all of them or from none. Replies describe the limit that binds, by the name of its policy. Rule
	// must be a policy, too.
	Also []Limit
	// Priority reports whether a request may take units that its policies reserve for high priority (RESERVED).
	// nil means that no request may. It must not depend on a header that clients can set.
	Priority func(*http.Request) bool
	// Queue is how long weir holds a request that is over the limit until it fits. 0 denies it at once. See
	// Client.Queue for the order, and for the bounds on the number of waiting requests.
	Queue time.Duration

	waiting *atomic.Int32 // requests of the route in Client.Queue
}

// Options configure New. Routes is required.
type Options struct {
	Routes []Route
	// Enabled switches all routes, and is called for each request. While it returns false, requests pass as if
	// there were no middleware. nil means always true. The Load method of an atomic.Bool is such a switch. To
	// switch off one route, disable its policy (RL.POLICY DISABLE).
	Enabled func() bool
	// Exclude are patterns of requests that pass. They rank before the routes. A glob ("/health**" for every path
	// with this prefix) excludes every request that it matches. A pattern of http.ServeMux excludes a request
	// unless a more specific such pattern matches.
	Exclude []string
	// LimitPreflight also limits preflight requests: OPTIONS with Origin and Access-Control-Request-Method and without
	// a body. Browsers send them on their own, and do not show an answer of 429 to anybody.
	LimitPreflight bool
	// Address returns the client's address, usually Proxies.Client. nil means that requests have none. A block
	// everywhere of the address (RL.BLOCK ip:... EVERYWHERE, or SADD on the blacklist) denies its requests,
	// whatever their keys are.
	Address func(*http.Request) netip.Addr
	// Fields selects the fields of replies besides Retry-After. The default is IETF | XEpoch.
	Fields   httpfields.Style
	NoFields bool
	Problem  Problem
	// FallbackStatus is the status of a denial by the fallback. The default is 503, because the client may have
	// kept to the limit. 429 is the alternative.
	FallbackStatus int
	// Decided is called for every decision, before the request proceeds or is answered. It receives the name of
	// the route, and the key as weir has it. It serves logs, and metrics by route.
	Decided func(r *http.Request, route, key string, d client.Decision)
	// Denied answers denials instead of the problem document. Fields and Retry-After are set already.
	// Denial.Status is the status to answer with.
	Denied func(http.ResponseWriter, *http.Request, Denial)
	// LogDenials receives a line at level WARN for each answer of 429, with the client, the endpoint, the name of
	// the route and the retry time. nil disables these lines. Denials of the fallback (503) are not logged here,
	// because the client logs an outage once.
	LogDenials *slog.Logger
	// Logger receives about one line a second for requests that could not be decided. nil means slog.Default().
	Logger *slog.Logger
}

func (o *Options) complete() error {
	if o.Fields == 0 && !o.NoFields {
		o.Fields = httpfields.IETF | httpfields.XEpoch
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.FallbackStatus = cmp.Or(o.FallbackStatus, http.StatusServiceUnavailable)
	if o.FallbackStatus != http.StatusServiceUnavailable && o.FallbackStatus != http.StatusTooManyRequests {
		return fmt.Errorf("%w: FallbackStatus must be 503 or 429, not %d", ErrBadOptions, o.FallbackStatus)
	}
	if len(o.Routes) == 0 {
		return fmt.Errorf("%w: Routes is empty", ErrBadOptions)
	}
	for i := range o.Routes {
		r := &o.Routes[i]
		if err := r.complete(); err != nil {
			return fmt.Errorf("%w: route %q: %w", ErrBadOptions, r.Pattern, err)
		}
	}
	return nil
}

// longestName bounds the name of a route, so that the name and a key together are not longer than weir accepts.
const longestName = 128

func (r *Route) complete() error {
	if r.Policy != nil {
		if r.Rule != nil || r.Name != "" {
			return errors.New("a route with Policy must have no Rule and no Name: the policy provides both")
		}
		r.Rule = client.Policy("by-request") // replaced for each request
	}
	switch {
	case r.Rule == nil || r.Key == nil:
		return errors.New("Key, and Rule or Policy, are required")
	case r.Rule.Err() != nil:
		return r.Rule.Err()
	case len(r.Name) > longestName || r.Name == "" && len(r.Pattern) > longestName:
		return fmt.Errorf("the name must have at most %d bytes", longestName)
	}
	if err := r.checkAlso(); err != nil {
		return err
	}
	r.waiting = new(atomic.Int32)
	if r.Name == "" && r.Rule.IsPolicy() {
		r.Name = r.Rule.Name()
	} else if r.Name == "" {
		r.Name = r.Pattern
	}
	return nil
}

// of returns the route for a request, under the policy of that request. It returns nil if the request has no
// policy.
func (r *Route) of(req *http.Request) *Route {
	if r == nil || r.Policy == nil {
		return r
	}
	name := r.Policy(req)
	if name == "" {
		return nil
	}
	own := *r
	own.Rule, own.Name = client.Policy(name), name
	return &own
}

// request returns the client's request for an HTTP request. Each policy has limiters of its own for its keys. Under
// other rules, the route's name before the key separates the limiters of routes.
func (r *Route) request(req *http.Request) client.Request {
	key := cmp.Or(r.Key(req), keys.Anonymous)
	if !r.Rule.IsPolicy() {
		key = r.Name + "|" + key
	}
	q := client.Request{Rule: r.Rule, Key: key}
	if r.Cost != nil {
		q.Cost = r.Cost(req)
	}
	if len(r.Also) > 0 {
		q.Also = r.also(req, client.Pair{Policy: r.Rule.Name(), Key: key})
	}
	q.High = r.Priority != nil && r.Priority(req)
	return q
}
