package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/internal/keys"
	"github.com/weir-project/weir/engine"
)

// Limit is an additional limit of a route.
type Limit struct {
	// Rule is a policy, made with client.Policy.
	Rule *client.Rule
	// Key returns the key that the limit counts.
	Key Key
	// Optional omits the limit from the check of a request for which Key returns "". By default these requests
	// share one limiter.
	Optional bool
}

// The errors of options that need policies, because only RL.CHECK implements them.
var (
	errNotAtomic = errors.New("weir decides under several limits in one step only if each of them is a policy: " +
		"create one (RL.POLICY SET) and name it with client.Policy")
	errNoReserve = errors.New("only a policy has a part that is kept for high priority: " +
		"create one (RL.POLICY SET ... RESERVED 10%) and name it with client.Policy")
)

func (r *Route) checkAlso() error {
	if len(r.Also) >= engine.MaxPairs {
		return fmt.Errorf("a route has at most %d limits in all, not %d", engine.MaxPairs, len(r.Also)+1)
	}
	switch {
	case len(r.Also) > 0 && !r.Rule.IsPolicy():
		return fmt.Errorf("the rule %q is not a policy: %w", r.Rule.Name(), errNotAtomic)
	case r.Priority != nil && !r.Rule.IsPolicy():
		return fmt.Errorf("the rule %q is not a policy: %w", r.Rule.Name(), errNoReserve)
	}
	for i, l := range r.Also {
		switch {
		case l.Rule == nil || l.Key == nil:
			return fmt.Errorf("limit %d of Also: Key and Rule are required", i+1)
		case l.Rule.Err() != nil:
			return fmt.Errorf("limit %d of Also: %w", i+1, l.Rule.Err())
		case !l.Rule.IsPolicy():
			return fmt.Errorf("limit %d of Also: the rule %q is not a policy: %w", i+1, l.Rule.Name(), errNotAtomic)
		}
	}
	return nil
}

// also returns the additional policies of a check. It removes repeated pairs, because weir refuses them.
func (r *Route) also(req *http.Request, first client.Pair) []client.Pair {
	pairs := make([]client.Pair, 0, len(r.Also))
	for i := range r.Also {
		l := &r.Also[i]
		key := l.Key(req)
		if key == "" && l.Optional {
			continue
		}
		p := client.Pair{Policy: l.Rule.Name(), Key: cmp.Or(key, keys.Anonymous)}
		if p != first && !slices.Contains(pairs, p) {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// binding returns the name and the window of the limit that a decision describes.
func (r *Route) binding(d *client.Decision) (name string, window time.Duration) {
	if d.Policy == "" || d.Policy == r.Rule.Name() {
		return r.Name, r.Rule.Window()
	}
	for i := range r.Also {
		if rule := r.Also[i].Rule; rule.Name() == d.Policy {
			return d.Policy, rule.Window()
		}
	}
	return d.Policy, 0
}

// standIn gives the client all policies of the routes before a request names one.
func (l *limiter) standIn() {
	for i := range l.o.Routes {
		r := &l.o.Routes[i]
		if !r.Rule.IsPolicy() {
			continue
		}
		if r.Policy == nil {
			l.client.StandIn(r.Rule)
		}
		for j := range r.Also {
			l.client.StandIn(r.Also[j].Rule)
		}
	}
}
