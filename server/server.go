package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/resp"
)

// errStopped is why a server that has stopped enrolls no connection.
var errStopped = errors.New("server: stopped")

// Config configures a server. Zero numbers mean the defaults.
type Config = commands.Config

// Server serves RESP clients with a Limiter. Its methods may be called from any goroutine.
type Server struct {
	*commands.Shared
	cfg   Config
	pools resp.BufferPools

	pollers    pollers
	handshakes *handshakes

	openLimits, preAuthLimits *resp.Limits

	places *connlimit.Table // admission of conns

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	stopOnce  sync.Once
	sweepOnce sync.Once

	lastCrossWarn atomic.Int64 // Unix seconds
}

// New returns a server that decides with lim. It fails with ErrBadConfig when a limit is out of range. It also fails
// when LoadUsers fails.
func New(cfg Config, lim limiter.Limiter) (*Server, error) {
	if err := completeConns(&cfg); err != nil {
		return nil, err
	}
	sessions, err := commands.NewShared(cfg, lim)
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

// completeConns sets the defaults of connections and checks their ranges.
func completeConns(c *Config) error {
	c.MaxClients = cmp.Or(c.MaxClients, commands.DefaultMaxClients)
	c.MaxBulkBytes = cmp.Or(c.MaxBulkBytes, commands.DefaultMaxBulkBytes)
	c.MaxOutputBytes = cmp.Or(c.MaxOutputBytes, DefaultMaxOutputBytes)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.AuthTimeout = cmp.Or(c.AuthTimeout, DefaultAuthTimeout)
	switch {
	case c.MaxClients < 1:
		return fmt.Errorf("%w: max clients must be at least 1, not %d", commands.ErrBadConfig, c.MaxClients)
	case c.MaxPerSource < 0:
		return fmt.Errorf("%w: max clients per source must not be negative, and is %d",
			commands.ErrBadConfig, c.MaxPerSource)
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

// Shutdown stops accepting and drains every connection: its commands that were read are executed and their replies
// written, then it is closed. It returns nil when all connections have ended. If ctx ends first, Shutdown closes the
// remaining connections and returns ctx's error. Close then waits for them.
func (s *Server) Shutdown(ctx context.Context) error {
	s.beginStop()
	s.mu.Lock()
	for c := range s.conns {
		c.wake()
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

// Close closes every connection at once, and returns when all have ended.
func (s *Server) Close() error {
	s.beginStop()
	s.cutAll()
	s.wait()
	return nil
}

// wait returns when all goroutines of the server have ended.
func (s *Server) wait() {
	s.handshakes.running.Wait() // first, because handshakes start connections
	s.Running.Wait()
	s.pollers.close()
}

// beginStop closes the listeners and stops connections from reading further commands.
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

// sweep asks connections that were idle since the last sweep to release their buffers. It runs until the server stops.
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
			c.wakeIfIdle()
		}
		s.mu.Unlock()
	}
}
