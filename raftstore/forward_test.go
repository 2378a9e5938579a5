package raftstore_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

// callConn is a connection that changes what it writes if it carries calls.
type callConn struct {
	net.Conn
	known bool
	calls bool
	write func(conn net.Conn, b []byte) (int, error)
}

func (c *callConn) Write(b []byte) (int, error) {
	if !c.known {
		c.known, c.calls = true, bytes.HasPrefix(b, []byte("weir-node\x01C"))
	}
	if c.calls {
		return c.write(c.Conn, b)
	}
	return c.Conn.Write(b)
}

// lateConn is a connection whose answers are late if it is the shared one.
type lateConn struct {
	net.Conn
	known  bool
	shared bool
	wait   func() // called when an answer has arrived, but not during the greeting
}

func (c *lateConn) Write(b []byte) (int, error) {
	if !c.known {
		c.known, c.shared = true, bytes.HasPrefix(b, []byte("weir-node\x02S"))
	}
	return c.Conn.Write(b)
}

// greetingBytes is larger than one read of a greeting and smaller than a read of an answer. A read of the greeting
// must not block, because it would ignore the deadline of the handshake.
const greetingBytes = 1 << 10

func (c *lateConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.shared && len(b) > greetingBytes {
		c.wait()
	}
	return n, err
}

// dialer returns a dialer that wraps every connection of a node.
func dialer(wrap func(conn net.Conn, to string) net.Conn) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return wrap(conn, addr), nil
	}
}

// TestALateStatusEndsNoDecision checks that the decisions of a follower are answered while the leader's answers to its
// questions are late.
func TestALateStatusEndsNoDecision(t *testing.T) {
	var late [3]sync.RWMutex // the answers to a node wait while the lock with its index is held for writing
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.MaxDecisionAge = patience
		o.Dialer = dialer(func(conn net.Conn, _ string) net.Conn {
			return &lateConn{Conn: conn, wait: func() {
				late[i].RLock()
				defer late[i].RUnlock()
			}}
		})
	})
	_, at := c.leader()
	asks := (at + 1) % 3
	left := c.decideOn(c.nodes[asks], quota("key", 1e6))[0].Remaining
	late[asks].Lock()
	release := sync.OnceFunc(late[asks].Unlock)
	t.Cleanup(release) // otherwise Close would wait for the held status
	for began := time.Now(); time.Since(began) < 2*raftstore.StatusTimeout; left-- {
		require.Equal(t, left-1, c.decideOn(c.nodes[asks], quota("key", 1e6))[0].Remaining)
	}
	release()
}

// swapped lets the second large call on a connection overtake the first, if the second arrives before the first is
// overdue.
type swapped struct {
	mu   sync.Mutex
	held []byte
}

// overdue is how long a call waits for another to overtake it.
const overdue = 50 * time.Millisecond

func (s *swapped) write(conn net.Conn, b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b) > 4<<10 && s.held == nil {
		s.held = bytes.Clone(b)
		time.AfterFunc(overdue, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.flush(conn)
		})
		return len(b), nil
	}
	n, err := conn.Write(b)
	s.flush(conn)
	return n, err
}

func (s *swapped) flush(conn net.Conn) {
	if s.held != nil {
		conn.Write(s.held)
		s.held = nil
	}
}

// TestAPipelineKeepsItsOrder checks that the parts of a pipeline are decided in the client's order, on whatever
// connections they reach the leader. A pipeline that fails may have counted in part, so each attempt has its own key.
func TestAPipelineKeepsItsOrder(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.Dialer = dialer(func(conn net.Conn,
			_ string) net.Conn {
			return &callConn{Conn: conn, write: new(swapped).write}
		})
	})
	_, at := c.leader()
	const parts = 4
	ops, attempts := make([]engine.Op, parts*1024), 0
	out := make([]engine.Decision, len(ops))
	require.Eventually(t, func() bool {
		attempts++
		for i := range ops {
			ops[i] = quota(fmt.Sprint("key", attempts), int64(len(ops)))
		}
		return c.nodes[(at+1)%3].Decide(ops, out) == nil
	}, patience, time.Millisecond)
	for i, d := range out {
		require.EqualValues(t, len(ops)-1-i, d.Remaining)
	}
}
