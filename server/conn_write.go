package server

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/weir-project/weir/server/resp"
)

// httpOnRESP answers an HTTP request on a RESP port. It has no header that lets a script of another site read it, and
// it reveals nothing about the server.
const httpOnRESP = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: " +
	"nosniff\r\nConnection: close\r\n\r\n" +
	"This port takes Redis clients. HTTP has a port of its own: --http, 127.0.0.1:6381 unless set.\n"

// flush decides the deferred operations and writes every reply. It reports false when the write fails.
func (c *conn) flush() bool {
	s := c.sess
	c.wholeLen = len(c.replies.Out)
	s.DecidePending()
	if len(c.replies.Out) == 0 {
		return true
	}
	err := c.write(c.stream, c.replies.Out)
	if s.Trace != nil {
		s.EndTrace()
	}
	if c.replies.Out = c.replies.Out[:0]; cap(c.replies.Out) > keptReplyBytes {
		c.replies.Out = nil
	}
	c.wholeLen = 0
	return err == nil
}

// errHeldMemory: the replies that wait for slow readers have reached their common memory bound.
var errHeldMemory = errors.New("the memory for replies that wait for their readers is full")

// write writes b to w in parts. It fails if the client reads nothing for the write timeout, or if the replies held for
// all clients exceed their memory bound. The caller holds writeMu.
func (c *conn) write(w io.Writer, b []byte) error {
	if over := len(b) - keptReplyBytes; over > 0 {
		if !c.srv.Held.Reserve(over) {
			c.srv.Wire.SlowReaders.Add(1)
			c.srv.Log.Info("client disconnected: "+errHeldMemory.Error(), "id", c.id, "addr", c.remote)
			return errHeldMemory
		}
		defer c.srv.Held.Release(over)
	}
	for len(b) > 0 {
		part := b[:min(len(b), keptReplyBytes)]
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.srv.cfg.WriteTimeout))
		n, err := w.Write(part)
		c.srv.Wire.OutputBytes.Add(int64(n))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.srv.Wire.SlowReaders.Add(1)
			c.srv.Log.Info("client disconnected: it does not read its replies", "id", c.id, "addr", c.remote)
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// refuse answers the commands that precede a malformed frame, then writes the protocol error. polite is as in loop.
func (c *conn) refuse(err error) (polite bool) {
	if errors.Is(err, resp.ErrCrossProtocol) {
		c.srv.Wire.CrossProtocol.Add(1)
		c.srv.warnCrossProtocol(c.remote)
		if c.flush() && errors.Is(err, resp.ErrHTTPRequest) {
			_ = c.write(c.stream, []byte(httpOnRESP)) // the result does not matter, because the connection closes
		}
		return false
	}
	c.srv.Wire.ProtocolErrors.Add(1)
	c.srv.Log.Debug("protocol error", "id", c.id, "addr", c.remote, "err", err)
	if !c.flush() {
		return false
	}
	c.sess.ProtocolError(err)
	return c.flush()
}
