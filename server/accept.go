package server

import (
	"errors"
	"net"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/commands"
)

// What a client that is turned away reads.
const (
	tooManyClients = "-ERR max number of clients reached\r\n"
	tooManyOfYou   = "-ERR max number of clients from your address reached\r\n"
	protectedReply = "-DENIED weir runs in protected mode: it has no password and therefore answers only clients on " +
		"its own machine. To let others in, start it with a password, or with --protected-mode=false where " +
		"the network itself keeps strangers out.\r\n"
)

// Serve accepts clients from ln until the server stops, and returns nil then. It
// takes ln over. Errors of accept are waited out; only a listener that somebody
// else closed ends it, with net.ErrClosed.
func (s *Server) Serve(ln net.Listener) error { return s.accept(ln, s.admit) }

// accept hands the clients of ln to welcome, as Serve and ServeTLS say.
func (s *Server) accept(ln net.Listener, welcome func(net.Conn)) error {
	if !s.adopt(ln) {
		return ErrServerClosed
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

// adopt makes ln the server's own, which it closes when it stops.
func (s *Server) adopt(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Draining.Load() {
		_ = ln.Close()
		return false
	}
	s.listeners[ln] = struct{}{}
	s.sweepOnce.Do(func() { s.Running.Go(s.sweep) })
	return true
}

// admit starts serving a client, or turns it away.
func (s *Server) admit(nc net.Conn) {
	if s.Protects(nc) {
		s.Wire.Denied.Add(1)
		turnAway(nc, protectedReply)
		return
	}
	keepAlive(nc)
	s.take(nc)
}

// take starts serving a client that may come in, if there is room.
func (s *Server) take(nc net.Conn) {
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
		turnAway(c.nc, tooManyOfYou)
	default:
		_ = c.nc.Close()
	}
}

// enroll counts c among the connections, or says why it cannot be one.
func (s *Server) enroll(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Draining.Load() {
		return ErrServerClosed
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

// forget is a connection's last act.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.Wire.Connected.Add(-1)
	c.slot.Release()
	s.Running.Done()
}

// turnAway tells a client why, without waiting for it, and hangs up.
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

// warnCrossProtocol logs an HTTP request, though not each of a flood of them.
func (s *Server) warnCrossProtocol(from string) {
	now := time.Now().Unix()
	last := s.lastCrossWarn.Load()
	if now-last >= int64(warnEvery/time.Second) && s.lastCrossWarn.CompareAndSwap(last, now) {
		s.Log.Warn("an HTTP request reached the RESP port and was cut off: "+
			"possibly somebody uses a browser or a proxy to send commands", "addr", from)
	}
}
