package router_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore"
)

// cuts are the directions between nodes in which a network loses everything.
type cuts struct {
	mu   sync.Mutex
	lost map[[2]string]bool // by the inter-node addresses of sender and receiver
}

func (c *cuts) set(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[[2]string{from, to}] = true
}

func (c *cuts) has(from, to string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost[[2]string{from, to}]
}

// cutConn is the dialer's side of a connection. What it loses is lost for good.
type cutConn struct {
	net.Conn
	cuts     *cuts
	from, to string
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.cuts.has(c.from, c.to) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.cuts.has(c.to, c.from) {
			return n, err
		}
	}
}

// The log lines of an election after a silence, and of a move of leadership for another reason.
const (
	standsLine = "this node stands for election"
	movesLine  = "leadership of a group moves"
)

// cutHeartbeat is long, so that no node of a busy machine goes without a turn for as long. Its leaders would rightly be
// replaced.
const cutHeartbeat = 1500 * time.Millisecond

// newCutTier returns a tier whose network can be cut, a node that leads some group, and the logs of all nodes.
func newCutTier(t *testing.T, mistakes faults.Set) (c *tier, network *cuts, leader int, log *logtest.Buffer) {
	network, log = &cuts{lost: map[[2]string]bool{}}, &logtest.Buffer{}
	c = newTier(t, 3, 4, func(o *raftstore.Options) {
		o.Logger, o.Faults = slog.New(slog.NewTextHandler(log, nil)), mistakes
		o.Heartbeat = cutHeartbeat
		from := o.RaftAddr
		o.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return &cutConn{conn, network, from, addr}, nil
		}
	})
	for _, n := range c.nodes {
		c.led(n)
	}
	for i, n := range c.nodes {
		if n.Topology().Led() > 0 {
			leader = i
		}
	}
	time.Sleep(2 * c.opts[0].Heartbeat) // every host hears every other
	return c, network, leader, log
}

// cut cuts both directions between two nodes.
func (c *tier) cut(network *cuts, a, b int) {
	network.set(c.opts[a].RaftAddr, c.opts[b].RaftAddr)
	network.set(c.opts[b].RaftAddr, c.opts[a].RaftAddr)
}

// TestASilentNodeLosesItsGroups checks that the other nodes agree about a node that is cut off, and elect leaders for
// its groups.
func TestASilentNodeLosesItsGroups(t *testing.T) {
	c, network, leader, log := newCutTier(t, faults.Set{})
	led := c.nodes[leader].Topology().Led()
	others := []int{(leader + 1) % 3, (leader + 2) % 3}
	for _, other := range others {
		c.cut(network, leader, other)
	}
	for _, other := range others {
		require.Eventually(t, func() bool {
			top := c.nodes[other].Topology()
			for _, g := range top.Groups {
				if m := top.Member(g.Leader); m == nil || m.RaftAddr == c.opts[leader].RaftAddr {
					return false
				}
			}
			return true
		}, patience, time.Millisecond)
		require.Eventually(t, func() bool { return c.nodes[other].Consensus().SilentNodes == 1 }, patience,
			time.Millisecond)
	}
	t.Logf("%d groups, %d elections after the silence", led, log.Count(standsLine))
	require.Zero(t, c.nodes[leader].Consensus().SilentNodes)
}

// TestACutLinkDeposesNoLeader checks that a leader stays when only one other node does not hear it.
func TestACutLinkDeposesNoLeader(t *testing.T) {
	c, network, leader, log := newCutTier(t, faults.Set{})
	before := *c.nodes[leader].Topology()
	other := (leader + 1) % 3
	c.cut(network, leader, other)
	require.Eventually(t, func() bool { return c.nodes[other].Consensus().SilentHere > 0 }, patience, time.Millisecond)
	require.Zero(t, log.Count(standsLine))
	after := c.nodes[leader].Topology()
	for i, g := range before.Groups {
		if g.Leader == before.Self && log.Count(movesLine) == 0 {
			require.Equal(t, g.Leader, after.Groups[i].Leader)
			require.Equal(t, g.Term, after.Groups[i].Term)
		}
	}
}
