package server

import (
	"errors"
	"os"
	"time"
)

// A connection mostly waits for input. Only its read deadline can end this wait without input. The wait must end when
// AUTH is overdue, when the server drains, and when an idle connection must release its buffers. One deadline serves
// all three and costs a busy client nothing.

// The values of conn.activity tell Server.sweep which connections to wake.
const (
	resting int32 = iota // holds no large buffer and has read nothing since
	waking               // must release its buffers
	quiet                // has read nothing since the last sweep
	active               // has read something since the last sweep
)

// SetAuthed applies the authentication state of the session: the frame limits, and a read deadline while AUTH is due.
func (c *conn) SetAuthed(authed bool) {
	c.authed = authed
	if authed {
		c.frames.Limits = c.srv.openLimits
		c.authBy = time.Time{}
	} else {
		c.frames.Limits = c.srv.preAuthLimits
		c.authBy = time.Now().Add(c.srv.cfg.AuthTimeout)
	}
	_ = c.nc.SetReadDeadline(c.authBy)
	if c.sess != nil {
		c.prove() // the command that logged in was whole
	}
}

// wake starts a read cycle without input: it sets a read deadline in the past, and woken handles the failed read. Any
// goroutine may call it.
func (c *conn) wake() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) }

// wakeIfIdle wakes a connection once if it has read nothing between two sweeps.
func (c *conn) wakeIfIdle() {
	if c.activity.CompareAndSwap(active, quiet) {
		return
	}
	if c.activity.CompareAndSwap(quiet, waking) {
		c.wake()
	}
}

// woken handles an expired read deadline, and reports whether the connection may continue. It reports false if AUTH is
// overdue. Otherwise wake has set the deadline: woken releases the buffers, and the caller checks whether the server
// drains.
func (c *conn) woken() bool {
	if !c.authed && !time.Now().Before(c.authBy) {
		c.srv.Wire.AuthTimeouts.Add(1)
		c.srv.Log.Debug("client disconnected: it did not authenticate in time", "id", c.id, "addr", c.remote)
		return false
	}
	c.in.Shrink()
	c.frames.Shrink()
	c.replies.Out = nil
	c.activity.CompareAndSwap(waking, resting)
	_ = c.nc.SetReadDeadline(c.authBy)
	return true
}

// linger ends the connection so that the client receives every reply. It closes the write side, then discards input
// until the client is quiet or has disconnected.
func (c *conn) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	var discard [lingerBytes]byte
	for end := time.Now().Add(lingerMax); time.Now().Before(end); {
		quietAt := time.Now().Add(lingerQuiet)
		_ = c.nc.SetReadDeadline(quietAt)
		_, err := c.nc.Read(discard[:])
		woken := errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(quietAt)
		if err != nil && !woken { // a wake-up does not mean that the peer is quiet
			return
		}
		time.Sleep(lingerPause)
	}
}
