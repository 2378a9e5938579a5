package server

import (
	"errors"
	"net"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/commands"
)

// Error replies to a rejected client. The server closes the connection after the reply.
const (
	tooManyClients     = "-ERR max number of clients reached\r\n"
	tooManyFromAddress = "-ERR max number of clients from your address reached\r\n"
	protectedReply     = "-DENIED weir runs in protected mode: it has no password and therefore answers only clients " +
		"on its own machine. To accept other clients, start it with a password, or with --protected-mode=false if " +
		"the network itself keeps unknown clients out.\r\n"
)

// Serve accepts RESP clients from ln until the server stops, and then returns nil. After a stop
// it closes ln and returns nil at once, because the goroutine that calls Serve may start late. Serve owns ln and closes
// it when the server stops. It retries Accept after an error, except after net.ErrClosed: the caller has closed ln, and
// Serve returns that error.
func (s *Server) Serve(ln net.Listener) error { return s.accept(ln, s.admit) }

// accept passes each connection of ln to welcome. Serve documents the results.
func (s *Server) accept(ln net.Listener, welcome func(net.Conn)) error {
	if !s.adopt(ln) {
		return nil
	}
	pause := acceptPauseMin
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = acceptPauseMin
			welcome(nc)
		case s.Draining.Load():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			s.Wire.AcceptErrors.Add(1)
			s.Log.Warn("cannot accept a client; trying again", "err", err, "pause", pause)
			s.Sleep(pause)
			pause = min(2*pause, acceptPauseMax)
		}
	}
}

// adopt registers ln, so that the server closes ln when it stops. If the server has stopped already, adopt closes ln
// and returns false. The first call starts the goroutine of sweep.
func (s *Server) adopt(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Draining.Load() {
		_ = ln.Close()
		return false
	}
	s.listeners[ln] = struct{}{}
	s.sweepOnce.Do(func() {
		s.Running.Go(s.sweep)
		if s.Replica != nil {
			s.Running.Go(s.AnnouncePrimaries)
		}
	})
	return true
}

// admit starts serving a client, unless protected mode rejects it.
func (s *Server) admit(nc net.Conn) {
	if s.Protects(nc) {
		s.Wire.Denied.Add(1)
		turnAway(nc, protectedReply)
		return
	}
	keepAlive(nc)
	s.serve(nc)
}

// serve starts serving a client that protected mode admits, if the connection limits allow it.
func (s *Server) serve(nc net.Conn) {
	c := newConn(s, nc)
	switch err := s.enroll(c); err {
	case nil:
		s.Wire.Accepted.Add(1)
		c.start()
	case connlimit.ErrFull:
		s.Wire.Rejected.Add(1)
		turnAway(c.nc, tooManyClients)
	case connlimit.ErrSourceFull:
		s.Wire.Rejected.Add(1)
		turnAway(c.nc, tooManyFromAddress)
	default:
		_ = c.nc.Close()
	}
}

// enroll adds c to the open connections, or returns the reason for a rejection.
func (s *Server) enroll(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Draining.Load() {
		return errStopped
	}
	slot, err := s.places.Admit(connlimit.SourceOf(c.remote), c.Kill)
	if err != nil {
		return err
	}
	c.slot = slot
	s.conns[c] = struct{}{}
	s.Wire.Connected.Add(1)
	s.Running.Add(1)
	return nil
}

// forget removes c from the open connections. It is the last step of a connection.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.Wire.Connected.Add(-1)
	c.slot.Release()
	s.Running.Done()
}

// turnAway writes a reply, with a short timeout, and closes the connection.
func turnAway(nc net.Conn, why string) {
	_ = nc.SetWriteDeadline(time.Now().Add(rejectTimeout))
	_, _ = nc.Write([]byte(why))
	_ = nc.Close()
}

func keepAlive(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: commands.KeepAliveIdle, Interval: keepAliveEvery, Count: keepAliveCount,
		})
	}
}

// warnCrossProtocol logs an HTTP request to a RESP port, at most once per warnEvery.
func (s *Server) warnCrossProtocol(from string) {
	now := time.Now().Unix()
	last := s.lastCrossWarn.Load()
	if now-last >= int64(warnEvery/time.Second) && s.lastCrossWarn.CompareAndSwap(last, now) {
		s.Log.Warn("an HTTP request reached the RESP port, and its connection was closed: a browser or a proxy may "+
			"be sending commands", "addr", from)
	}
}
