package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/servers"
)

// pipeSwarm returns a swarm whose connections end in serve, in one bubble of fake time. serve receives the server's
// end and the size of a pipeline in bytes.
func pipeSwarm(t *testing.T, clients, requests int, serve func(conn net.Conn, bytes int)) *swarm {
	s := &swarm{pipeline: requests}
	var all sync.WaitGroup
	for range clients {
		here, there := net.Pipe()
		out := sender{Load{Workload: Lasting, Pipeline: requests, Keys: 1000}, weirCommands()}.pipeline()
		l := newLink(here, out, func() int { return 0 })
		s.links = append(s.links, l)
		all.Go(func() {
			defer there.Close()
			serve(there, len(l.out.encoded))
		})
	}
	t.Cleanup(func() {
		require.NoError(t, s.close())
		all.Wait()
	})
	return s
}

// answerAll answers pipelines as they arrive. It calls read after it reads each pipeline, and answer before it
// answers it.
func answerAll(requests int, read, answer func()) func(net.Conn, int) {
	return func(conn net.Conn, bytes int) {
		arrived := make(chan struct{}, maxAhead)
		var answering sync.WaitGroup
		answering.Go(func() {
			for range arrived {
				answer()
				_, _ = conn.Write([]byte(strings.Repeat(yes, requests)))
			}
		})
		for {
			if _, err := io.CopyN(io.Discard, conn, int64(bytes)); err != nil {
				break
			}
			read()
			arrived <- struct{}{}
		}
		close(arrived)
		answering.Wait()
	}
}

type recorded struct {
	mu    sync.Mutex
	all   []time.Duration // latency of each pipeline
	dues  []time.Time
	tally tally
}

func (r *recorded) record(_ int, due, came time.Time, answers tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dues, r.all = append(r.dues, due), append(r.all, came.Sub(due))
	r.tally.add(answers)
}

// steadyBeside runs a load of 400 requests per second for 3 s, in pipelines of 10. Its server stalls for half a
// second. The test checks the latency of each pipeline.
func steadyBeside(t *testing.T, serve func(stall func() time.Duration) func(net.Conn, int)) {
	const clients, requests, perSecond = 4, 10, 400
	started := time.Now()
	from, until := started.Add(time.Second), started.Add(1500*time.Millisecond)
	s := pipeSwarm(t, clients, requests, serve(func() time.Duration {
		if time.Now().Before(from) {
			return 0
		}
		return time.Until(until)
	}))
	stop := make(chan struct{})
	time.AfterFunc(3*time.Second-time.Millisecond, func() { close(stop) })
	var seen recorded
	plan := schedule{perSecond: perSecond, until: stop}
	require.NoError(t, s.open(context.Background(), plan, nil, seen.record))

	require.EqualValues(t, 3*perSecond, seen.tally.answers, "the rate is kept")
	for i, due := range seen.dues {
		want := time.Duration(0)
		if !due.Before(from) {
			want = max(0, until.Sub(due))
		}
		require.Equal(t, want, seen.all[i], "due %v after the start", due.Sub(started))
	}
	slices.SortFunc(seen.dues, time.Time.Compare)
	for i := range seen.dues[1:] {
		require.Equal(t, requests*time.Second/perSecond, seen.dues[i+1].Sub(seen.dues[i]), "connections take turns")
	}
}

// TestSteadyShowsAStallInEveryRequestItDelays checks that each delayed request counts. A closed loop would record one
// slow answer per connection.
func TestSteadyShowsAStallInEveryRequestItDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived, inTime atomic.Int64
		steadyBeside(t, func(stall func() time.Duration) func(net.Conn, int) {
			time.AfterFunc(1499*time.Millisecond, func() { inTime.Store(arrived.Load()) })
			return answerAll(10, func() { arrived.Add(1) }, func() { time.Sleep(stall()) })
		})
		require.EqualValues(
			t, 60, inTime.Load(), "the pipelines of 1.5 s are sent in 1.5 s, whether the last are answered or not")
	})
}

// TestSteadyCountsFromWhenARequestWasDue checks that latency starts at the due time, also if the server does not read
// and requests are sent late.
func TestSteadyCountsFromWhenARequestWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steadyBeside(t, func(stall func() time.Duration) func(net.Conn, int) {
			return answerAll(10, func() { time.Sleep(stall()) }, func() {})
		})
	})
}

func TestSteadyEndsWithItsConnections(t *testing.T) {
	for name, c := range map[string]struct {
		last string // the server's output before it closes the connection
		want error
	}{"cut": {"", io.EOF}, "no decision": {"+OK\r\n", ErrNotADecision}} {
		synctest.Test(t, func(t *testing.T) {
			s := pipeSwarm(t, 1, 10, func(conn net.Conn, bytes int) {
				for i := range 4 {
					_, _ = io.CopyN(io.Discard, conn, int64(bytes))
					_, _ = io.WriteString(conn, [...]string{strings.Repeat(no, 10), c.last}[i/3])
				}
				if c.last != "" {
					_, _ = io.Copy(io.Discard, conn) // a client that continues to send is not stopped
				}
			})
			var seen recorded
			require.ErrorIs(t, s.open(context.Background(), schedule{perSecond: 100}, nil, seen.record), c.want, name)
			require.EqualValues(t, 30, seen.tally.answers, name)
		})
	}
}

func TestSteadyEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pipeSwarm(t, 3, 10, answerAll(10, func() {}, func() { time.Sleep(time.Hour) }))
		ctx, cancel := context.WithCancelCause(context.Background())
		errEnough := errors.New("enough")
		started := time.Now()
		time.AfterFunc(time.Second, func() { cancel(errEnough) })
		require.ErrorIs(t, s.open(ctx, schedule{perSecond: 100}, nil, new(recorded).record), errEnough)
		require.LessOrEqual(t, time.Since(started), time.Second+longestPause, "nothing is waited for")
	})
}

// TestSteadyDoesNotWaitForTheSilent checks that one connection without answers ends the load, also if all others get
// answers.
func TestSteadyDoesNotWaitForTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Int64
		s := pipeSwarm(t, 2, 10, func(conn net.Conn, bytes int) {
			if served.Add(1) == 1 {
				_, _ = io.Copy(io.Discard, conn)
				return
			}
			answerAll(10, func() {}, func() {})(conn, bytes)
		})
		started := time.Now()
		require.ErrorIs(t, s.open(context.Background(), schedule{perSecond: 100}, nil, new(recorded).record), ErrStuck)
		require.InDelta(t, servers.ReplyTimeout, time.Since(started), float64(2*deadlineEvery))
	})
}

// TestSteadyWaitsForTheSlow checks that a slow connection, which always has requests in flight, does not count as
// silent.
func TestSteadyWaitsForTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pipeSwarm(t, 1, 1, answerAll(1, func() {}, func() { time.Sleep(time.Second) }))
		var seen recorded
		require.NoError(t, s.open(context.Background(), schedule{perSecond: 2, pipelines: 150}, nil, seen.record))
		require.EqualValues(t, 150, seen.tally.answers)
		require.Equal(t, servers.ReplyTimeout+15*time.Second+time.Second/2, slices.Max(seen.all))
	})
}

// TestSteadyRefusesAnswersToNothing checks that an answer without a request in flight is an error.
func TestSteadyRefusesAnswersToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pipeSwarm(t, 1, 10, func(conn net.Conn, bytes int) {
			_, _ = io.CopyN(io.Discard, conn, int64(bytes))
			_, _ = io.WriteString(conn, strings.Repeat(yes, 10))
			_, _ = io.WriteString(conn, yes)
			_, _ = io.Copy(io.Discard, conn)
		})
		err := s.open(context.Background(), schedule{perSecond: 1}, nil, new(recorded).record)
		require.ErrorContains(t, err, "more answers than requests")
	})
}

// TestSteadyKeepsFewUnderWay bounds the requests in flight on a connection whose server reads everything and answers
// nothing.
func TestSteadyKeepsFewUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived atomic.Int64
		s := pipeSwarm(t, 1, 1, answerAll(1, func() { arrived.Add(1) }, func() { time.Sleep(5 * time.Second) }))
		time.AfterFunc(4*time.Second, func() { assert.EqualValues(t, maxAhead, arrived.Load()) })
		ctx, cancel := context.WithTimeout(context.Background(), 4500*time.Millisecond)
		defer cancel()
		err := s.open(ctx, schedule{perSecond: maxAhead}, nil, new(recorded).record)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func fakeSwarm(t *testing.T, clients, requests int, reply func([]string) string) *swarm {
	addr := startFake(t, &fakeServer{reply: reply})
	l := Load{Workload: Lasting, Clients: clients, Pipeline: requests, Keys: 1000}
	s, err := newSwarm(context.Background(), addr, sender{l, weirCommands()}, newPicker(l))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.close() })
	return s
}

func TestFillMakesEveryKey(t *testing.T) {
	for _, keys := range []int{1, 7, 100, 101} {
		var mu sync.Mutex
		seen := map[string]bool{}
		s := fakeSwarm(t, 3, 8, func(request []string) string {
			mu.Lock()
			defer mu.Unlock()
			seen[request[1]] = true
			return yes
		})
		require.NoError(t, s.fill(context.Background(), keys))
		require.Len(t, seen, keys)
		require.Contains(t, seen, "key:000000000000")
	}
}

func TestFillRefusesWhatIsNotAdmitted(t *testing.T) {
	for reply, want := range map[string]string{no: "0 of 8 requests", "-TRYAGAIN no leader\r\n": "TRYAGAIN no leader"} {
		err := fakeSwarm(t, 2, 8, func([]string) string { return reply }).fill(context.Background(), 100)
		require.ErrorIs(t, err, ErrNotADecision)
		require.ErrorContains(t, err, want)
	}
}

func TestTopCountsWhatIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pipeSwarm(t, 2, 10, answerAll(10, func() {}, func() { time.Sleep(10 * time.Millisecond) }))
		perSecond, err := s.top(context.Background(), time.Second)
		require.NoError(t, err)
		require.InDelta(t, 2*10*100, perSecond, 1e-6)
	})
}
