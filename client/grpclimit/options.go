package grpclimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/internal/quota"
	"github.com/weir-project/weir/httpfields"
)

// ErrBadOptions: an option is missing or wrong.
var ErrBadOptions = errors.New("grpclimit: bad options")

// Method is a set of calls with the same limit.
type Method struct {
	// Name is a full method ("/shop.Orders/Create"), all methods of a service ("/shop.Orders/"), or "/" for all
	// other calls.
	Name string
	Rule *client.Rule
	Key  Key
}

// Options configure New. Methods is required.
type Options struct {
	Methods []Method
	Exclude []string // methods that are not limited, in the form of Method.Name
	// Fields selects the rate limit fields in response headers. Zero means IETF | XDelta, or no fields if NoFields is
	// set. NoFields has no effect on any other value.
	Fields   httpfields.Style
	NoFields bool
	// Decided is called for every decision, before the call proceeds or fails. It receives the method or the
	// policy, and the key as weir has it. It serves logs and metrics.
	Decided func(ctx context.Context, method, key string, d client.Decision)
	// Logger receives about one line a second for calls that could not be decided. nil means slog.Default().
	Logger *slog.Logger
}

// New returns interceptors that limit calls through c.
func New(c *client.Client, o Options) (*Limiter, error) {
	l := &Limiter{client: c, teller: quota.Teller{Client: c}, methods: map[string]*Method{}, fields: o.Fields,
		decided: o.Decided, log: cmp.Or(o.Logger, slog.Default())}
	if o.Fields == 0 && !o.NoFields {
		l.fields = httpfields.IETF | httpfields.XDelta
	}
	if len(o.Methods) == 0 {
		return nil, fmt.Errorf("%w: there must be a method", ErrBadOptions)
	}
	for _, m := range o.Methods {
		switch {
		case m.Rule == nil || m.Key == nil:
			return nil, fmt.Errorf("%w: method %q: Rule and Key must be given", ErrBadOptions, m.Name)
		case m.Rule.Err() != nil:
			return nil, fmt.Errorf("%w: method %q: %w", ErrBadOptions, m.Name, m.Rule.Err())
		}
		if err := l.add(m.Name, &m); err != nil {
			return nil, err
		}
	}
	for _, name := range o.Exclude {
		if err := l.add(name, nil); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// longestName bounds Method.Name, so that the name and a key together are not longer than weir accepts.
const longestName = 256

// methodName matches Method.Name. It refuses a star, which would have no special meaning, and an empty service, which
// no call has.
var methodName = regexp.MustCompile(`^/([^/*?\s]+/[^/*?\s]*)?$`)

func (l *Limiter) add(name string, m *Method) error {
	if _, twice := l.methods[name]; twice || len(name) > longestName || !methodName.MatchString(name) {
		return fmt.Errorf("%w: a method must be like /shop.Orders/Create, /shop.Orders/ or /, at most %d bytes, and "+
			"there once, not %q", ErrBadOptions, longestName, name)
	}
	l.methods[name] = m
	return nil
}
