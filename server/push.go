package server

import (
	"sync"

	"github.com/weir-project/weir/server/commands"
)

// pushQueue holds the messages other goroutines have for one connection
// (MONITOR, SUBSCRIBE) until they are written. It is bounded in bytes, and so are
// those of all connections together. A client
// that lets it overflow is cut rather than left with a gap it cannot see: a
// reader of events that finds its connection closed knows to look again.
//
// A connection has no writer of its own until there is something to push: the
// first message starts a goroutine, which ends when the queue is empty.
type pushQueue struct {
	held    *commands.Budget // counts the bytes of buf
	mu      sync.Mutex
	buf     []byte // messages waiting, as they go on the wire
	writing bool   // a goroutine is on its way to empty the queue
	closed  bool
}

// add queues a copy of msg, and calls start when no writer is under way. It
// reports false when the queue is closed or there is no room for msg.
func (q *pushQueue) add(msg []byte, limit int, start func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.buf)+len(msg) > limit || !q.held.Take(len(msg)) {
		return false
	}
	q.buf = append(q.buf, msg...)
	if !q.writing {
		q.writing = true
		start() // under the lock: close cannot come between
	}
	return true
}

// take moves what is queued behind dst.
func (q *pushQueue) take(dst []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	dst = append(dst, q.buf...)
	q.held.Give(len(q.buf))
	q.buf = q.buf[:0]
	return dst
}

// swap exchanges the queued messages for an empty buffer. nil: there were none,
// and the writer must end.
func (q *pushQueue) swap(empty []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.buf) == 0 {
		q.writing, q.buf = false, nil
		return nil
	}
	full := q.buf
	q.held.Give(len(full))
	q.buf = empty[:0]
	return full
}

// close refuses further messages; it says whether the queue was open.
func (q *pushQueue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	open := !q.closed
	q.held.Give(len(q.buf))
	q.closed, q.buf = true, nil
	return open
}

// Push queues a message for the client and returns at once. It reports false
// when the message cannot be delivered: the connection is closing, or the client
// reads so slowly that it is now cut. Any goroutine may call it.
func (c *conn) Push(msg []byte) bool {
	c.pushing.Store(true)
	if c.pushes.add(msg, c.srv.cfg.MaxOutputBytes, c.startPushing) {
		return true
	}
	if c.pushes.close() {
		c.srv.Wire.PushOverflows.Add(1)
		c.srv.Log.Info("client cut: pushed messages piled up", "id", c.id, "addr", c.remote)
		c.Kill()
	}
	return false
}

func (c *conn) startPushing() { c.srv.Running.Go(c.writePushes) }

// writePushes writes queued messages between whole batches of replies until
// none are left or the connection fails.
func (c *conn) writePushes() {
	var messages []byte
	for {
		c.writeMu.Lock()
		messages = c.pushes.swap(messages)
		if messages == nil {
			c.writeMu.Unlock()
			return
		}
		err := c.write(c.nc, messages)
		c.writeMu.Unlock()
		if err != nil {
			c.pushes.close()
			c.Kill()
		}
	}
}
