package server

import (
	"crypto/x509"
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

// conn is one client's connection. Each read cycle reads, cuts the bytes into commands and passes each command
// to the session. It writes the replies of one read together. The read cycles of a connection never run concurrently.
// They run on a poller's goroutine if the connection has a poller, otherwise on the connection's own goroutine. Only
// read cycles use the fields before writeMu.
type conn struct {
	srv    *Server
	nc     net.Conn
	polled *evloop.Conn  // nc if it has a poller, else nil
	stream io.ReadWriter // nc as its read cycles use it
	id     int64
	remote string
	slot   *connlimit.Slot // in the server's table

	sess     *commands.Session
	replies  resp.Wire // of sess
	in       resp.ReadBuffer
	frames   resp.Framer
	authed   bool      // as the session reported last
	authBy   time.Time // deadline of AUTH while not authed
	proven   bool      // an authenticated client sent a whole command, so the connection is not evicted
	wholeLen int       // bytes of replies that are whole replies

	// Other goroutines share the fields below.
	writeMu  sync.Mutex // held while a batch of replies or pushed messages is written
	pushes   pushQueue
	pushing  atomic.Bool  // set by the first pushed message
	activity atomic.Int32 // resting, waking, quiet or active: see wake.go
}

func newConn(srv *Server, nc net.Conn) *conn {
	c := &conn{srv: srv, nc: nc, stream: nc, polled: srv.poll(nc), id: srv.LastID.Add(1),
		remote: nc.RemoteAddr().String()}
	if _, ok := nc.(*net.UnixConn); ok { // as Redis shows it: the client has no address
		c.remote = nc.LocalAddr().String() + ":0"
	}
	if c.polled != nil {
		c.nc, c.stream = c.polled, c.polled.CycleConn()
	}
	c.in.Pools, c.pushes.held = &srv.pools, &srv.Held
	return c
}

// ID is unique among the connections of a server. IDs ascend.
func (c *conn) ID() int64 { return c.id }

// RemoteAddr returns the client's host:port.
func (c *conn) RemoteAddr() string { return c.remote }

// LocalAddr returns the host:port that the client connected to.
func (c *conn) LocalAddr() string { return c.nc.LocalAddr().String() }

// Certificate returns the client's certificate, which the handshake has verified, or nil without one.
func (c *conn) Certificate() *x509.Certificate {
	if secure, ok := c.nc.(secureConn); ok {
		if shown := secure.ConnectionState().PeerCertificates; len(shown) > 0 {
			return shown[0]
		}
	}
	return nil
}

// Kill closes the connection. Replies that are not yet written are lost. Any goroutine may call it.
func (c *conn) Kill() { _ = c.nc.Close() }

// guard recovers a panic of f, so that the panic closes only this connection. The caller ends the connection.
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
			_ = c.write(c.stream, append(c.replies.Out[:c.wholeLen], "-ERR internal error\r\n"...))
		}
	}()
	f()
}

// prove exempts the connection from eviction after an authenticated client sent its first whole command.
func (c *conn) prove() {
	if c.authed && !c.proven {
		c.proven = true
		c.slot.Begin()
	}
}

// batch executes the commands that have arrived whole. It flushes before it returns, so the read buffer may then move.
// more reports whether the connection goes on. polite is as in loop.
func (c *conn) batch() (more, polite bool) {
	c.lockWrites()
	defer c.writeMu.Unlock()
	s := c.sess
	s.Begin()
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
			c.replies.Out = c.pushes.drain(c.replies.Out) // messages pushed before this command precede its reply
		}
		c.wholeLen = len(c.replies.Out)
		c.prove()
		s.Do(args)
		if s.Full(1) || len(c.replies.Out) >= flushBytes {
			if !c.flush() {
				return false, false
			}
		}
	}
	return false, c.flush()
}
