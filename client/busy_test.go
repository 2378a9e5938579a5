package client_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/logtest"
	"github.com/weir-project/weir/internal/weirtest"
)

var everyFallback = map[string]client.Fallback{"open": client.Open, "closed": client.Closed, "local": client.Local}

// requireBusy takes many times, and requires that each request is refused because weir is busy.
func requireBusy(t *testing.T, c *client.Client) {
	t.Helper()
	for range 10 {
		d := decide(t, c, client.Request{Rule: probe, Key: "k"})
		require.Equal(t, client.Decision{RetryAfter: time.Second, Source: client.FromBusy}, d)
	}
	require.Zero(t, c.Stats().Switches, "a busy weir is no outage")
	require.EqualValues(t, 10, c.Stats().FromBusy)
}

// TestBusyAnswersAreRefused checks that no fallback decides while weir says that it is busy, and that every fallback
// decides while weir says that it decides nothing.
func TestBusyAnswersAreRefused(t *testing.T) {
	for name, fallback := range everyFallback {
		for _, text := range []string{"-TRYAGAIN not applied", "-OVERLOADED too many commands", "-UNKNOWN no answer",
			"-ERR max number of clients reached", "-TRYAGAIN this node is not the leader"} {
			t.Run(name+text, func(t *testing.T) {
				t.Parallel()
				bird := new(parrot)
				bird.err.Store(text)
				var book logtest.Buffer
				c := newClientOn(t, impostor(t, bird.serve), client.Options{WhenDown: fallback, Logger: book.Logger()})
				requireBusy(t, c)
				require.Equal(t, 1, book.Count("level=WARN"))
				require.Zero(t, book.Count("not reached"))
				bird.err.Store("")
				require.Equal(t, client.FromServer, decide(t, c, client.Request{Rule: probe, Key: "k"}).Source)
			})
		}
		for _, text := range []string{"-CLUSTERDOWN the cluster has no leader", "-LOADING weir loads its data"} {
			t.Run(name+text, func(t *testing.T) {
				t.Parallel()
				bird := new(parrot)
				bird.err.Store(text)
				c := newClientOn(t, impostor(t, bird.serve), client.Options{WhenDown: fallback})
				require.Equal(t, client.FromFallback, decide(t, c, client.Request{Rule: probe, Key: "k"}).Source)
			})
		}
	}
}

// TestFullPoolIsRefused checks that requests that get no connection are refused. Whoever sends many requests at once
// can use up the connections.
func TestFullPoolIsRefused(t *testing.T) {
	for name, fallback := range everyFallback {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := weirtest.Start(t)
			rdb := redis.NewClient(
				&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, PoolSize: 1, ReadTimeout: weirtest.Wait})
			t.Cleanup(func() { _ = rdb.Close() })
			hold := rdb.Conn()
			require.NoError(t, hold.Ping(t.Context()).Err())
			c := newPatientProber(t, rdb, client.Options{WhenDown: fallback, Timeout: 20 * time.Millisecond})
			requireBusy(t, c)
			require.NoError(t, hold.Close())
			require.Eventually(t, func() bool {
				return decide(t, c, client.Request{Rule: probe, Key: "k"}).Source == client.FromServer
			}, weirtest.Wait, time.Millisecond)
		})
	}
}

// TestLateAnswersAreRefused checks a weir that answers every request, but after its deadline. However many time out,
// it is there, and no fallback decides.
func TestLateAnswersAreRefused(t *testing.T) {
	for name, fallback := range everyFallback {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := weirtest.Start(t)
			answers := make(chan struct{})
			slow := impostor(t, func(nc net.Conn) { forward(nc, s.Addr, answers) })
			c := newPatientProber(t, slow, client.Options{WhenDown: fallback, Timeout: 20 * time.Millisecond})
			requireBusy(t, c)
			require.Eventually(t, func() bool { return c.Stats().Probes > 0 }, weirtest.Wait, time.Millisecond)
			close(answers)
			require.Eventually(t, func() bool {
				return decide(t, c, client.Request{Rule: probe, Key: "k"}).Source == client.FromServer
			}, weirtest.Wait, time.Millisecond)
			require.Zero(t, c.Stats().Switches)
		})
	}
}

// forward connects a client with a server, and passes no answer on before answers is closed.
func forward(nc net.Conn, addr string, answers <-chan struct{}) {
	up, err := net.Dial("tcp", addr)
	if err != nil {
		_ = nc.Close()
		return
	}
	go func() {
		<-answers
		_, _ = io.Copy(nc, up)
	}()
	_, _ = io.Copy(up, nc)
	_ = up.Close()
}

// TestTooFewFilesAreBusy checks that a process without file descriptors for a connection does not take weir for lost.
func TestTooFewFilesAreBusy(t *testing.T) {
	requireBusy(t, newClientOn(t, nowhere(t, syscall.EMFILE), client.Options{WhenDown: client.Open}))
}
