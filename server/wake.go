package server

import (
	"errors"
	"os"
	"time"
)

// A connection spends its life waiting to be read. What may end that wait without
// bytes is its deadline: AUTH is overdue, or another goroutine nudges it
// because the server drains or because it has been quiet and shall give its
// buffers back. One deadline serves all three, at no cost to a busy client.

// The values of conn.stir, which tell the sweeper whom to nudge.
const (
	resting int32 = iota // holds no large buffer and has read nothing since
	nudged               // is to give its buffers back
	quiet                // has read nothing since the last sweep
	active
)

// setAuthed follows the session: other limits, and a deadline while AUTH is due.
func (c *conn) setAuthed(authed bool) {
	c.authed = authed
	if authed {
		c.frames.Limits = c.srv.openLimits
		c.authBy = time.Time{}
	} else {
		c.frames.Limits = c.srv.preAuthLimits
		c.authBy = time.Now().Add(c.srv.cfg.AuthTimeout)
	}
	_ = c.nc.SetReadDeadline(c.authBy)
}

// nudge gives the connection a turn without anything to read. Any goroutine may call
// it.
func (c *conn) nudge() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) }

// nudgeIfIdle is the sweeper's visit: a connection that has read nothing between
// two visits is woken once, to give its buffers back.
func (c *conn) nudgeIfIdle() {
	if c.stir.CompareAndSwap(active, quiet) {
		return
	}
	if c.stir.CompareAndSwap(quiet, nudged) {
		c.nudge()
	}
}

// woken says whether to read on after the read deadline: not when AUTH did not
// come in time. It was the sweeper otherwise, or the server is draining, which
// the caller sees next.
func (c *conn) woken() bool {
	if !c.authed && !time.Now().Before(c.authBy) {
		c.srv.Wire.AuthTimeouts.Add(1)
		c.srv.Log.Debug("client cut: it did not authenticate in time", "id", c.id, "addr", c.remote)
		return false
	}
	c.in.Shrink()
	c.frames.Shrink()
	c.sess.Out = nil
	c.stir.CompareAndSwap(nudged, resting)
	_ = c.nc.SetReadDeadline(c.authBy)
	return true
}

// linger ends the connection so that the client gets every reply: it says there
// is no more to come, then throws away what still arrives until the client is
// quiet or gone.
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
		if err != nil && !woken { // a nudge is no sign of quiet
			return
		}
		time.Sleep(lingerPause)
	}
}
