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

// Route is requests that are limited in one way.
type Route struct {
	// Pattern is one of http.ServeMux, "POST /login", "/api/", "/users/{id}", "/" for everything
	// else, or a glob, "**/login**", "POST /v*/login", "/api/**": see the package's comment.
	// New refuses a pattern that would match nothing, and a route that no request reaches.
	Pattern string
	Rule    *client.Rule
	Key     Key
	// Policy names the policy of a request in place of Rule, where requests of one pattern have
	// different ones: those of a gateway, whose routes are made while it runs. A request for which
	// it returns nothing passes. The name must come from the program's own table, not from
	// the client, who would choose his limit.
	Policy func(*http.Request) string
	// Name is what routes share that are limited together, and what problem documents and
	// fields call the limit. The policy's unless given, or else the pattern. At most 128
	// bytes. Routes of several middlewares around one handler need names of their own.
	Name string
	// Cost is the units of a request; nil: 1 each. Not below 0; 0 is counted as 1.
	Cost func(*http.Request) int64
	// Also are further limits of each request, up to 15. weir decides under all of them in one
	// step: all admit the request, or none counts it. Replies tell of the limit that binds, by the
	// name of its policy. Rule must then be a policy, too.
	Also []Limit
	// Priority says which requests may take what their policies keep for high priority (RESERVED);
	// nil: none. Do not believe a header that clients can set.
	Priority func(*http.Request) bool
	// Queue is how long weir holds a request that is over the limit until it fits; 0: it is denied at
	// once. See Client.Queue for the order and for the bounds on the number of requests that wait.
	Queue time.Duration
	// Breaker answers 503 while the handler of the route fails; nil: there is none. It is asked
	// about requests that are within their limits. Routes may share one.
	Breaker *Breaker

	waiting *atomic.Int32 // requests of the route in Client.Queue
}

// Options are choices for New. Routes is required.
type Options struct {
	Routes []Route
	// Enabled is the switch for all routes, asked about each request: while it is false, requests
	// pass as if there were no middleware. nil: always true. The Load of an atomic.Bool is such a
	// switch. To switch off one route, disable its policy (RL.POLICY DISABLE).
	Enabled func() bool
	// Exclude are patterns of requests that pass, as if they were written before the routes: a
	// glob ("/health**" for every path that begins so) passes whatever it matches, a pattern of
	// http.ServeMux what fits no other such pattern better.
	Exclude []string
	// LimitPreflight limits OPTIONS requests as well. Browsers send them by themselves, and
	// show nobody an answer of 429.
	LimitPreflight bool
	// Address returns the client's address, usually Proxies.Client; nil: requests have none.
	// A block everywhere of the address (RL.BLOCK ip:... EVERYWHERE, or SADD on the blacklist)
	// denies its requests whatever their key is.
	Address func(*http.Request) netip.Addr
	// Fields are those that replies carry, beside Retry-After. Unless given: IETF | XEpoch.
	Fields   httpfields.Style
	NoFields bool
	Problem  Problem
	// FallbackStatus is that of a denial by the fallback: 503 unless given, for the client may have
	// kept to the limit, or 429.
	FallbackStatus int
	// Decided is told of every decision before the request goes on or is answered: of the
	// route by its name, and of the key as weir knows it. For logs, and metrics by route.
	Decided func(r *http.Request, route, key string, d client.Decision)
	// Denied answers denials in place of the problem document. Fields and Retry-After are
	// set; Denial.Status is what it should answer.
	Denied func(http.ResponseWriter, *http.Request, Denial)
	// LogDenials gets a line at level WARN for each answer of 429: the client, the endpoint, the
	// name of the route, the wait. nil: no lines. Denials of the fallback (503) are not among
	// them, because the client logs an outage once.
	LogDenials *slog.Logger
	// Logger is told of requests that could not be decided, about one a second; nil:
	// slog.Default().
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
		return fmt.Errorf("%w: there must be a route", ErrBadOptions)
	}
	for i := range o.Routes {
		r := &o.Routes[i]
		if err := cmp.Or(r.complete(), o.checkPreflight(r.Pattern)); err != nil {
			return fmt.Errorf("%w: route %q: %w", ErrBadOptions, r.Pattern, err)
		}
	}
	return nil
}

// longestName leaves room for the key behind it.
const longestName = 128

func (r *Route) complete() error {
	if r.Policy != nil {
		if r.Rule != nil || r.Name != "" {
			return errors.New("a Policy takes the place of the Rule, and the route has the policy's Name: give neither")
		}
		r.Rule = client.Policy("by-request") // until there is a request
	}
	switch {
	case r.Rule == nil || r.Key == nil:
		return errors.New("a Rule and a Key must be given, or a Policy in place of the Rule")
	case r.Rule.Err() != nil:
		return r.Rule.Err()
	case len(r.Name) > longestName || r.Name == "" && len(r.Pattern) > longestName:
		return fmt.Errorf("the name must be at most %d bytes", longestName)
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

// of returns the route as it is for a request: under its policy of that moment, nil where the
// request has none.
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

// request is what weir is asked about a request. Policies keep their keys apart by
// themselves; under other rules the name does.
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
