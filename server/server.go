package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/resp"
)

// Errors of the server itself.
var (
	ErrServerClosed = errors.New("server: closed")
)

// Config is what a server is told. Zero values of numbers mean the defaults.
type Config struct {
	Addr    string // host:port it is reached at, as INFO and CONFIG GET tell it; empty: only with TLS
	TLSAddr string // the same for clients that speak TLS; empty: none
	// Password is the user default's; empty: none is asked for, unless LoadUsers names
	// users. LoadUsers reads the others, at the start and for ReloadUsers; nil: there is
	// only default.
	Password      string
	LoadUsers     func() (*acl.Users, error)
	ProtectedMode bool // without a password, answer only clients on this machine
	EnableDebug   bool // the DEBUG command
	// Redirect says what a node of a cluster that does not lead does with decisions
	// and settling commands: RedirectForward (the default) sends them to the leader
	// and hands its answer on, RedirectMoved answers MOVED with the leader's address.
	Redirect string
	// BlacklistKey is the key on which SADD, SREM and the other commands of sets show and
	// change the addresses that are blocked everywhere; empty: they work on no key.
	BlacklistKey string
	Version      string // weir's version, for INFO and HELLO

	MaxClients     int           // connections at once
	MaxPerSource   int           // of them, from one address or IPv6 network; 0: as many
	MaxBulkBytes   int           // one argument, 1 KiB to LargestMaxBulkBytes
	MaxValueBytes  int           // one string that a client keeps, 1 to engine.MaxValueBytes
	MaxOutputBytes int           // pushed messages waiting for one client
	WriteTimeout   time.Duration // how long a reply may wait for its reader
	AuthTimeout    time.Duration // how long a client that must authenticate may take

	Tracer commands.Tracer // nil: nobody wants to know
	Logger *slog.Logger    // nil: slog.Default()
	// OnShutdown is called, on a goroutine of its own, when a client sends
	// SHUTDOWN; nil refuses the command.
	OnShutdown func()
}

// Server answers RESP clients for a Limiter. Its methods may be called from any
// goroutine.
type Server struct {
	*commands.Shared
	cfg   Config
	pools resp.BufferPools

	pollers    pollers
	handshakes *handshakes

	openLimits, preAuthLimits *resp.Limits

	places *connlimit.Table // of conns

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	stopOnce  sync.Once
	sweepOnce sync.Once

	lastCrossWarn atomic.Int64 // Unix seconds
}

// New returns a server that decides with lim. It fails with ErrBadConfig when a
// limit is out of range, and when the users cannot be had.
func New(cfg Config, lim limiter.Limiter) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	sessions, err := commands.NewShared(commands.Config{
		Addr: cfg.Addr, TLSAddr: cfg.TLSAddr, Password: cfg.Password, LoadUsers: cfg.LoadUsers,
		ProtectedMode: cfg.ProtectedMode, EnableDebug: cfg.EnableDebug, Redirect: cfg.Redirect,
		BlacklistKey: cfg.BlacklistKey, Version: cfg.Version, MaxClients: cfg.MaxClients,
		MaxBulkBytes: cfg.MaxBulkBytes, MaxValueBytes: cfg.MaxValueBytes, Tracer: cfg.Tracer,
		Logger: cfg.Logger, OnShutdown: cfg.OnShutdown,
	}, lim)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Shared:        sessions,
		cfg:           cfg,
		openLimits:    resp.OpenLimits(cfg.MaxBulkBytes),
		preAuthLimits: resp.PreAuthLimits(),
		listeners:     make(map[net.Listener]struct{}),
		conns:         make(map[*conn]struct{}),
	}
	s.places = connlimit.New(cfg.MaxClients, cfg.MaxPerSource, &s.Wire.EvictedClients)
	s.handshakes = newHandshakes(&s.Wire.EvictedHandshakes)
	return s, nil
}

// complete fills in defaults and checks ranges.
func (c *Config) complete() error {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	setDefault(&c.MaxClients, commands.DefaultMaxClients)
	setDefault(&c.MaxBulkBytes, commands.DefaultMaxBulkBytes)
	setDefault(&c.MaxOutputBytes, DefaultMaxOutputBytes)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.AuthTimeout, DefaultAuthTimeout)
	switch {
	case c.MaxClients < 1:
		return fmt.Errorf("%w: max clients must be at least 1, not %d", commands.ErrBadConfig, c.MaxClients)
	case c.MaxPerSource < 0:
		return fmt.Errorf("%w: max clients per source must not be negative, and is %d", commands.ErrBadConfig, c.MaxPerSource)
	case c.MaxBulkBytes < resp.PreAuthBulkBytes || c.MaxBulkBytes > LargestMaxBulkBytes:
		return fmt.Errorf("%w: max bulk bytes must be %d to %d, not %d",
			commands.ErrBadConfig, resp.PreAuthBulkBytes, LargestMaxBulkBytes, c.MaxBulkBytes)
	case c.MaxOutputBytes < flushBytes:
		return fmt.Errorf("%w: max output bytes must be at least %d, not %d",
			commands.ErrBadConfig, flushBytes, c.MaxOutputBytes)
	case c.WriteTimeout <= 0:
		return fmt.Errorf("%w: write timeout must be positive, not %v", commands.ErrBadConfig, c.WriteTimeout)
	case c.AuthTimeout <= 0:
		return fmt.Errorf("%w: auth timeout must be positive, not %v", commands.ErrBadConfig, c.AuthTimeout)
	}
	return nil
}

func setDefault[T int | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// Shutdown stops accepting and lets every connection finish what it has read:
// its commands are carried out, their replies written, then it is closed. It
// returns nil when all are gone. When ctx ends first the rest are cut and the
// error is ctx's; Close then waits for them.
func (s *Server) Shutdown(ctx context.Context) error {
	s.beginStop()
	s.mu.Lock()
	for c := range s.conns {
		c.nudge()
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.cutAll()
		return ctx.Err()
	}
}

// Close cuts every connection at once and returns when all are gone.
func (s *Server) Close() error {
	s.beginStop()
	s.cutAll()
	s.wait()
	return nil
}

// wait returns when everything that runs has ended.
func (s *Server) wait() {
	s.handshakes.running.Wait() // they begin what runs
	s.Running.Wait()
	s.pollers.close()
}

// beginStop makes Serve return and keeps connections from reading on.
func (s *Server) beginStop() {
	s.stopOnce.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Draining.Store(true)
		close(s.Stop)
		for ln := range s.listeners {
			_ = ln.Close()
		}
		s.handshakes.close()
	})
}

func (s *Server) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Kill()
	}
}

// sweep asks connections that have been quiet since the last sweep to give
// their buffers back. It runs until the server stops.
func (s *Server) sweep() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.Stop:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		for c := range s.conns {
			c.nudgeIfIdle()
		}
		s.mu.Unlock()
	}
}
