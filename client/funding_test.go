package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestAlternativesPay checks holds and checks that an allowance pays, else credits, at weir and without it.
func TestAlternativesPay(t *testing.T) {
	for name, down := range map[string]bool{"server": false, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			s := weirtest.Start(t)
			c := newClient(t, s, client.Options{WhenDown: client.Local, LocalFraction: 1})
			limits := map[string]*client.Rule{}
			for name, n := range map[string]int64{"allowance": 100, "credits": 50} {
				limit := client.FixedFirst(time.Hour, n)
				_, err := c.SetPolicy(t.Context(), name, client.PolicyTerms{Limits: []*client.Rule{limit}})
				require.NoError(t, err)
				limits[name] = client.Policy(name, limit)
			}
			if down {
				s.Stop()
				for _, rule := range limits { // the local limiter learns the policies
					require.True(t, decide(t, c, client.Request{Rule: rule, Key: "other"}).Allowed)
				}
			}
			q := client.Request{Rule: limits["allowance"], Key: "acme", Cost: 70,
				Else: [][]client.Pair{{{Policy: "credits", Key: "acme"}}}}
			_, d, err := c.Reserve(t.Context(), q, time.Minute)
			require.NoError(t, err)
			require.Equal(t, []client.Share{{"allowance", 70}, {"credits", 0}}, d.Paid())
			q.Cost = 40
			require.Equal(t, []client.Share{{"allowance", 0}, {"credits", 40}}, paid(t, c, q))
			require.Empty(t, paid(t, c, q), "denied by both")
			q.Split = true
			h, d, err := c.Reserve(t.Context(), q, time.Minute)
			require.NoError(t, err)
			require.NotNil(t, h)
			require.EqualValues(t, 40, d.Granted)
			require.Equal(t, []client.Share{{"allowance", 30}, {"credits", 10}}, d.Paid())
			_, held, err := h.Extend(t.Context(), client.Extension{Number: 1, Units: 5})
			require.NoError(t, err)
			require.EqualValues(t, 40, held, "the extension is denied")
			left, err := h.Commit(t.Context(), 31)
			require.NoError(t, err)
			require.EqualValues(t, 9, left, "the credits get back first")
			require.Empty(t, paid(t, c, client.Request{Rule: limits["credits"], Key: "acme"}))
		})
	}
}

func paid(t *testing.T, c *client.Client, q client.Request) []client.Share {
	d := decide(t, c, q)
	return d.Paid()
}

func TestBadAlternatives(t *testing.T) {
	c := newClient(t, weirtest.Start(t), client.Options{})
	pair := []client.Pair{{Policy: "p", Key: "k"}}
	for _, bad := range []client.Request{
		{Rule: client.Policy("p"), Split: true},
		{Rule: probe, Else: [][]client.Pair{pair}},
		{Rule: client.Policy("p"), Else: [][]client.Pair{{}}},
		{Rule: client.Policy("p"), Else: [][]client.Pair{pair, pair, pair, pair}},
		{Rule: client.Policy("p"), Else: [][]client.Pair{make([]client.Pair, 16)}},
	} {
		bad.Key = "j"
		_, err := c.Decide(t.Context(), bad)
		require.ErrorIs(t, err, client.ErrBadRequest, "%+v", bad)
	}
}
