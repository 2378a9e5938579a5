package server

import (
	"errors"
	"os"

	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/evloop"
	"github.com/weir-project/weir/server/resp"
)

// start creates the session and begins the read cycles.
func (c *conn) start() {
	c.guard(func() {
		c.SetAuthed(false)
		c.sess = commands.NewSession(c.srv.Shared, c, &c.replies)
	})
	if c.polled == nil {
		go c.serve()
	} else if err := c.polled.Start(c.readCycle); err != nil {
		c.srv.Log.Error("cannot poll for a client; it is disconnected", "addr", c.remote, "err", err)
		c.end(false)
	}
}

// serve runs read cycles until the connection ends.
func (c *conn) serve() {
	for c.readCycle() {
	}
}

// readCycle runs one read cycle, and reports whether the connection goes on.
func (c *conn) readCycle() bool {
	over, polite := true, true // these values hold after a panic as well
	c.guard(func() { over, polite = c.loop() })
	if over {
		c.end(polite)
	}
	return !over
}

// end closes the session and the connection, and releases the buffers. polite is as in loop.
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

// MayBlock detaches the connection from its poller, because the rest of the read cycle may block.
func (c *conn) MayBlock() {
	if c.polled != nil {
		c.polled.Detach()
	}
}

// loop serves until the connection is over or, with a poller, until it has nothing to read. polite reports that the
// server ends the connection. The method end then lingers, so that the client gets the last replies.
func (c *conn) loop() (over, polite bool) {
	if c.sess == nil {
		return true, true // NewSession panicked
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
		c.activity.Store(active)
		c.srv.Wire.InputBytes.Add(int64(n))
		if more, polite := c.batch(); !more {
			return true, polite
		}
	}
	return true, true
}

// lockWrites acquires writeMu. If another goroutine is writing pushed messages, it first detaches from the poller,
// because it has to wait.
func (c *conn) lockWrites() {
	if !c.writeMu.TryLock() {
		c.MayBlock()
		c.writeMu.Lock()
	}
}
