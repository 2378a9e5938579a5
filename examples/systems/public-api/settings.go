package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/engine"
)

// prefix begins the names of the policies default, per-ip and per-user. It keeps them apart from the policies of
// public-api.yaml.
const prefix = "env:"

// maxPace is the longest delay of a leaky bucket. It is shorter than the timeouts of clients and proxies.
const maxPace = 5 * time.Second

const maxWindowSeconds = engine.MaxWindowNs / int64(time.Second)

// settings are the limits of the environment. One check counts a request under all of them: by its address, by its
// user if it has one, and by its client at the route. The client is the user, or else the address.
type settings struct {
	enabled   bool
	algorithm string
	window    time.Duration
	burst     int64 // of token_bucket; 0: the limit itself
	// limits by the names of the policies, without prefix. Only default is always there.
	limits map[string]int64
}

// variables are the numbers of requests in a window, by the policy that they become.
var variables = map[string]string{
	"default":  "RATE_LIMIT_DEFAULT",  // of one client at one route
	"per-ip":   "RATE_LIMIT_PER_IP",   // of one address
	"per-user": "RATE_LIMIT_PER_USER", // of one user
}

// settingsOf reads settings with getenv, usually os.Getenv. An error names the variable and the accepted values.
func settingsOf(getenv func(string) string) (settings, error) {
	e := environment{getenv: getenv}
	s := settings{limits: map[string]int64{}}
	if s.enabled = e.flag("RATE_LIMIT_ENABLED"); !s.enabled {
		return s, e.err
	}
	s.algorithm = strings.ToLower(cmp.Or(e.text("RATE_LIMIT_ALGORITHM"), "sliding_window"))
	if s.rule(1) == nil {
		e.refuse("RATE_LIMIT_ALGORITHM",
			"fixed_window, sliding_window, sliding_window_counter, token_bucket or leaky_bucket", s.algorithm)
	}
	s.window = time.Duration(e.number("RATE_LIMIT_WINDOW", "seconds", maxWindowSeconds)) * time.Second
	if e.text("RATE_LIMIT_BURST") != "" {
		s.burst = e.number("RATE_LIMIT_BURST", "requests", engine.MaxUnits)
	}
	for policy, name := range variables {
		if e.text(name) != "" || policy == "default" {
			s.limits[policy] = e.number(name, "requests", engine.MaxUnits)
		}
	}
	for policy, max := range s.limits {
		if e.err == nil && s.rule(max).Err() != nil {
			e.err = fmt.Errorf("%s with RATE_LIMIT_ALGORITHM %s: %w", variables[policy], s.algorithm, s.rule(max).Err())
		}
	}
	return s, e.err
}

// rule returns a limit under the configured algorithm, or nil if there is no such algorithm.
func (s *settings) rule(max int64) *client.Rule {
	rate := client.Rate{Units: max, Per: s.window}
	switch s.algorithm {
	case "fixed_window", "fixed_window_counter":
		return client.Fixed(s.window, max)
	case "sliding_window", "sliding_window_log":
		return client.Sliding(s.window, max)
	case "sliding_window_counter":
		return client.SlidingCounter(s.window, max)
	case "token_bucket":
		return client.TokenBucket(rate, cmp.Or(s.burst, max))
	case "leaky_bucket": // passes requests at an even rate, and delays those that arrive earlier
		return client.LeakyBucket(rate, int64(float64(max)*float64(maxPace)/float64(s.window)))
	}
	return nil
}

// setPolicies sets the policies at weir to the limits of the settings. Usage is kept.
func (s *settings) setPolicies(ctx context.Context, c *client.Client) error {
	for _, policy := range slices.Sorted(maps.Keys(s.limits)) {
		terms := client.PolicyTerms{Limits: []*client.Rule{s.rule(s.limits[policy])}}
		if _, err := c.SetPolicy(ctx, prefix+policy, terms); err != nil {
			return fmt.Errorf("policy %s: %w", prefix+policy, err)
		}
	}
	return nil
}

// route returns a route with the limits of the settings, for the address and the user that the keys find. The policies
// must exist. While weir is not reached, client.Local decides by the same limits.
func (s *settings) route(pattern string, ip, user httplimit.Key) httplimit.Route {
	policy := func(name string) *client.Rule { return client.Policy(prefix+name, s.rule(s.limits[name])) }
	who := httplimit.FirstOf(user, ip)
	r := httplimit.Route{Pattern: pattern, Name: pattern, Rule: policy("default"),
		Key: func(r *http.Request) string { return pattern + "|" + who(r) }} // all routes share one policy
	if s.limits["per-ip"] > 0 {
		r.Also = append(r.Also, httplimit.Limit{Rule: policy("per-ip"), Key: ip})
	}
	if s.limits["per-user"] > 0 {
		r.Also = append(r.Also, httplimit.Limit{Rule: policy("per-user"), Key: user, Optional: true})
	}
	return r
}

// environment reads variables and keeps the first error.
type environment struct {
	getenv func(string) string
	err    error
}

func (e *environment) text(name string) string { return strings.TrimSpace(e.getenv(name)) }

func (e *environment) refuse(name, accepts, value string) {
	if e.err == nil {
		e.err = fmt.Errorf("%s must be %s, not %q", name, accepts, value)
	}
}

// flag parses a switch that is on unless given.
func (e *environment) flag(name string) bool {
	on, err := strconv.ParseBool(cmp.Or(e.text(name), "true"))
	if err != nil {
		e.refuse(name, "true or false", e.text(name))
	}
	return on
}

// number parses a whole number of at least 1.
func (e *environment) number(name, unit string, most int64) int64 {
	n, err := strconv.ParseInt(e.text(name), 10, 64)
	if err != nil || n < 1 || n > most {
		e.refuse(name, fmt.Sprintf("a whole number of %s from 1 to %d", unit, most), e.text(name))
		return 0
	}
	return n
}
