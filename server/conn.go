package server

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/server/evloop"
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

	sess   *session
	in     readBuffer
	frames framer
	authed bool      // as the session last said
	authBy time.Time // while not authed: cut then
	sound  int       // bytes of sess.out that are whole replies

	// What follows is shared with other goroutines.
	writeMu sync.Mutex // held through a batch of replies, or of pushed messages
	pushes  pushQueue
	pushing atomic.Bool // something was pushed once
	stir    atomic.Int32
}

func newConn(srv *Server, nc net.Conn) *conn {
	c := &conn{srv: srv, nc: nc, stream: nc, polled: srv.poll(nc), id: srv.lastID.Add(1), remote: nc.RemoteAddr().String()}
	if c.polled != nil {
		c.nc, c.stream = c.polled, c.polled.Turn()
	}
	c.in.pools, c.pushes.held = &srv.pools, &srv.held
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

// start begins to serve the connection.
func (c *conn) start() {
	c.guard(func() {
		c.sess = newSession(c.srv, c)
		c.setAuthed(c.sess.authed())
	})
	if c.polled == nil {
		go c.serve()
	} else if err := c.polled.Start(c.turn); err != nil {
		c.srv.log.Error("cannot poll for a client; it is cut", "addr", c.remote, "err", err)
		c.end(false)
	}
}

// serve runs turns to the connection's end.
func (c *conn) serve() {
	for c.turn() {
	}
}

// turn serves what has arrived, and reports whether the connection goes on.
func (c *conn) turn() bool {
	over, polite := true, true // also after a panic
	c.guard(func() { over, polite = c.loop() })
	if over {
		c.end(polite)
	}
	return !over
}

// end lets go of everything; polite as in loop.
func (c *conn) end(polite bool) {
	if c.sess != nil {
		c.guard(c.sess.close)
	}
	if polite {
		c.MayBlock()
		c.linger()
	}
	c.pushes.close()
	_ = c.nc.Close()
	c.in.release()
	c.srv.forget(c)
}

// MayBlock says that the turn may take longer from here on than others should wait.
func (c *conn) MayBlock() {
	if c.polled != nil {
		c.polled.Detach()
	}
}

// guard keeps a panic in f from costing more than this connection.
func (c *conn) guard(f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.srv.stats.Panics.Add(1)
		c.srv.log.Error("panic while serving a client; its connection is closed",
			"id", c.id, "addr", c.remote, "panic", p, "stack", string(debug.Stack()))
		if c.sess != nil {
			c.writeMu.Lock()
			defer c.writeMu.Unlock()
			_ = c.write(c.stream, append(c.sess.out[:c.sound], "-ERR internal error\r\n"...))
		}
	}()
	f()
}

// loop serves until the connection is over or, with a poller, has nothing to read.
// polite: it is the server that ends it, and what it wrote last shall arrive.
func (c *conn) loop() (over, polite bool) {
	if c.sess == nil {
		return true, true // it could not be made
	}
	for !c.srv.draining.Load() {
		n, err := c.in.fill(c.stream)
		if n == 0 && err != nil {
			switch {
			case err == evloop.ErrAgain:
				return false, false
			case errors.Is(err, errReadMemory):
				c.lockWrites()
				defer c.writeMu.Unlock()
				return true, c.refuse(err)
			case !errors.Is(err, os.ErrDeadlineExceeded) || !c.woken():
				return true, false
			}
			continue
		}
		c.stir.Store(active)
		c.srv.stats.InputBytes.Add(int64(n))
		if more, polite := c.batch(); !more {
			return true, polite
		}
	}
	return true, true
}

// lockWrites waits until no pushed message is being written.
func (c *conn) lockWrites() {
	if !c.writeMu.TryLock() {
		c.MayBlock()
		c.writeMu.Lock()
	}
}

// batch carries out the commands that have arrived whole. It settles and writes
// before it returns, so the read buffer may move afterwards.
func (c *conn) batch() (more, polite bool) {
	c.lockWrites()
	defer c.writeMu.Unlock()
	s := c.sess
	s.confirmed = false // what is read now arrived after that
	for !s.closing {
		args, used, err := c.frames.next(c.in.unread())
		c.in.consume(used)
		if err != nil {
			return false, c.refuse(err)
		}
		if args == nil {
			return c.flush(), false
		}
		if c.pushing.Load() {
			s.out = c.pushes.take(s.out) // what was pushed before this command comes before its reply
		}
		c.sound = len(s.out)
		s.do(args)
		if authed := s.authed(); authed != c.authed {
			c.setAuthed(authed)
		}
		if s.pending() >= MaxBatch || len(s.out) >= flushBytes {
			if !c.flush() {
				return false, false
			}
		}
	}
	return false, c.flush()
}

// flush settles the deferred operations and writes every reply. It reports false
// when the client is gone.
func (c *conn) flush() bool {
	s := c.sess
	c.sound = len(s.out)
	if s.pending() > 0 {
		s.settle()
	}
	if len(s.out) == 0 {
		return true
	}
	err := c.write(c.stream, s.out)
	if s.out = s.out[:0]; cap(s.out) > keptReplyBytes {
		s.out = nil
	}
	c.sound = 0
	return err == nil
}

// errHeldMemory: too much waits for readers already.
var errHeldMemory = errors.New("too many long replies wait for their readers")

// write sends b by w. A client that takes none of it for the write timeout is cut, and
// so is one that makes the server hold more than all may. The caller holds writeMu.
func (c *conn) write(w io.Writer, b []byte) error {
	if over := len(b) - keptReplyBytes; over > 0 {
		if !c.srv.held.take(over) {
			c.srv.stats.SlowReaders.Add(1)
			c.srv.log.Info("client cut: "+errHeldMemory.Error(), "id", c.id, "addr", c.remote)
			return errHeldMemory
		}
		defer c.srv.held.give(over)
	}
	for len(b) > 0 {
		part := b[:min(len(b), keptReplyBytes)]
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.srv.cfg.WriteTimeout))
		n, err := w.Write(part)
		c.srv.stats.OutputBytes.Add(int64(n))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.srv.stats.SlowReaders.Add(1)
			c.srv.log.Info("client cut: it does not read its replies", "id", c.id, "addr", c.remote)
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// refuse answers what was sound before a frame that is not, then the error. It
// reports whether the client is to be waited for.
func (c *conn) refuse(err error) (polite bool) {
	if errors.Is(err, errCrossProtocol) {
		c.srv.stats.CrossProtocol.Add(1)
		c.srv.warnCrossProtocol(c.remote)
		c.flush()
		return false
	}
	c.srv.stats.ProtocolErrors.Add(1)
	c.srv.log.Debug("protocol error", "id", c.id, "addr", c.remote, "err", err)
	if !c.flush() {
		return false
	}
	c.sess.protocolError(err)
	return c.flush()
}
