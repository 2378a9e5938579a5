package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestAProbeHasTheTimeoutsOfItsClient checks that the client of a probe has no timeouts if its caller's has none.
func TestAProbeHasTheTimeoutsOfItsClient(t *testing.T) {
	for _, timeout := range []time.Duration{-1, 0, time.Minute} {
		one := redis.NewClient(&redis.Options{ReadTimeout: timeout, WriteTimeout: timeout})
		o := alone(one).(*redis.Client).Options()
		require.Equal(t, one.Options().ReadTimeout, o.ReadTimeout)
		require.Equal(t, one.Options().WriteTimeout, o.WriteTimeout)
		many := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ReadTimeout: timeout,
			WriteTimeout: timeout})
		each := alone(many).(*redis.ClusterClient).Options()
		require.Equal(t, many.Options().ReadTimeout, each.ReadTimeout)
		require.Equal(t, many.Options().WriteTimeout, each.WriteTimeout)
	}
}

func TestProbingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int64
		var up atomic.Bool
		var counts counters
		lost := errors.New("lost")
		l := newBreaker(func(context.Context) error {
			probes.Add(1)
			if up.Load() {
				return nil
			}
			return lost
		}, slog.New(slog.NewTextHandler(io.Discard, nil)), &counts)
		defer l.close()
		l.failed(lost, true)
		l.failed(lost, true)
		l.succeeded()
		l.failed(lost, true)
		l.failed(lost, true)
		require.False(t, l.down.Load(), "a success in between must prevent the outage")
		l.failed(lost, true)
		require.True(t, l.down.Load())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, probes.Load(), int64(50))
		require.Less(t, probes.Load(), int64(70))
		up.Store(true)
		time.Sleep(maxProbePause)
		synctest.Wait()
		require.False(t, l.down.Load())
		require.EqualValues(t, 1, counts.switches.Load())
	})
}

func TestDenialsAreBounded(t *testing.T) {
	m, now := newDenials(3), time.Now()
	at := func(d time.Duration) func() time.Time { return func() time.Time { return now.Add(d) } }
	rule := FixedFirst(time.Hour, 1)
	for i := range 100 {
		q := Request{Rule: rule, Key: string(rune('a' + i))}
		m.remember(&q, &Decision{RetryAfter: time.Hour}, now)
		require.LessOrEqual(t, len(m.keys), 3)
		d, known := m.recall(&q, at(time.Second))
		require.True(t, known)
		require.Equal(t, time.Hour-time.Second, d.RetryAfter)
		_, known = m.recall(&q, at(maxDenialAge))
		require.False(t, known, "an expired denial must not be used")
		m.remember(&q, &Decision{RetryAfter: time.Hour}, now)
	}
}

func TestScaledLimits(t *testing.T) {
	hour := int64(time.Hour)
	bucket := func(units, perNs, max int64) engine.Limit {
		return engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: units, PerNs: perNs}, Max: max}
	}
	window := func(ns, max int64) engine.Limit {
		return engine.Limit{Algorithm: engine.SlidingCounter, WindowNs: ns, Max: max}
	}
	for name, c := range map[string]struct {
		limit    engine.Limit
		fraction float64
		want     engine.Limit
	}{
		"bucket":            {bucket(10, 1e9, 100), 0.5, bucket(1, 2e8, 50)},
		"small bucket":      {bucket(10, 1e9, 1), 0.1, bucket(1, 1e9, 1)},
		"window":            {window(hour, 100), 0.25, window(hour, 25)},
		"rounded down":      {window(hour, 3), 0.5, window(hour, 1)},
		"less than one":     {window(hour, 1), 0.25, window(4*hour, 1)},
		"as long as can be": {window(engine.MaxWindowNs, 1), 0.5, window(engine.MaxWindowNs, 1)},
		"queue": {engine.Limit{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 1}, 0.5,
			engine.Limit{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 1, PerNs: 2e9}}},
		"forever": {engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10}, 0.5,
			engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 5}},
		"slots": {engine.Limit{Algorithm: engine.Concurrency, Max: 20}, 0.5,
			engine.Limit{Algorithm: engine.Concurrency, Max: 10}},
		"strikes": {
			Strikes(time.Hour, Step{4, time.Second, 0}, Step{6, time.Minute, 0}, Step{11, time.Hour, 0}).local[0], 0.25,
			Strikes(time.Hour, Step{1, time.Second, 0}, Step{2, time.Minute, 0}, Step{3, time.Hour, 0}).local[0]},
		"attempts": {
			Attempts(time.Hour, Step{4, 0, time.Second}, Step{11, time.Hour, 0}).Extended().local[0], 0.25,
			Attempts(time.Hour, Step{1, 0, time.Second}, Step{2, time.Hour, 0}).Extended().local[0]},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, scaled(c.limit, c.fraction)) })
	}
}
