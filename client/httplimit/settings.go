package httplimit

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/internal/keys"
	"github.com/weir-project/weir/engine"
)

// Settings are the limits of a service from environment variables. One check counts a request under all of
// them: by its address, by its user if it has one, and by its client at the route. The client is the user, or
// else the address.
type Settings struct {
	Enabled   bool          // RATE_LIMIT_ENABLED: true unless given
	Algorithm Algorithm     // RATE_LIMIT_ALGORITHM: SlidingWindow unless given
	Default   int64         // RATE_LIMIT_DEFAULT: requests of one client at one route in a window
	Window    time.Duration // RATE_LIMIT_WINDOW: in seconds
	PerIP     int64         // RATE_LIMIT_PER_IP: requests of one address in a window; 0: no such limit
	PerUser   int64         // RATE_LIMIT_PER_USER: requests of one user in a window; 0: no such limit
	Burst     int64         // RATE_LIMIT_BURST: the burst of TokenBucket; 0: the limit itself
	// Prefix begins the names of the policies default, per-ip and per-user, so that several services can share a
	// weir. It has no variable.
	Prefix string
}

// Algorithm is a value of RATE_LIMIT_ALGORITHM.
type Algorithm string

// The algorithms.
const (
	FixedWindow          Algorithm = "fixed_window"
	SlidingWindow        Algorithm = "sliding_window"         // exact
	SlidingWindowCounter Algorithm = "sliding_window_counter" // about exact, in constant memory
	TokenBucket          Algorithm = "token_bucket"
	// LeakyBucket passes requests at an even rate. Requests that arrive earlier are delayed by at most maxPace,
	// and denied beyond that.
	LeakyBucket Algorithm = "leaky_bucket"
)

// algorithms are the values of RATE_LIMIT_ALGORITHM.
var algorithms = map[string]Algorithm{
	"": SlidingWindow, "fixed_window": FixedWindow, "fixed_window_counter": FixedWindow,
	"sliding_window":     SlidingWindow,
	"sliding_window_log": SlidingWindow, "sliding_window_counter": SlidingWindowCounter, "token_bucket": TokenBucket,
	"leaky_bucket": LeakyBucket,
}

// maxPace is the longest delay of a leaky bucket. It is shorter than the timeouts of clients and proxies.
const maxPace = 5 * time.Second

// The variables.
const (
	envEnabled   = "RATE_LIMIT_ENABLED"
	envAlgorithm = "RATE_LIMIT_ALGORITHM"
	envDefault   = "RATE_LIMIT_DEFAULT"
	envWindow    = "RATE_LIMIT_WINDOW"
	envPerIP     = "RATE_LIMIT_PER_IP"
	envPerUser   = "RATE_LIMIT_PER_USER"
	envBurst     = "RATE_LIMIT_BURST"
)

const maxWindowSeconds = engine.MaxWindowNs / int64(time.Second)

// FromEnv reads settings with getenv, usually os.Getenv. RATE_LIMIT_DEFAULT and RATE_LIMIT_WINDOW are required
// unless RATE_LIMIT_ENABLED is false. Settings documents the defaults of the other variables.
// RATE_LIMIT_ALGORITHM also accepts fixed_window_counter for fixed_window, and sliding_window_log for
// sliding_window. Errors are ErrBadOptions, and name the variable and the accepted values.
func FromEnv(getenv func(string) string) (s Settings, err error) {
	e := environment{getenv: getenv}
	if s.Enabled = true; e.text(envEnabled) != "" {
		s.Enabled = e.flag(envEnabled)
	}
	name := e.text(envAlgorithm)
	known := false
	if s.Algorithm, known = algorithms[strings.ToLower(name)]; !known {
		e.refuse(envAlgorithm, "fixed_window, sliding_window, sliding_window_counter, token_bucket or leaky_bucket",
			name)
	}
	s.Default = e.number(envDefault, "requests", engine.MaxUnits, s.Enabled)
	s.Window = time.Duration(e.number(envWindow, "seconds", maxWindowSeconds, s.Enabled)) * time.Second
	s.PerIP = e.number(envPerIP, "requests", engine.MaxUnits, false)
	s.PerUser = e.number(envPerUser, "requests", engine.MaxUnits, false)
	s.Burst = e.number(envBurst, "requests", engine.MaxUnits, false)
	for _, l := range s.limits() {
		if rule := s.rule(l.max); s.Enabled && e.err == nil && rule.Err() != nil {
			e.err = fmt.Errorf("%w: %s with %s %s: %w", ErrBadOptions, l.env, envAlgorithm, s.Algorithm, rule.Err())
		}
	}
	return s, e.err
}

// limit is one limit of Settings: the policy without Settings.Prefix, the variable, and the number of requests.
type limit struct {
	policy, env string
	max         int64
}

func (s *Settings) limits() []limit {
	all := []limit{{"default", envDefault, s.Default}}
	if s.PerIP > 0 {
		all = append(all, limit{"per-ip", envPerIP, s.PerIP})
	}
	if s.PerUser > 0 {
		all = append(all, limit{"per-user", envPerUser, s.PerUser})
	}
	return all
}

// rule returns a limit under the configured algorithm.
func (s *Settings) rule(max int64) *client.Rule {
	rate := client.Rate{Units: max, Per: s.Window}
	switch s.Algorithm {
	case FixedWindow:
		return client.Fixed(s.Window, max)
	case SlidingWindowCounter:
		return client.SlidingCounter(s.Window, max)
	case TokenBucket:
		return client.TokenBucket(rate, cmp.Or(s.Burst, max))
	case LeakyBucket:
		return client.LeakyBucket(rate, int64(float64(max)*float64(maxPace)/float64(s.Window)))
	}
	return client.Sliding(s.Window, max)
}

// SetPolicies sets the policies at weir to the limits of the settings. Usage is kept.
func (s *Settings) SetPolicies(ctx context.Context, c *client.Client) error {
	for _, l := range s.limits() {
		if _, err := c.SetPolicy(
			ctx, s.Prefix+l.policy, client.PolicyTerms{Limits: []*client.Rule{s.rule(l.max)}}); err != nil {
			return fmt.Errorf("policy %s: %w", s.Prefix+l.policy, err)
		}
	}
	return nil
}

// Route returns a route with the limits of the settings, for the address and the user that the keys find. The
// policies must exist: see SetPolicies. While weir is not reached, client.Local decides by the same limits.
func (s *Settings) Route(pattern string, ip, user Key) Route {
	policy := func(name string, max int64) *client.Rule { return client.Policy(s.Prefix+name, s.rule(max)) }
	r := Route{Pattern: pattern, Name: pattern, Rule: policy("default", s.Default),
		Key: atRoute(pattern, FirstOf(user, ip))}
	if s.PerIP > 0 {
		r.Also = append(r.Also, Limit{Rule: policy("per-ip", s.PerIP), Key: ip})
	}
	if s.PerUser > 0 {
		r.Also = append(r.Also, Limit{Rule: policy("per-user", s.PerUser), Key: user, Optional: true})
	}
	return r
}

// atRoute returns a key of the route and the client, because all routes share one policy.
func atRoute(pattern string, client Key) Key {
	return func(r *http.Request) string { return pattern + "|" + cmp.Or(client(r), keys.Anonymous) }
}

// environment reads variables and keeps the first error.
type environment struct {
	getenv func(string) string
	err    error
}

func (e *environment) text(name string) string { return strings.TrimSpace(e.getenv(name)) }

func (e *environment) refuse(name, accepts, value string) {
	if e.err == nil {
		e.err = fmt.Errorf("%w: %s must be %s, not %q", ErrBadOptions, name, accepts, value)
	}
}

func (e *environment) flag(name string) bool {
	on, err := strconv.ParseBool(e.text(name))
	if err != nil {
		e.refuse(name, "true or false", e.text(name))
	}
	return on
}

// number parses a whole number of at least 1. It returns 0 for an optional variable that is not set.
func (e *environment) number(name, unit string, most int64, required bool) int64 {
	text := e.text(name)
	if text == "" && !required {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		e.refuse(name, fmt.Sprintf("a whole number of %s from 1 to %d", unit, most), text)
		return 0
	}
	return n
}
