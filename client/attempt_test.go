package client_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

const lock = 15 * time.Minute

// loginSteps delay from the fourth failure on, and lock at the eleventh.
var loginSteps = []client.Step{{Threshold: 4, Delay: 2 * time.Second}, {Threshold: 6, Delay: 5 * time.Second},
	{Threshold: 11, Penalty: lock}}

// begin begins an attempt. The attempt is nil if it is denied.
func begin(t *testing.T, c *client.Client, q client.Request) (*client.Attempt, client.Decision) {
	t.Helper()
	a, d, err := c.Begin(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, d.Allowed, a != nil)
	return a, d
}

// TestAttempts checks attempts by a rule and by a policy. They are delayed and then locked out. A success ends the
// lock that its own attempt began, and a repeated attempt counts once.
func TestAttempts(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	rule := client.Attempts(lock, loginSteps...)
	require.Equal(t, "RL.STRIKE 15m 4 DELAY 2s 6 DELAY 5s 11 15m ATTEMPTS", rule.Name())
	_, err := c.SetPolicy(t.Context(), "lockout", client.PolicyTerms{Limits: []*client.Rule{rule}})
	require.NoError(t, err)
	_, err = c.SetPolicy(t.Context(), "by-address",
		client.PolicyTerms{Limits: []*client.Rule{client.Attempts(lock, client.Step{Threshold: 50, Penalty: lock})}})
	require.NoError(t, err)
	for _, q := range []client.Request{
		{Rule: rule, Key: "login:42"},
		{Rule: client.Policy("lockout"), Key: "42", Also: []client.Pair{{Policy: "by-address", Key: "192.0.2.1"}}},
	} {
		var last *client.Attempt
		for attempt := 1; attempt <= 11; attempt++ {
			a, d := begin(t, c, q)
			seconds := []time.Duration{0, 0, 0, 2, 2, 5, 5, 5, 5, 5, 5}[attempt-1]
			require.Equal(t, seconds*time.Second, d.RetryAfter, "attempt %d", attempt)
			require.EqualValues(t, 11-attempt, d.Remaining)
			last = a
		}
		_, d := begin(t, c, q)
		require.Equal(t, lock, d.RetryAfter)
		require.NoError(t, last.Succeed(t.Context()))
		require.NoError(t, last.Succeed(t.Context()), "a repeated success must not be an error")
		_, d = begin(t, c, q)
		require.EqualValues(t, 10, d.Remaining, "a success must also clear the client's memory of the lock")
		q.ID = "the same"
		begin(t, c, q)
		_, d = begin(t, c, q)
		require.EqualValues(t, 9, d.Remaining)
	}
	_, _, err = c.Begin(t.Context(), client.Request{Rule: client.Strikes(lock, loginSteps...), Key: "k"})
	require.ErrorIs(t, err, client.ErrBadRequest)
	_, err = c.Forgive(t.Context(), client.Pair{Policy: "none", Key: "42"})
	require.ErrorIs(t, err, client.ErrRefused)
	n, err := c.Forgive(t.Context(), client.Pair{Policy: "lockout", Key: "42"},
		client.Pair{Policy: "by-address", Key: "192.0.2.1"})
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
}

// TestExtendedAttempts checks that attempts during a lock reach the server, which extends the lock.
func TestExtendedAttempts(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{})
	q := client.Request{Rule: client.Attempts(lock, client.Step{Threshold: 1, Penalty: lock}).Extended(),
		Key: "login:42"}
	begin(t, c, q)
	for range 3 {
		s.Advance(time.Minute)
		_, d := begin(t, c, q)
		require.Equal(t, lock, d.RetryAfter)
		require.Equal(t, client.FromServer, d.Source)
	}
}

// TestAttemptsWithoutWeir checks that the fallback counts and forgives attempts in the process.
func TestAttemptsWithoutWeir(t *testing.T) {
	rule := client.Attempts(lock, client.Step{Threshold: 2, Penalty: lock})
	for _, q := range []client.Request{{Rule: rule, Key: "login:42"},
		{Rule: client.Policy("lockout", rule), Key: "42"}} {
		c := newClientOn(t, nowhere(t, syscall.ECONNREFUSED),
			client.Options{WhenDown: client.Local, LocalFraction: 1})
		begin(t, c, q)
		a, _ := begin(t, c, q)
		b, _ := begin(t, c, q)
		require.Nil(t, b)
		require.NoError(t, a.Succeed(t.Context()))
		_, d := begin(t, c, q)
		require.EqualValues(t, 1, d.Remaining)
	}
	c := newClientOn(t, nowhere(t, syscall.ECONNREFUSED), client.Options{WhenDown: client.Open})
	a, d := begin(t, c, client.Request{Rule: rule, Key: "login:42"})
	require.Equal(t, client.FromFallback, d.Source)
	require.NoError(t, a.Succeed(t.Context()))
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
