package httplimit_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestPolicyByRequest checks a gateway that changes its routes while it runs. A request has the policy that its route
// has at that moment, or none.
func TestPolicyByRequest(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	var routes atomic.Value // path: policy
	routes.Store(map[string]string{"/orders": "route-1"})
	web, served := serve(t, c, httplimit.Options{Routes: []httplimit.Route{{
		Pattern: "/", Key: new(httplimit.Proxies).ByIP(),
		Policy: func(r *http.Request) string { return routes.Load().(map[string]string)[r.URL.Path] },
	}}})
	setOne := func(name string, max int64) {
		_, err := c.SetPolicy(
			t.Context(), name, client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, max)}})
		require.NoError(t, err)
	}
	setOne("route-1", 1)
	setOne("route-2", 2)
	status := func(path string) int {
		res, _ := send(t, http.MethodGet, web.URL+path)
		return res.StatusCode
	}
	require.Equal(t, []int{200, 429}, []int{status("/orders"), status("/orders")})
	require.Equal(t, 200, status("/other"), "a route without a policy must pass requests")
	routes.Store(map[string]string{"/orders": "route-2", "/other": "route-3"})
	res, _ := send(t, http.MethodGet, web.URL+"/orders")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, `"route-2";r=1;t=3600`, res.Header.Get("RateLimit"))
	require.Equal(t, 503, status("/other"), "a missing policy must not switch limits off")
	setOne("route-3", 1)
	require.Equal(t, []int{200, 429}, []int{status("/other"), status("/other")})
	require.EqualValues(t, 4, served.Load())
}

// TestShapeOfAnotherGateway checks that the body of a denial can equal another gateway's byte for byte.
func TestShapeOfAnotherGateway(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local, DenialKeys: -1})
	_, err := c.SetPolicy(
		t.Context(), "orders", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(3*time.Second, 2)}})
	require.NoError(t, err)
	web, _ := serve(t, c, httplimit.Options{
		Routes: []httplimit.Route{{
			Pattern: "/", Key: httplimit.ByRoute(), Policy: func(*http.Request) string { return "orders" },
		}},
		FallbackStatus: http.StatusTooManyRequests,
		Problem: httplimit.Problem{
			Type: "https://api.gateway/errors/rate-limit-exceeded", Title: "Too Many Requests",
			ContentType: "application/json",
			Members: func(r *http.Request, _ httplimit.Denial) map[string]any {
				return map[string]any{"correlationId": r.Header.Get("X-Correlation-Id"), "retryAfter": nil,
					"violated-policies": nil}
			},
		},
	})
	denied := func(left int) {
		t.Helper()
		for range left {
			res, _ := send(t, http.MethodGet, web.URL)
			require.Equal(t, http.StatusOK, res.StatusCode)
		}
		res, body := send(t, http.MethodGet, web.URL, "X-Correlation-Id", "abc-123-def")
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, "application/json", res.Header.Get("Content-Type"))
		require.Equal(t, "3", res.Header.Get("Retry-After"))
		var members map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &members))
		require.Equal(t, map[string]any{
			"type": "https://api.gateway/errors/rate-limit-exceeded", "title": "Too Many Requests", "status": 429.0,
			"detail": "Rate limit exceeded. Try again in 3 seconds.", "correlationId": "abc-123-def",
		}, members)
	}
	denied(2)
	require.Eventually(t, func() bool { return c.Stats().Policies == 1 }, weirtest.Wait, time.Millisecond)
	s.Stop()
	denied(1) // the fallback's limit is half
}

func TestGatewayOptionsThatAreWrong(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	key, policy := httplimit.ByRoute(), func(*http.Request) string { return "p" }
	for want, o := range map[string]httplimit.Options{
		"a route with Policy must have no Rule": {Routes: []httplimit.Route{{Pattern: "/", Key: key, Policy: policy,
			Rule: client.Policy("q")}}},
		"Key, and Rule or Policy, are required": {Routes: []httplimit.Route{{Pattern: "/", Key: key}}},
		"no Name: the policy provides both": {Routes: []httplimit.Route{{Pattern: "/", Key: key,
			Policy: policy, Name: "n"}}},
		"FallbackStatus must be 503 or 429": {Routes: []httplimit.Route{{Pattern: "/", Key: key, Policy: policy}},
			FallbackStatus: 418},
	} {
		_, err := httplimit.New(c, o)
		require.ErrorIs(t, err, httplimit.ErrBadOptions)
		require.True(t, strings.Contains(err.Error(), want), err)
	}
}
