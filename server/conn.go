package server

import (
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/evloop"
	"github.com/weir-project/weir/server/resp"
)

// conn is one client's connection. Its turns read, frame, hand each command to the
// session and write the replies of all that one read brought in one write. They run
// on one goroutine at a time: on a poller's where the connection has one, else on
// one of its own. Everything but the fields marked so belongs to the turn.
type conn struct {
	srv    *Server
	nc     net.Conn
	polled *evloop.Conn  // nc where it has a poller, else nil
	stream io.ReadWriter // nc as its turns use it
	id     int64
	remote string
	slot   *connlimit.Slot // in the server's table

	sess   *commands.Session
	in     resp.ReadBuffer
	frames resp.Framer
	authed bool      // as the session last said
	authBy time.Time // while not authed: cut then
	proven bool      // a command has arrived whole from a client that may send it: not to be evicted
	sound  int       // bytes of sess.out that are whole replies

	// What follows is shared with other goroutines.
	writeMu sync.Mutex // held through a batch of replies, or of pushed messages
	pushes  pushQueue
	pushing atomic.Bool // something was pushed once
	stir    atomic.Int32
}

func newConn(srv *Server, nc net.Conn) *conn {
	c := &conn{srv: srv, nc: nc, stream: nc, polled: srv.poll(nc), id: srv.LastID.Add(1), remote: nc.RemoteAddr().String()}
	if c.polled != nil {
		c.nc, c.stream = c.polled, c.polled.Turn()
	}
	c.in.Pools, c.pushes.held = &srv.pools, &srv.Held
	return c
}

// ID is unique among the connections of a server, ascending.
func (c *conn) ID() int64 { return c.id }

// RemoteAddr is the client's host:port.
func (c *conn) RemoteAddr() string { return c.remote }

// LocalAddr is the host:port the client reached.
func (c *conn) LocalAddr() string { return c.nc.LocalAddr().String() }

// Kill cuts the connection; replies not yet written are lost. Any goroutine may
// call it.
func (c *conn) Kill() { _ = c.nc.Close() }

// guard keeps a panic in f from costing more than this connection.
func (c *conn) guard(f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.srv.Wire.Panics.Add(1)
		c.srv.Log.Error("panic while serving a client; its connection is closed",
			"id", c.id, "addr", c.remote, "panic", p, "stack", string(debug.Stack()))
		if c.sess != nil {
			c.writeMu.Lock()
			defer c.writeMu.Unlock()
			_ = c.write(c.stream, append(c.sess.Out[:c.sound], "-ERR internal error\r\n"...))
		}
	}()
	f()
}

// prove keeps the connection from being evicted, once it has sent a command and may.
func (c *conn) prove() {
	if c.authed && !c.proven {
		c.proven = true
		c.slot.Begin()
	}
}

// batch carries out the commands that have arrived whole. It settles and writes
// before it returns, so the read buffer may move afterwards.
func (c *conn) batch() (more, polite bool) {
	c.lockWrites()
	defer c.writeMu.Unlock()
	s := c.sess
	s.Confirmed = false // what is read now arrived after that
	s.Depart()
	for !s.Closing {
		args, used, err := c.frames.Next(c.in.Unread())
		c.in.Consume(used)
		if err != nil {
			return false, c.refuse(err)
		}
		if args == nil {
			return c.flush(), false
		}
		if c.pushing.Load() {
			s.Out = c.pushes.take(s.Out) // what was pushed before this command comes before its reply
		}
		c.sound = len(s.Out)
		c.prove()
		s.Do(args)
		if authed := s.Authed(); authed != c.authed {
			c.setAuthed(authed)
			c.prove()
		}
		if s.Full(1) || len(s.Out) >= flushBytes {
			if !c.flush() {
				return false, false
			}
		}
	}
	return false, c.flush()
}
