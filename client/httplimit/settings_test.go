package httplimit_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/internal/weirtest"
)

// documented are the variables in the documentation of a public API.
var documented = map[string]string{
	"RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_ALGORITHM": "sliding_window", "RATE_LIMIT_DEFAULT": "1000",
	"RATE_LIMIT_WINDOW": "3600",
	"RATE_LIMIT_PER_IP": "100", "RATE_LIMIT_PER_USER": "10000", "RATE_LIMIT_BURST": "50",
}

// with returns the documented variables with some changes.
func with(pairs ...string) func(string) string {
	all := maps.Clone(documented)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return all[name] }
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	s, err := httplimit.FromEnv(with())
	require.NoError(t, err)
	require.Equal(t, httplimit.Settings{
		Enabled: true, Algorithm: httplimit.SlidingWindow, Default: 1000, Window: time.Hour, PerIP: 100,
		PerUser: 10000, Burst: 50,
	}, s)
	s, err = httplimit.FromEnv(func(name string) string {
		return map[string]string{"RATE_LIMIT_DEFAULT": "5", "RATE_LIMIT_WINDOW": " 60 "}[name]
	})
	require.NoError(t, err)
	require.Equal(t, httplimit.Settings{Enabled: true, Algorithm: httplimit.SlidingWindow, Default: 5,
		Window: time.Minute}, s)
	s, err = httplimit.FromEnv(
		func(name string) string { return map[string]string{"RATE_LIMIT_ENABLED": "false"}[name] })
	require.NoError(t, err)
	require.False(t, s.Enabled)
}

// TestSettingsThatAreWrong checks that an error names the variable and what it accepts.
func TestSettingsThatAreWrong(t *testing.T) {
	const requests = " must be a whole number of requests from 1 to 9007199254740992, not "
	for want, getenv := range map[string]func(string) string{
		`RATE_LIMIT_ENABLED must be true or false, not "maybe"`:                                                                       with("RATE_LIMIT_ENABLED", "maybe"),
		`RATE_LIMIT_ALGORITHM must be fixed_window, sliding_window, sliding_window_counter, token_bucket or leaky_bucket, not "gcra"`: with("RATE_LIMIT_ALGORITHM", "gcra"),
		`RATE_LIMIT_DEFAULT` + requests +
			`""`: with("RATE_LIMIT_DEFAULT", ""),
		`RATE_LIMIT_DEFAULT` + requests +
			`"0"`: with("RATE_LIMIT_DEFAULT", "0"),
		`RATE_LIMIT_WINDOW must be a whole number of seconds from 1 to 31622400, not "1h"`: with(
			"RATE_LIMIT_WINDOW", "1h"),
		`RATE_LIMIT_WINDOW must be a whole number of seconds from 1 to 31622400, not ""`: with(
			"RATE_LIMIT_WINDOW", ""),
		`RATE_LIMIT_WINDOW must be a whole number of seconds from 1 to 31622400, not "4e9"`: with(
			"RATE_LIMIT_WINDOW", "4e9"),
		`RATE_LIMIT_PER_IP` + requests +
			`"-1"`: with("RATE_LIMIT_PER_IP", "-1"),
		`RATE_LIMIT_PER_USER` + requests + `"many"`: with("RATE_LIMIT_PER_USER", "many"),
		`RATE_LIMIT_BURST` + requests + `"1.5"`:     with("RATE_LIMIT_BURST", "1.5"),
		`RATE_LIMIT_PER_USER with RATE_LIMIT_ALGORITHM sliding_window: client: bad rule: RL.SLIDING: max must be a whole number from 1 to 1000000`: with("RATE_LIMIT_PER_USER", "2000000"),
	} {
		_, err := httplimit.FromEnv(getenv)
		require.ErrorIs(t, err, httplimit.ErrBadOptions, want)
		require.ErrorContains(t, err, want)
	}
}

// limitedBy returns a server with two routes under settings, and a function that sends requests with headers.
func limitedBy(t *testing.T, getenv func(string) string) (c *client.Client,
	ask func(path string, headers ...string) *http.Response) {
	settings, err := httplimit.FromEnv(getenv)
	require.NoError(t, err)
	settings.Prefix = "api:"
	s := weirtest.Start(t)
	c = newClient(t, s, client.Options{})
	require.NoError(t, settings.SetPolicies(t.Context(), c))
	require.NoError(t, settings.SetPolicies(t.Context(), c), "each process sets the policies again")
	ip, user := httplimit.ByHeader("X-Ip"), httplimit.ByAPIKey("X-Api-Key")
	web, _ := serve(t, c,
		httplimit.Options{Routes: []httplimit.Route{settings.Route("/a", ip, user), settings.Route("/b", ip, user)}})
	return c, func(path string, headers ...string) *http.Response {
		res, _ := send(t, http.MethodGet, web.URL+path, headers...)
		return res
	}
}

func TestEachSettingCounts(t *testing.T) {
	_, ask := limitedBy(t, with("RATE_LIMIT_DEFAULT", "3", "RATE_LIMIT_PER_IP", "5", "RATE_LIMIT_PER_USER", "7"))
	passes := func(path string, headers ...string) (n int) {
		for range 10 {
			if ask(path, headers...).StatusCode == http.StatusOK {
				n++
			}
		}
		return n
	}
	require.Equal(t, 3, passes("/a", "X-Ip", "1"), "one client must have this limit at one route")
	require.Equal(t, 2, passes("/b", "X-Ip", "1"), "one address must have this limit at all routes")
	require.Equal(t, `"api:per-ip";r=0;t=3600`, ask("/b", "X-Ip", "1").Header.Get("RateLimit"))
	require.Equal(t, `"/a";r=0;t=3600`,
		func() string { passes("/a", "X-Ip", "9"); return ask("/a", "X-Ip", "9").Header.Get("RateLimit") }())
	require.Equal(t, 3, passes("/a", "X-Ip", "2", "X-Api-Key", "k"))
	require.Equal(t, 0, passes("/a", "X-Ip", "3", "X-Api-Key", "k"), "a user must keep the limit at another address")
	require.Equal(t, 3, passes("/b", "X-Ip", "3", "X-Api-Key", "k"))
	require.Equal(t, 3, passes("/a", "X-Ip", "4", "X-Api-Key", "k2"))
	_, ask = limitedBy(t, with("RATE_LIMIT_DEFAULT", "100", "RATE_LIMIT_PER_IP", "", "RATE_LIMIT_PER_USER", "7"))
	require.Equal(t, 7, passes("/a", "X-Ip", "3", "X-Api-Key", "k"))
	require.Equal(t, `"api:per-user";r=0;t=3600`, ask("/b", "X-Ip", "4", "X-Api-Key", "k").Header.Get("RateLimit"))
	require.Equal(t, 10, passes("/a", "X-Ip", "3"), "addresses must not have a limit of their own")
}

// TestEachAlgorithm checks each name of an algorithm with the figures of the documentation.
func TestEachAlgorithm(t *testing.T) {
	for name, rule := range map[string]string{
		"fixed_window": "FIXED 1h 1000", "fixed_window_counter": "FIXED 1h 1000", "sliding_window": "SLIDING 1h 1000",
		"":                   "SLIDING 1h 1000",
		"Sliding_Window_Log": "SLIDING 1h 1000", "sliding_window_counter": "SLIDINGCOUNTER 1h 1000",
		"token_bucket": "TOKENBUCKET 1/3600ms 50", "leaky_bucket": "LEAKYBUCKET 1/3600ms 1",
	} {
		c, ask := limitedBy(t, with("RATE_LIMIT_ALGORITHM", name))
		require.Equal(t, http.StatusOK, ask("/a", "X-Ip", "1").StatusCode, name)
		p, err := c.GetPolicy(t.Context(), "api:default")
		require.NoError(t, err)
		require.Equal(t, []string{rule}, p.Limits, name)
	}
	_, ask := limitedBy(t, with("RATE_LIMIT_ALGORITHM", "token_bucket", "RATE_LIMIT_BURST", ""))
	require.Equal(t, "100", ask("/a", "X-Ip", "1").Header.Get("X-RateLimit-Limit"),
		"without RATE_LIMIT_BURST the burst must be the limit")
}
