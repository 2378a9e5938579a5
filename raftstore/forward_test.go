package raftstore_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

// callConn is a connection that records whether it carries calls.
type callConn struct {
	net.Conn
	known bool
	calls bool
	begun func()                                     // called when the connection turns out to carry calls
	write func(conn net.Conn, b []byte) (int, error) // for calls
	read  func()                                     // called when an answer has arrived, but not during the greeting
}

func (c *callConn) Write(b []byte) (int, error) {
	if !c.known {
		c.known, c.calls = true, bytes.HasPrefix(b, []byte("weir-node\x01C"))
		if c.calls && c.begun != nil {
			c.begun()
		}
	}
	if c.calls && c.write != nil {
		return c.write(c.Conn, b)
	}
	return c.Conn.Write(b)
}

// greetingBytes is larger than one read of a greeting and smaller than a read of an answer. A read of the greeting
// must not block, because it would ignore the deadline of the handshake.
const greetingBytes = 1 << 10

func (c *callConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.calls && c.read != nil && len(b) > greetingBytes {
		c.read()
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

// TestALateStatusEndsNoDecision checks that a follower's decision survives a timeout of the leader's status. The
// follower then asks for the status on another connection.
func TestALateStatusEndsNoDecision(t *testing.T) {
	var (
		begun sync.Map        // the number of connections for calls, by opener and address
		late  [3]sync.RWMutex // the answers to a node wait while the lock with its index is held for writing
	)
	opened := func(by int, to string) *atomic.Int64 {
		n, _ := begun.LoadOrStore([2]any{by, to}, new(atomic.Int64))
		return n.(*atomic.Int64)
	}
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.MaxDecisionAge = patience
		o.Dialer = dialer(func(conn net.Conn, to string) net.Conn {
			return &callConn{Conn: conn, begun: func() { opened(i, to).Add(1) }, read: func() {
				late[i].RLock()
				defer late[i].RUnlock()
			}}
		})
	})
	_, at := c.leader()
	asks := (at + 1) % 3
	c.decideOn(c.nodes[asks], quota("key", 5))
	toLeader := opened(asks, c.opts[at].RaftAddr)
	before := toLeader.Load()
	late[asks].Lock()
	release := sync.OnceFunc(late[asks].Unlock)
	t.Cleanup(release) // otherwise Close would wait for the held status
	answer := make(chan error, 1)
	go func() { answer <- c.nodes[asks].Decide([]engine.Op{quota("key", 5)}, make([]engine.Decision, 1)) }()
	require.Eventually(t, func() bool { return toLeader.Load() > before }, patience, time.Millisecond)
	release()
	require.NoError(t, <-answer)
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
// connections they reach the leader.
func TestAPipelineKeepsItsOrder(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.Dialer = dialer(func(conn net.Conn,
			_ string) net.Conn {
			return &callConn{Conn: conn, write: new(swapped).write}
		})
	})
	_, at := c.leader()
	const parts = 4
	ops := make([]engine.Op, parts*1024)
	for i := range ops {
		ops[i] = quota("key", int64(len(ops)))
	}
	for i, d := range c.decideOn(c.nodes[(at+1)%3], ops...) {
		require.EqualValues(t, len(ops)-1-i, d.Remaining)
	}
}
