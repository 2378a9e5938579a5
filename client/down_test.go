package client_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestOutageUnderLoad checks two outages of weir under load of two instances. Every request is answered, and both
// instances together admit half of the limit. Each switch is logged once, and the return needs no action.
func TestOutageUnderLoad(t *testing.T) {
	const workers, limit = 8, 10_000
	s := weirtest.StartRealTime(t)
	rule := client.Quota(client.Forever, "", limit)
	books, clients := [2]logtest.Buffer{}, [2]*client.Client{}
	for i := range clients {
		clients[i] = newClient(t, s, client.Options{
			WhenDown: client.Local, Instances: 2, Timeout: weirtest.Wait, Logger: books[i].Logger(), DenialKeys: -1,
		})
	}
	var locally atomic.Int64
	var slowest atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for _, c := range clients {
		for range workers {
			load.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					start := time.Now()
					d, err := c.Take(t.Context(), rule, "k")
					if err != nil {
						t.Error(err)
						return
					}
					if d.Source == client.FromFallback && d.Allowed {
						locally.Add(1)
					}
					slowest.Store(max(slowest.Load(), int64(time.Since(start))))
				}
			})
		}
	}
	eachOf := func(f func(client.Stats) bool) func() bool {
		return func() bool { return f(clients[0].Stats()) && f(clients[1].Stats()) }
	}
	for outage := int64(1); outage <= 2; outage++ {
		s.Stop()
		require.Eventually(t, eachOf(func(st client.Stats) bool { return st.Down && st.FromFallback > outage*limit }),
			weirtest.Wait, time.Millisecond)
		s.Start()
		require.Eventually(t, eachOf(func(st client.Stats) bool { return !st.Down }), weirtest.Wait, time.Millisecond)
	}
	close(stop)
	load.Wait()
	require.EqualValues(t, limit/2, locally.Load(),
		"the fallback must admit half of the limit, and no more in another outage")
	for i, c := range clients {
		// A request that was under way may fail after the server is back, and then counts as a new outage. There may
		// be more switches than outages, but each is logged once.
		require.GreaterOrEqual(t, c.Stats().Switches, int64(2))
		require.EqualValues(t, c.Stats().Switches, books[i].Count("weir is not reached"))
		require.Equal(t, client.FromServer, decide(t, c, client.Request{Rule: rule, Key: "k"}).Source)
	}
	t.Logf("the slowest of all requests took %v", time.Duration(slowest.Load()))
}

func TestTheFallbackIsTheCallersChoice(t *testing.T) {
	for name, c := range map[string]struct {
		choice  client.Fallback
		allowed int // out of ten
	}{"open": {client.Open, 10}, "closed": {client.Closed, 0}, "local": {client.Local, 5}} {
		t.Run(name, func(t *testing.T) {
			s := weirtest.Start(t)
			limits := newClient(t, s, client.Options{WhenDown: c.choice})
			s.Stop()
			allowed := 0
			for range 10 {
				d := decide(t, limits, client.Request{Rule: client.FixedFirst(time.Hour, 10), Key: "k"})
				require.Equal(t, client.FromFallback, d.Source)
				if d.Allowed {
					allowed++
				} else {
					require.Positive(t, d.RetryAfter)
				}
			}
			require.Equal(t, c.allowed, allowed)
			require.True(t, limits.Down())
			_, err := limits.Refund(t.Context(), "k", 1)
			require.ErrorIs(t, err, client.ErrUnavailable)
		})
	}
}

// TestSilentServer checks a server that accepts connections and never answers. Only the deadline ends such a request.
// It is refused until the silence has lasted long enough to prove that weir is not there.
func TestSilentServer(t *testing.T) {
	var book logtest.Buffer
	c := newClientOn(t, impostor(t, func(net.Conn) {}),
		client.Options{WhenDown: client.Open, Timeout: 20 * time.Millisecond, Logger: book.Logger()})
	d := decide(t, c, client.Request{Rule: probe, Key: "k"})
	require.Equal(t, client.FromBusy, d.Source)
	require.False(t, d.Allowed)
	require.Eventually(t, func() bool { return decide(t, c, client.Request{Rule: probe, Key: "k"}).Allowed },
		weirtest.Wait, time.Millisecond)
	require.True(t, c.Down())
	require.NoError(t, c.Close())
	require.Equal(t, 1, book.Count("weir is busy"))
	require.Equal(t, 1, book.Count("weir is not reached"))
}

func TestPoliciesInAnOutage(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local})
	s.Stop()
	unknown := client.Policy("unknown")
	known := client.Policy("known", client.FixedFirst(time.Hour, 10), client.TokenBucket(client.PerHour(4), 4))
	take := func(q client.Request) bool {
		q.Key = "k"
		return decide(t, c, q).Allowed
	}
	require.False(t, take(client.Request{Rule: unknown}))
	require.True(t, take(client.Request{Rule: known}))
	require.False(t, take(client.Request{Rule: known, Cost: 2}), "half of the bucket is two units")
	require.False(t, take(client.Request{Rule: known, Also: []client.Pair{{Policy: "unknown", Key: "k"}}}))
	require.True(t, take(client.Request{Rule: known}))
	require.False(t, take(client.Request{Rule: known}))
}

func TestSlotsInAnOutage(t *testing.T) {
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{WhenDown: client.Local})
	s.Stop()
	rule := client.Slots(2, time.Hour)
	slot, _, err := c.Acquire(t.Context(), rule, "job")
	require.NoError(t, err)
	require.NotNil(t, slot)
	none, _, err := c.Acquire(t.Context(), rule, "job")
	require.NoError(t, err)
	require.Nil(t, none, "half of two slots is one")
	held, err := slot.Release(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	slot, _, err = c.Acquire(t.Context(), rule, "job")
	require.NoError(t, err)
	require.NotNil(t, slot)
}

// TestLostConnections checks that a connection lost after a request leaves an unknown outcome. Redis clients repeat
// such a request by themselves. This client only does so with an ID.
func TestLostConnections(t *testing.T) {
	for name, c := range map[string]struct {
		ids  bool
		sent func(n int64) bool
	}{
		"without IDs": {false, func(n int64) bool { return n == 1 }},
		"with IDs":    {true, func(n int64) bool { return n > 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			rdb := impostor(t, func(nc net.Conn) {
				if n, _ := nc.Read(make([]byte, 1024)); n > 0 {
					sent.Add(1)
				}
				_ = nc.Close()
			})
			limits := newClientOn(t, rdb, client.Options{WhenDown: client.Open, IDs: c.ids})
			require.Equal(t, client.FromBusy, decide(t, limits, client.Request{Rule: probe, Key: "k"}).Source)
			require.True(t, c.sent(sent.Load()), "sent %d times", sent.Load())
		})
	}
}
