package httplimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestAttemptsAreHeld checks a route with attempts. Delayed attempts are held and locked ones denied. The page behind
// the middleware forgives with the key of the route.
func TestAttemptsAreHeld(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	const delay = 50 * time.Millisecond
	_, err := c.SetPolicy(t.Context(), "lockout", client.PolicyTerms{Limits: []*client.Rule{
		client.Attempts(time.Hour, client.Step{Threshold: 2, Delay: delay},
			client.Step{Threshold: 3, Penalty: time.Hour}),
	}})
	require.NoError(t, err)
	web, served := serve(t, c, httplimit.Options{
		Routes: []httplimit.Route{{Pattern: "POST /login", Rule: client.Policy("lockout"),
			Key: httplimit.ByHeader("X-User")}},
	})
	login := func() (status int, took time.Duration) {
		start := time.Now()
		res, _ := send(t, http.MethodPost, web.URL+"/login", "X-User", "42")
		return res.StatusCode, time.Since(start)
	}
	for attempt := 1; attempt <= 3; attempt++ {
		status, took := login()
		require.Equal(t, http.StatusOK, status)
		if attempt > 1 {
			require.GreaterOrEqual(t, took, delay)
		}
	}
	status, _ := login()
	require.Equal(t, http.StatusTooManyRequests, status)
	require.EqualValues(t, 3, served.Load())
	n, err := c.Forgive(t.Context(), client.Pair{Policy: "lockout", Key: "header:42"})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	status, _ = login()
	require.Equal(t, http.StatusOK, status)
}
