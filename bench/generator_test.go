package bench

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func jobAt(addr string, l Load, requests int) Job {
	return Job{Addr: addr, Commands: weirCommands(), Load: l, Requests: requests}
}

func TestEveryRequestIsAnsweredAndCounted(t *testing.T) {
	for name, c := range map[string]struct {
		clients, pipeline, requests int
		perSecond                   float64
	}{
		"one":                             {1, 1, 1, 0},
		"pipelines":                       {7, 13, 7 * 13 * 20, 0},
		"more connections than pipelines": {50, 2, 10, 0},
		"open loop":                       {7, 13, 7 * 13 * 20, 20_000},
	} {
		var asked, admitted atomic.Int64
		addr := startFake(t, &fakeServer{reply: func([]string) string {
			if asked.Add(1)%3 == 0 {
				return no
			}
			admitted.Add(1)
			return yes
		}})
		l := Load{Workload: TokenBucket, Clients: c.clients, Pipeline: c.pipeline, Keys: 100, PerSecond: c.perSecond}
		got, err := new(Builtin).Run(context.Background(), jobAt(addr, l, c.requests))
		require.NoError(t, err, name)
		require.EqualValues(t, c.requests, asked.Load(), name)
		require.Equal(t, c.requests, got.Decisions, name)
		require.Equal(t, c.requests, got.Read, name)
		require.EqualValues(t, admitted.Load(), got.Admitted, name)
		require.EqualValues(t, c.requests, got.histogram.total, name)
		require.Positive(t, got.PerSecond, name)
		require.Positive(t, got.Latency.P50Ms, name)
		require.Equal(t, c.perSecond > 0, got.LagP999Ms > 0.001, name)
	}
}

func TestAnErrorAmongTheAnswersIsAnError(t *testing.T) {
	var asked atomic.Int64
	addr := startFake(t, &fakeServer{reply: func([]string) string {
		if asked.Add(1) == 500 {
			return "-TRYAGAIN no leader\r\n"
		}
		return yes
	}})
	_, err := new(Builtin).Run(context.Background(), jobAt(addr, bucket(5, 10), 1000))
	require.ErrorContains(t, err, "1 of 1000 requests were answered by an error, the first: TRYAGAIN")
	require.True(t, disturbs(err))
}

func TestAnswersAreAsManyAsRequests(t *testing.T) {
	require.NoError(t, (&tally{answers: 100}).check(100))
	require.ErrorIs(t, (&tally{answers: 99}).check(100), ErrStuck)
	addr := startFake(t, &fakeServer{reply: func([]string) string { return yes + no }})
	_, err := new(Builtin).Run(
		context.Background(), jobAt(addr, Load{Workload: TokenBucket, Clients: 1, Pipeline: 10, Keys: 10}, 10))
	require.ErrorContains(t, err, "more answers than requests")
}

func TestAMissingAnswerIsNotWaitedForInVain(t *testing.T) {
	var asked atomic.Int64
	addr := startFake(t, &fakeServer{reply: func([]string) string {
		if asked.Add(1) == 50 {
			return ""
		}
		return yes
	}})
	// The patience includes the dials.
	_, err := (&Builtin{Patience: 2 * time.Second}).Run(context.Background(), jobAt(addr, bucket(2, 10), 100))
	require.ErrorIs(t, err, ErrStuck)
}

func TestAClosedLoopEndsInItsTime(t *testing.T) {
	addr := startFake(t, &fakeServer{reply: func([]string) string { return yes }})
	job := jobAt(addr, bucket(2, 10), 20)
	job.Lasting = 50 * time.Millisecond
	for attempt := 1; ; attempt++ {
		got, err := new(Builtin).Run(context.Background(), job)
		require.NoError(t, err)
		require.GreaterOrEqual(t, got.Took, job.Lasting)
		if got.Decisions > 20 {
			return
		}
		require.Less(t, attempt, 20, "none more than asked, and the machine does not stand still as often")
	}
}

// stallingServer answers at once, except for one stall after this many requests.
func stallingServer(t *testing.T, behind int64, stall time.Duration) string {
	var asked atomic.Int64
	var standing sync.RWMutex // waits during the stall
	return startFake(t, &fakeServer{reply: func([]string) string {
		if asked.Add(1) == behind {
			standing.Lock()
			time.Sleep(stall)
			standing.Unlock()
		}
		standing.RLock()
		defer standing.RUnlock()
		return yes
	}})
}

// TestAnOpenLoopCountsAStall compares the loops during a stall. A closed loop records one slow answer per connection.
// An open loop records all requests that were due: half a second of two is a quarter. The stall is longer than the
// pauses of a busy machine, and the test repeats runs that had another pause.
func TestAnOpenLoopCountsAStall(t *testing.T) {
	const stall, perSecond, attempts = 500 * time.Millisecond, 2000, 10
	l := Load{Workload: TokenBucket, Clients: 4, Pipeline: 1, Keys: 100}
	slow := func(o Outcome) (n int64) {
		for i, count := range o.histogram.counts {
			if bucketEnd(i) >= stall/2 {
				n += count
			}
		}
		return n
	}
	open := l
	open.PerSecond = perSecond
	got, err := new(Builtin).Run(context.Background(), jobAt(stallingServer(t, perSecond, stall), open, 2*perSecond))
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.Latency.P999Ms, 0.9*float64(stall.Milliseconds()), "it shows in p99.9")
	due := int64(perSecond * stall.Seconds() / 2 * 0.9)
	require.GreaterOrEqual(t, slow(got), due, "so do all that were due in its first half")

	least := int64(math.MaxInt64)
	for range attempts {
		got, err := new(Builtin).Run(context.Background(), jobAt(stallingServer(t, perSecond, stall), l, 3*perSecond))
		require.NoError(t, err)
		require.GreaterOrEqual(t, got.Latency.MaxMs, 0.9*float64(stall.Milliseconds()))
		if least = min(least, slow(got)); least <= int64(l.Clients) {
			return
		}
	}
	t.Errorf("a closed loop of %d clients had %d slow answers at least in %d runs: it does not hide the stall",
		l.Clients, least, attempts)
}

func TestKeysAreChosenAsAsked(t *testing.T) {
	drawn := func(d Distribution, keys, n int) map[int]int {
		l := Load{Keys: keys, Distribution: d}
		p := newPicker(l)
		count := map[int]int{}
		for link := range 4 {
			next := p.of(link)
			for range n / 4 {
				count[next()]++
			}
		}
		return count
	}
	require.Len(t, drawn(OneHot, 100, 1000), 1)
	uniform := drawn(Uniform, 100, 100_000)
	require.Len(t, uniform, 100)
	for key, n := range uniform {
		require.InDelta(t, 1000, n, 200, key)
	}
	zipf := drawn(Zipf, 1000, 100_000)
	for _, pair := range [][2]int{{0, 1}, {1, 10}, {10, 100}} {
		require.Greater(t, zipf[pair[0]], zipf[pair[1]])
	}
	for key := range zipf {
		require.Less(t, key, 1000)
	}
}
