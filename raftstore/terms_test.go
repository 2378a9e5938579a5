package raftstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// acrossAHandover calls a leader whose queue is paused, and makes another node the leader before a batch is in
// flight. The new leader decides the waiting calls. If the transfer fails, the old leader has decided them, and another
// attempt begins. waits is called while the call waits.
func acrossAHandover(t *testing.T, c *cluster, call func(leader *raftstore.Node) error, waits func()) error {
	for began := time.Now(); time.Since(began) < patience; {
		leader, at := c.leader()
		leader.HoldQueue()
		answer := make(chan error, 1)
		go func() { answer <- call(leader) }()
		require.Eventually(t, func() bool { return leader.Waiting() > 0 }, patience, time.Millisecond)
		waits()
		transfer := leader.TransferLeadership(c.opts[(at+1)%3].NodeID)
		if err := <-answer; transfer == nil {
			return err
		}
	}
	require.Fail(t, "no transfer of leadership succeeds")
	return nil
}

// TestAReadIsConfirmedHere checks that the answer of another leader to a call does not confirm this node's state. The
// error says that nothing was proposed.
func TestAReadIsConfirmedHere(t *testing.T) {
	c := newCluster(t, 3, nil)
	for range 3 {
		err := acrossAHandover(t, c, (*raftstore.Node).Confirm, func() {})
		require.Error(t, err)
		require.NotErrorIs(t, err, limiter.ErrUnknownOutcome)
	}
}

// threeQuotas returns operations on three keys. Engine.Denials may take one key in some thousands for another, which
// the leader then does not deny without the log.
func threeQuotas(name string) (ops []engine.Op) {
	for i := range 3 {
		ops = append(ops, quota(fmt.Sprint(name, ":", i), 1))
	}
	return ops
}

// TestAMixedAnswerIsOfOneLeader checks that no answer combines denials of this node with decisions of a later leader.
func TestAMixedAnswerIsOfOneLeader(t *testing.T) {
	c := newCluster(t, 3, nil)
	attempts := 0
	for i := range 3 {
		denied := threeQuotas(fmt.Sprint("denied", i))
		leader, _ := c.leader()
		for range 3 {
			c.decideOn(leader, denied...)
		}
		err := acrossAHandover(t, c, func(leader *raftstore.Node) error {
			attempts++
			fresh := fmt.Sprint("fresh", attempts)
			return leader.Decide(append(denied, quota(fresh, 1)), make([]engine.Decision, len(denied)+1))
		}, func() {})
		require.Error(t, err)
	}
}

// counter counts the log writes that contain a text.
type counter struct {
	text []byte
	n    atomic.Int64
}

func (c *counter) Write(b []byte) (int, error) {
	if bytes.Contains(b, c.text) {
		c.n.Add(1)
	}
	return len(b), nil
}

// TestALeaderThatCannotServeYetWaits checks that a leader which cannot serve yet pauses before each new attempt.
func TestALeaderThatCannotServeYetWaits(t *testing.T) {
	tries := &counter{text: []byte("cannot serve yet")}
	var deaf [3]atomic.Bool // by index: the node receives nothing
	var index sync.Map      // the number of each node, by its address
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.Logger = slog.New(slog.NewTextHandler(tries, nil))
		index.Store(o.RaftAddr, i)
		o.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if to, ok := index.Load(addr); ok && err == nil {
				conn = &deafConn{Conn: conn, deaf: deaf[to.(int)].Load}
			}
			return conn, err
		}
	})
	leader, at := c.leader()
	to := (at + 1) % 3
	deaf[to].Store(true)
	before := tries.n.Load()
	began := time.Now()
	for tries.n.Load() == before && time.Since(began) < patience { // a request may come before the transfer or after it
		leader.TransferBlindly(c.opts[to].NodeID, c.opts[to].RaftAddr)
		leader.BecomeLeader() // the library refuses every request until the transfer has failed
	}
	most := int64(time.Since(began)/raftstore.LeaderlessPause) + 1
	require.LessOrEqual(t, tries.n.Load()-before, most)
	require.NotEqual(t, before, tries.n.Load())
	deaf[to].Store(false)
}

// TestAClosingLeaderAnswersAll checks that a closing leader answers every forwarded batch, or says that it may be
// repeated. An election may delay the transfer.
func TestAClosingLeaderAnswersAll(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	answers := make(chan error)
	var forwarded atomic.Bool
	leader.HoldQueue()
	for i := range 2 {
		node := c.nodes[(at+1+i)%3]
		c.sees(node, 3, 3)
		go func() {
			for t.Context().Err() == nil {
				err := node.Decide([]engine.Op{quota("key", 10)}, make([]engine.Decision, 1))
				if err == nil || forwarded.Load() { // before, the call has not reached the leader
					answers <- err
					return
				}
			}
		}()
	}
	require.Eventually(t, func() bool { return leader.Forwarded() == 2 }, patience, time.Millisecond)
	forwarded.Store(true)
	time.Sleep(2 * raftstore.QuietFor) // as long as an election may take
	closed, began := make(chan error, 1), time.Now()
	go func() { closed <- leader.Close() }()
	for range 2 {
		err := <-answers
		if late := time.Since(began) > time.Second; late && errors.Is(err, limiter.ErrUnknownOutcome) {
			continue // a leader that cannot answer within a second closes its connections
		}
		if err != nil {
			require.ErrorIs(t, err, limiter.ErrTryAgain)
		}
	}
	require.NoError(t, <-closed)
}
