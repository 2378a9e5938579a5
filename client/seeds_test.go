package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestFailedLogins checks failed logins of a marketplace as its login page uses them. It shows a captcha from the
// sixth failure on, and reports the lock at the eleventh.
func TestFailedLogins(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{DenialKeys: -1}) // remembered denials expire in real time
	step := func(n int64, penalty time.Duration) client.Step { return client.Step{Threshold: n, Penalty: penalty} }
	const lock = 15 * time.Minute
	rule := client.Strikes(lock, step(4, 2*time.Second), step(5, 2*time.Second), step(6, 5*time.Second),
		step(7, 5*time.Second),
		step(8, 5*time.Second), step(9, 5*time.Second), step(10, 5*time.Second), step(11, lock))
	for failure := 1; failure <= 11; failure++ {
		require.True(t, decide(t, c, client.Request{Rule: rule, Key: "login:42", Peek: true}).Allowed,
			"the user may still try")
		d := decide(t, c, client.Request{Rule: rule, Key: "login:42"})
		captcha, locked := d.Remaining <= 5, d.RetryAfter >= lock
		require.Equal(t, failure >= 6, captcha, "failure %d", failure)
		require.Equal(t, failure == 11, locked, "failure %d", failure)
		s.Advance(5 * time.Second)
	}
	require.False(t, decide(t, c, client.Request{Rule: rule, Key: "login:42", Peek: true}).Allowed,
		"the key must be locked")
}

// TestCircuitBreaker checks a strike limit used as a circuit breaker. Three failures in ten seconds open it for
// thirty seconds. It is then tried again, and a success closes it.
func TestCircuitBreaker(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{DenialKeys: -1}) // remembered denials expire in real time
	breaker := client.Strikes(10*time.Second, client.Step{Threshold: 3, Penalty: 30 * time.Second})
	calls := 0
	call := func(backend error) (called bool) {
		if !decide(t, c, client.Request{Rule: breaker, Key: "backend", Peek: true}).Allowed {
			return false // the caller answers 503 without a call
		}
		if calls++; backend == nil {
			_, err := c.Reset(t.Context(), "backend")
			require.NoError(t, err)
		} else {
			decide(t, c, client.Request{Rule: breaker, Key: "backend"})
		}
		return true
	}
	down := errors.New("down")
	for range 10 {
		call(down)
	}
	require.Equal(t, 3, calls)
	s.Advance(29 * time.Second)
	require.False(t, call(nil), "the circuit breaker must be open")
	s.Advance(time.Second)
	require.True(t, call(nil), "the call must be tried again")
	require.True(t, call(down))
	require.True(t, call(nil), "the circuit breaker must be closed")
}
