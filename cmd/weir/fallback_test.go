package main

import (
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
)

// TestFallbackThroughKills runs two instances of an application under load while weir is killed (SIGKILL) and restarted
// twice. It prints the latency of requests. It compares the units that the instances admitted by themselves with their
// allowed fraction of the limit.
func TestFallbackThroughKills(t *testing.T) {
	const (
		instances, workers = 2, 8
		limit              = 2000
		pace               = time.Millisecond // between requests of a worker, so that weir gets processor time
		deadline           = 200 * time.Millisecond
	)
	dir := t.TempDir()
	p := start(t, "--data-dir", dir)
	rule := client.FixedFirst(time.Hour, limit)
	var limiters [instances]*client.Client
	for i := range limiters {
		rdb := goredis.NewClient(&goredis.Options{Addr: p.addr, ContextTimeoutEnabled: true, DialerRetries: 1})
		defer rdb.Close()
		var err error
		limiters[i], err = client.New(rdb, client.Options{
			WhenDown: client.Local, Instances: instances, Timeout: deadline, DenialKeys: -1,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		require.NoError(t, err)
		defer limiters[i].Close()
	}
	all := func(f func(client.Stats) bool) {
		t.Helper()
		require.Eventually(t, func() bool { return f(limiters[0].Stats()) && f(limiters[1].Stats()) },
			patience, time.Millisecond)
	}

	var requests, late, locally atomic.Int64
	var slowest [instances * workers]time.Duration
	stop := make(chan struct{})
	var load sync.WaitGroup
	for w := range slowest {
		load.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				begun := time.Now()
				d, err := limiters[w%instances].Take(t.Context(), rule, "k")
				took := time.Since(begun)
				if err != nil {
					t.Error(err)
					return
				}
				if slowest[w] = max(slowest[w], took); took > deadline {
					late.Add(1)
				}
				if requests.Add(1); d.Allowed && d.Source == client.FromFallback {
					locally.Add(1)
				}
			}
		})
	}
	var back [2]time.Duration
	for i := range back {
		outage := int64(i + 1)
		all(func(s client.Stats) bool { return !s.Down && s.Admitted+s.Denied-s.FromFallback > 100*outage })
		p.signal(syscall.SIGKILL)
		p.wait()
		all(func(s client.Stats) bool { return s.Down && s.FromFallback > outage*limit })
		p = start(t, "--data-dir", dir, "--listen", p.addr)
		ready := time.Now()
		all(func(s client.Stats) bool { return !s.Down })
		back[i] = time.Since(ready)
	}
	close(stop)
	load.Wait()
	require.EqualValues(t, limit/2, locally.Load(),
		"both instances together must admit half of the limit in both outages")
	longest := slowest[0]
	for _, s := range slowest {
		longest = max(longest, s)
	}
	t.Logf("%d requests through two kills: the longest took %v, %d took longer than the deadline of %v",
		requests.Load(), longest, late.Load(), deadline)
	t.Logf("%d admitted without weir, of a limit of %d; it decided again %v and %v after it was ready", locally.Load(),
		limit, back[0], back[1])
}
