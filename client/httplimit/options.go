package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

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
	// Name is what routes share that are limited together, and what problem documents and
	// fields call the limit. The policy's unless given, or else the pattern. At most 128
	// bytes. Routes of several middlewares around one handler need names of their own.
	Name string
	// Cost is the units of a request; nil: 1 each. Not below 0; 0 is counted as 1.
	Cost func(*http.Request) int64
}

// Options are choices for New. Routes is required.
type Options struct {
	Routes []Route
	// Exclude are patterns of requests that pass, as if they were written before the routes: a
	// glob ("/health**" for every path that begins so) passes whatever it matches, a pattern of
	// http.ServeMux what fits no other such pattern better.
	Exclude []string
	// LimitPreflight limits OPTIONS requests as well. Browsers send them by themselves, and
	// show nobody an answer of 429.
	LimitPreflight bool
	// Fields are those that replies carry, beside Retry-After. Unless given: IETF | XEpoch.
	Fields   httpfields.Style
	NoFields bool
	Problem  Problem
	// Decided is told of every decision before the request goes on or is answered: of the
	// route by its name, and of the key as weir knows it. For logs, and metrics by route.
	Decided func(r *http.Request, route, key string, d client.Decision)
	// Denied answers denials in place of the problem document. Fields and Retry-After are
	// set; Denial.Status is what it should answer.
	Denied func(http.ResponseWriter, *http.Request, Denial)
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
	switch {
	case r.Rule == nil || r.Key == nil:
		return errors.New("a Rule and a Key must be given")
	case r.Rule.Err() != nil:
		return r.Rule.Err()
	case len(r.Name) > longestName || r.Name == "" && len(r.Pattern) > longestName:
		return fmt.Errorf("the name must be at most %d bytes", longestName)
	}
	if r.Name == "" && r.Rule.IsPolicy() {
		r.Name = r.Rule.Name()
	} else if r.Name == "" {
		r.Name = r.Pattern
	}
	return nil
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
	return q
}
