// Package weirtest runs a real weir inside the process of a test. Clients reach it over TCP, and a test can stop it and
// start it again at the same address. Its time stands still until Advance, unless it was started with a real clock.
package weirtest

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/httpapi"
)

// Wait bounds every wait of a test. No result depends on how much of it is used.
const Wait = 30 * time.Second

// Server is a server and its limiter. The limiter keeps its state when the server stops.
type Server struct {
	Addr string // host:port, the same after a restart
	// Decided counts the operations that reached the limiter.
	Decided atomic.Int64

	t     testing.TB
	node  *node
	srv   *server.Server
	ended chan error
}

// node is a limiter whose answers can be lost.
type node struct {
	*persistence.Node
	decided *atomic.Int64
	instead atomic.Pointer[func(ops []engine.Op) (carryOut bool, err error)]
}

func (n *node) Decide(ops []engine.Op, out []engine.Decision) error {
	n.decided.Add(int64(len(ops)))
	carryOut, err := true, error(nil)
	if f := n.instead.Load(); f != nil {
		carryOut, err = (*f)(ops)
	}
	if carryOut {
		if failed := n.Node.Decide(ops, out); failed != nil {
			return failed
		}
	}
	return err
}

// Start starts a server with a stopped clock. It ends with the test.
func Start(t testing.TB) *Server { return start(t, persistence.Options{TestClock: true}) }

// StartRealTime starts a server with a real clock.
func StartRealTime(t testing.TB) *Server { return start(t, persistence.Options{}) }

func start(t testing.TB, o persistence.Options) *Server {
	t.Helper()
	o.Logger = quiet()
	s := &Server{t: t, Addr: freeport.Addr(t)} // which nobody else takes while it is stopped
	kept, err := persistence.Open(o)
	require.NoError(t, err)
	s.node = &node{Node: kept, decided: &s.Decided}
	s.Start()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, kept.Close())
	})
	return s
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// Start listens again at the previous address of the server.
func (s *Server) Start() {
	s.t.Helper()
	ln, err := net.Listen("tcp", s.Addr)
	require.NoError(s.t, err)
	s.Addr = ln.Addr().String()
	s.srv, err = server.New(server.Config{Addr: s.Addr, Logger: quiet()}, s.node)
	require.NoError(s.t, err)
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.srv.Serve(ln) }()
}

// Stop closes every connection, as a crash would. The limiter keeps its state.
func (s *Server) Stop() {
	if s.srv == nil {
		return
	}
	require.NoError(s.t, s.srv.Close())
	<-s.ended
	s.srv = nil
}

// Advance moves the clock.
func (s *Server) Advance(d time.Duration) { require.True(s.t, s.node.Advance(d)) }

// HTTP serves the HTTP side of the server until its next stop, and returns its host:port.
func (s *Server) HTTP() string {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	web, err := httpapi.New(s.srv.Service, s.srv, httpapi.CheckProtected, true)
	require.NoError(s.t, err)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ln) }()
	s.t.Cleanup(func() {
		require.NoError(s.t, web.Close())
		require.NoError(s.t, <-ended)
	})
	return ln.Addr().String()
}

// RLS serves Envoy's rate limit service on the running server until the test ends or stop is called. It returns its
// host:port.
func (s *Server) RLS() (addr string, stop func()) {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	rls, ended := envoyrls.New(s.srv.Service, nil), make(chan error, 1)
	go func() { ended <- rls.Serve(ln) }()
	stop = sync.OnceFunc(func() {
		rls.Shutdown(s.t.Context())
		require.NoError(s.t, <-ended)
	})
	s.t.Cleanup(stop)
	return ln.Addr().String(), stop
}

// Instead calls f before every batch of decisions. f returns whether the batch is run, and which error is answered. A
// nil f removes the previous one.
func (s *Server) Instead(f func(ops []engine.Op) (carryOut bool, err error)) {
	if f == nil {
		s.node.instead.Store(nil)
		return
	}
	s.node.instead.Store(&f)
}

// Redis returns a client that respects deadlines and ends with the test. It dials once, so that it fails at once at a
// stopped server.
func (s *Server) Redis() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, DialerRetries: 1})
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
