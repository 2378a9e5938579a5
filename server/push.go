package server

import (
	"sync"

	"github.com/weir-project/weir/server/commands"
)

// pushQueue holds the messages of other goroutines (MONITOR, SUBSCRIBE) for one connection until they are written. Its
// bytes are bounded, and so are the bytes of all queues together. A client whose queue overflows is disconnected,
// because it cannot detect a gap. A reader of events that is disconnected knows that it must read the state again.
//
// The first message starts a writer goroutine, which ends when the queue is empty.
type pushQueue struct {
	held    *commands.Budget // counts the bytes of buf
	mu      sync.Mutex
	buf     []byte // messages waiting, as they go on the wire
	writing bool   // a writer goroutine has started
	closed  bool
}

// add queues a copy of msg, and calls start when no writer is running. It reports false when the queue is closed or msg
// exceeds a bound.
func (q *pushQueue) add(msg []byte, limit int, start func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.buf)+len(msg) > limit || !q.held.Reserve(len(msg)) {
		return false
	}
	q.buf = append(q.buf, msg...)
	if !q.writing {
		q.writing = true
		start() // under the lock, so that close cannot run in between
	}
	return true
}

// drain appends the queued messages to dst and empties the queue.
func (q *pushQueue) drain(dst []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	dst = append(dst, q.buf...)
	q.held.Release(len(q.buf))
	q.buf = q.buf[:0]
	return dst
}

// swap exchanges the queued messages for an empty buffer. It returns nil if none are queued, and the writer must then
// end.
func (q *pushQueue) swap(empty []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.buf) == 0 {
		q.writing, q.buf = false, nil
		return nil
	}
	full := q.buf
	q.held.Release(len(full))
	q.buf = empty[:0]
	return full
}

// close rejects further messages. It reports whether the queue was open.
func (q *pushQueue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	open := !q.closed
	q.held.Release(len(q.buf))
	q.closed, q.buf = true, nil
	return open
}

// Push queues a message for the client and returns at once. It reports false when the connection is closing, or when
// the queue overflows, which disconnects the client. Any goroutine may call it.
func (c *conn) Push(msg []byte) bool {
	c.pushing.Store(true)
	if c.pushes.add(msg, c.srv.cfg.MaxOutputBytes, c.startPushing) {
		return true
	}
	if c.pushes.close() {
		c.srv.Wire.PushOverflows.Add(1)
		c.srv.Log.Info("client disconnected: it does not read its messages", "id", c.id, "addr", c.remote)
		c.Kill()
	}
	return false
}

func (c *conn) startPushing() { c.srv.Running.Go(c.writePushes) }

// writePushes writes queued messages between batches of replies, until none are left or the connection fails.
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
