package httplimit_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/internal/weirtest"
)

// setPolicies creates policies of one limit each: max an hour from the first request on.
func setPolicies(t testing.TB, c *client.Client, most map[string]int64) {
	t.Helper()
	for name, max := range most {
		_, err := c.SetPolicy(
			t.Context(), name, client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, max)}})
		require.NoError(t, err)
	}
}

func usedUnder(t testing.TB, c *client.Client, policy, key string) int64 {
	t.Helper()
	info, err := c.Inspect(t.Context(), "policy|"+policy+"|0|"+key)
	require.NoError(t, err)
	return info.Used
}

// inAll returns a route that counts an endpoint, an address, an API key and the service.
func inAll() httplimit.Route {
	return httplimit.Route{
		Pattern: "/users", Name: "GET /users", Rule: client.Policy("users"), Key: httplimit.ByRoute(),
		Also: []httplimit.Limit{
			{Rule: client.Policy("ip"), Key: new(httplimit.Proxies).ByIP()},
			{Rule: client.Policy("api-key"), Key: httplimit.ByHeader("X-Api-Key"), Optional: true},
			{Rule: client.Policy("service"), Key: httplimit.ByRoute()},
		},
	}
}

// TestSeveralLimitsInOneCheck checks that the answer reports the limit that binds, and that a denial takes nothing
// from any limit.
func TestSeveralLimitsInOneCheck(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	setPolicies(t, c, map[string]int64{"users": 9, "ip": 7, "api-key": 2, "service": 8})
	web, served := serve(t, c, httplimit.Options{Routes: []httplimit.Route{inAll()}})
	for _, left := range []string{`"api-key";r=1;t=3600`, `"api-key";r=0;t=3600`} {
		res, _ := send(t, http.MethodGet, web.URL+"/users", "X-Api-Key", "k1")
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, left, res.Header.Get("RateLimit"))
		require.Equal(t, "2", res.Header.Get("X-RateLimit-Limit"))
	}
	res, body := send(t, http.MethodGet, web.URL+"/users", "X-Api-Key", "k1")
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Contains(t, body, `"violated-policies":["api-key"]`)
	require.Equal(t, "3600", res.Header.Get("Retry-After"))
	require.EqualValues(t, 2, usedUnder(t, c, "users", "route"), "a denial must take nothing")
	require.EqualValues(t, 2, usedUnder(t, c, "service", "route"))

	for range 5 {
		res, _ = send(t, http.MethodGet, web.URL+"/users") // no key: that limit is left out
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	require.Equal(t, `"ip";r=0;t=3600`, res.Header.Get("RateLimit"))
	res, body = send(t, http.MethodGet, web.URL+"/users", "X-Api-Key", "k2")
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Contains(t, body, `"violated-policies":["ip"]`)
	require.Zero(t, usedUnder(t, c, "api-key", "header:k2"))
	require.Zero(t, usedUnder(t, c, "api-key", "anonymous"),
		"a limit that is left out must not count for a shared key")
	require.EqualValues(t, 7, served.Load())
}

// TestTheRoutesOwnLimitBinds checks that the answer reports the route's own limit under the route's name.
func TestTheRoutesOwnLimitBinds(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	setPolicies(t, c, map[string]int64{"users": 1, "ip": 7, "api-key": 7, "service": 7})
	web, _ := serve(t, c, httplimit.Options{Routes: []httplimit.Route{inAll()}})
	res, _ := send(t, http.MethodGet, web.URL+"/users")
	require.Equal(t, `"GET /users";r=0;t=3600`, res.Header.Get("RateLimit"))
	_, body := send(t, http.MethodGet, web.URL+"/users")
	require.Contains(t, body, `"violated-policies":["GET /users"]`)
}

// TestSeveralLimitsAreAtomic checks that each limit admits exactly its units under concurrent requests.
func TestSeveralLimitsAreAtomic(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	setPolicies(t, c, map[string]int64{"users": 100, "ip": 60, "api-key": 20, "service": 100})
	web, served := serve(t, c, httplimit.Options{Routes: []httplimit.Route{inAll()}})
	var all sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d"} {
		for range 2 {
			all.Go(func() {
				for range 25 {
					send(t, http.MethodGet, web.URL+"/users", "X-Api-Key", key)
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(t, 60, served.Load())
	for _, policy := range []string{"users", "service"} {
		require.EqualValues(t, 60, usedUnder(t, c, policy, "route"), policy)
	}
	sum := int64(0)
	for _, key := range []string{"a", "b", "c", "d"} {
		sum += usedUnder(t, c, "api-key", "header:"+key)
	}
	require.EqualValues(t, 60, sum)
}

// TestOnePolicyTwiceForOneKey checks that a policy which two limits name for the same key counts once. weir would
// refuse it twice in one check.
func TestOnePolicyTwiceForOneKey(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	setPolicies(t, c, map[string]int64{"users": 5})
	policy := client.Policy("users")
	web, _ := serve(t, c, httplimit.Options{Routes: []httplimit.Route{{
		Pattern: "/", Rule: policy, Key: httplimit.ByHeader("X-User"),
		Also: []httplimit.Limit{
			{Rule: policy, Key: httplimit.ByHeader("X-Team")}, {Rule: policy, Key: httplimit.ByHeader("X-Org")},
		},
	}}})
	res, _ := send(t, http.MethodGet, web.URL)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.EqualValues(t, 1, usedUnder(t, c, "users", "anonymous"))
}

// TestSeveralLimitsInAnOutage checks that the fallback decides every limit of a check in the process.
func TestSeveralLimitsInAnOutage(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local, LocalFraction: 0.5})
	route := inAll()
	route.Rule = client.Policy("users", client.FixedFirst(time.Hour, 100))
	for i, max := range []int64{8, 100, 100} {
		name := route.Also[i].Rule.Name()
		route.Also[i].Rule = client.Policy(name, client.FixedFirst(time.Hour, max))
	}
	web, served := serve(t, c, httplimit.Options{Routes: []httplimit.Route{route}})
	s.Stop()
	for range 10 {
		send(t, http.MethodGet, web.URL+"/users", "X-Api-Key", "k")
	}
	require.EqualValues(t, 4, served.Load(), "the fallback must admit half of the smallest limit")
}

func TestRoutesThatCannotBeOneCheck(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	key, rule, policy := httplimit.ByRoute(), client.Fixed(time.Hour, 1), client.Policy("p")
	high := func(*http.Request) bool { return true }
	many := make([]httplimit.Limit, 16)
	for want, route := range map[string]httplimit.Route{
		`the rule "RL.FIXED 1h 1" is not a policy: weir decides under several limits in one step only if each`: {
			Rule: rule, Key: key, Also: []httplimit.Limit{{Rule: policy, Key: key}}},
		`limit 1 of Also: the rule "RL.FIXED 1h 1" is not a policy`: {Rule: policy, Key: key,
			Also: []httplimit.Limit{{Rule: rule, Key: key}}},
		`only a policy has a part that is kept for high priority`: {Rule: rule, Key: key, Priority: high},
		`limit 1 of Also: Key and Rule are required`: {Rule: policy, Key: key,
			Also: []httplimit.Limit{{Rule: policy}}},
		`a route has at most 16 limits in all, not 17`:                     {Rule: policy, Key: key, Also: many},
		`Queue: client: bad request: weir holds a request for 0 to 1h0m0s`: {Rule: policy, Key: key, Queue: -1},
		`ends a wait of 1m0s: make it longer, or -1`: {Rule: policy, Key: key,
			Queue: time.Minute},
	} {
		route.Pattern = "/"
		_, err := httplimit.New(c, httplimit.Options{Routes: []httplimit.Route{route}})
		require.ErrorIs(t, err, httplimit.ErrBadOptions)
		require.ErrorContains(t, err, want)
		require.True(t, strings.Contains(err.Error(), `route "/"`), err)
	}
}

// TestPriority checks that a part of the limit is reserved for requests that the operator's function selects.
func TestPriority(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	_, err := c.SetPolicy(t.Context(), "service", client.PolicyTerms{
		Limits: []*client.Rule{client.FixedFirst(time.Hour, 4)}, Reserved: 0.5,
	})
	require.NoError(t, err)
	web, _ := serve(t, c, httplimit.Options{Routes: []httplimit.Route{{
		Pattern: "/", Rule: client.Policy("service"), Key: httplimit.ByRoute(),
		Priority: func(r *http.Request) bool { return r.Header.Get("X-Tier") == "gold" },
	}}})
	status := func(headers ...string) int {
		res, _ := send(t, http.MethodGet, web.URL, headers...)
		return res.StatusCode
	}
	require.Equal(t, []int{200, 200, 429, 429}, []int{status(), status(), status(), status("X-Priority", "high")})
	gold := []string{"X-Tier", "gold"}
	require.Equal(t, []int{200, 200, 429}, []int{status(gold...), status(gold...), status(gold...)})
}

// TestQueueOfARoute checks that a queueing route delays requests over the limit, in their order. It denies a request
// at once if no wait helps.
func TestQueueOfARoute(t *testing.T) {
	s := weirtest.StartRealTime(t)
	c := newClient(t, s, client.Options{})
	web, served := serve(t, c, httplimit.Options{Routes: []httplimit.Route{
		{Pattern: "/paced", Rule: client.TokenBucket(client.PerSecond(20), 1), Key: httplimit.ByRoute(),
			Queue: 2 * time.Second},
		{Pattern: "/daily", Rule: client.FixedFirst(24*time.Hour, 1), Key: httplimit.ByRoute(), Queue: 2 * time.Second},
	}})
	begun := time.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			res, _ := send(t, http.MethodGet, web.URL+"/paced")
			if res.StatusCode != http.StatusOK {
				t.Error(res.Status)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 4, served.Load())
	require.GreaterOrEqual(t, time.Since(begun), 140*time.Millisecond, "three of the requests must be delayed")

	send(t, http.MethodGet, web.URL+"/daily")
	denials := c.Stats().Denied
	res, _ := send(t, http.MethodGet, web.URL+"/daily")
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Equal(t, denials+1, c.Stats().Denied, "the denied request must not have queued")
}

// TestQueueOfARouteIsBounded checks that at most half of the connection pool waits. Further requests are denied at
// once, and other routes use the other connections. The requests wait until the server stops.
func TestQueueOfARouteIsBounded(t *testing.T) {
	s := weirtest.StartRealTime(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, ReadTimeout: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	c := newClientOn(t, rdb, client.Options{DenialKeys: -1})
	web, _ := serve(t, c, httplimit.Options{Routes: []httplimit.Route{
		{Pattern: "/slow", Rule: client.TokenBucket(client.Rate{Units: 1, Per: weirtest.Wait}, 1),
			Key: httplimit.ByRoute(), Queue: 2 * weirtest.Wait},
		{Pattern: "/other", Rule: client.Fixed(time.Hour, 1000), Key: httplimit.ByRoute()},
	}})
	send(t, http.MethodGet, web.URL+"/slow")
	most := rdb.Options().PoolSize / 2
	var answered atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	defer s.Stop()
	for range most + 5 {
		all.Go(func() {
			send(t, http.MethodGet, web.URL+"/slow")
			answered.Add(1)
		})
	}
	require.Eventually(t, func() bool { return answered.Load() >= 5 }, weirtest.Wait, time.Millisecond)
	res, _ := send(t, http.MethodGet, web.URL+"/other")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.EqualValues(t, 5, answered.Load(), "the other requests must still wait, without delaying other routes")
}
