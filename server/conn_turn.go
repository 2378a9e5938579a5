package server

import (
	"errors"
	"os"

	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/evloop"
	"github.com/weir-project/weir/server/resp"
)

// start begins to serve the connection.
func (c *conn) start() {
	c.guard(func() {
		c.sess = commands.NewSession(c.srv.Shared, c)
		c.setAuthed(c.sess.Authed())
	})
	if c.polled == nil {
		go c.serve()
	} else if err := c.polled.Start(c.turn); err != nil {
		c.srv.Log.Error("cannot poll for a client; it is cut", "addr", c.remote, "err", err)
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
		c.guard(c.sess.Close)
	}
	if polite {
		c.MayBlock()
		c.linger()
	}
	c.pushes.close()
	_ = c.nc.Close()
	c.in.Release()
	c.srv.forget(c)
}

// MayBlock says that the turn may take longer from here on than others should wait.
func (c *conn) MayBlock() {
	if c.polled != nil {
		c.polled.Detach()
	}
}

// loop serves until the connection is over or, with a poller, has nothing to read.
// polite: it is the server that ends it, and what it wrote last shall arrive.
func (c *conn) loop() (over, polite bool) {
	if c.sess == nil {
		return true, true // it could not be made
	}
	for !c.srv.Draining.Load() {
		n, err := c.in.Fill(c.stream)
		if n == 0 && err != nil {
			switch {
			case err == evloop.ErrAgain:
				return false, false
			case errors.Is(err, resp.ErrReadMemory):
				c.lockWrites()
				defer c.writeMu.Unlock()
				return true, c.refuse(err)
			case !errors.Is(err, os.ErrDeadlineExceeded) || !c.woken():
				return true, false
			}
			continue
		}
		c.stir.Store(active)
		c.srv.Wire.InputBytes.Add(int64(n))
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
