package raftstore_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/raftstore"
)

// patience is how long a test waits for an expected event.
const patience = 20 * time.Second

// cluster is a set of nodes in this process, on loopback and real disks.
type cluster struct {
	t         *testing.T
	nodes     []*raftstore.Node
	opts      []raftstore.Options
	fatal     chan error
	heartbeat time.Duration // of its nodes; 0: quick
}

// busy is the heartbeat of nodes that have others. With a quick heartbeat, a leader sometimes loses its leadership on
// a loaded machine.
const busy = time.Second

// quick is the heartbeat of a node that is alone, and of nodes whose test waits for elections.
const quick = 200 * time.Millisecond

// newCluster starts n nodes that bootstrap a cluster; change may alter the options.
func newCluster(t *testing.T, n int, change func(i int, o *raftstore.Options)) *cluster {
	c := &cluster{t: t, fatal: make(chan error, 100)}
	if n > 1 {
		c.heartbeat = busy
	}
	var listeners []net.Listener
	join := freeport.Addrs(t, n) // which nobody else takes while a node is down
	for _, addr := range join {
		listeners = append(listeners, listenAt(t, addr))
	}
	for i := range n {
		o := c.options(i, join[i])
		o.Join, o.Expect, o.Listener = join, n, listeners[i]
		if change != nil {
			change(i, &o)
		}
		c.add(o)
	}
	t.Cleanup(c.close)
	return c
}

// options returns the options of a node. No answer is too old for its caller: a call that is repeated because its
// outcome is unknown may count twice.
func (c *cluster) options(i int, addr string) raftstore.Options {
	return raftstore.Options{
		NodeID: fmt.Sprint("n", i), DataDir: c.t.TempDir(), RaftAddr: addr, ClientAddr: fmt.Sprint("client", i),
		Heartbeat: cmp.Or(c.heartbeat, quick), MaxDecisionAge: patience, Logger: slog.New(slog.DiscardHandler),
		OnFatal: func(err error) { c.fatal <- err; runtime.Goexit() },
	}
}

func (c *cluster) add(o raftstore.Options) *raftstore.Node {
	node, err := raftstore.OpenAlone(o)
	require.NoError(c.t, err)
	c.nodes, c.opts = append(c.nodes, node), append(c.opts, o)
	return node
}

func (c *cluster) close() {
	for _, n := range c.nodes {
		if n != nil {
			n.Close()
		}
	}
}

// foundingTerm is the term of a new cluster before its first election.
const foundingTerm = 1

// leader waits until some node serves. It does not let a new cluster wait for a heartbeat before its first election.
func (c *cluster) leader() (leader *raftstore.Node, i int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for i = range c.nodes {
			if leader = c.nodes[i]; leader == nil {
				continue
			}
			if leader.Confirm() == nil {
				return true
			}
			if leader.Topology().Term <= foundingTerm {
				leader.Elect(c.t.Context(), "") // only the founder votes yet
			}
		}
		return false
	}, patience, 10*time.Millisecond, "no leader")
	return leader, i
}

// order calls do with the leader, and repeats it until it succeeds.
func (c *cluster) order(do func(leader *raftstore.Node) error) (leader *raftstore.Node, at int) {
	c.t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		leader, at = c.leader()
		if err = do(leader); err == nil {
			return leader, at
		}
	}
	require.NoError(c.t, err)
	return nil, 0
}

// remove removes a node. It accepts that the node is no member any more, because an attempt without an answer may have
// removed it.
func (c *cluster) remove(id string) (leader *raftstore.Node, at int) {
	c.t.Helper()
	return c.order(func(leader *raftstore.Node) error {
		if err := leader.RemoveNode(id); err != nil && !strings.Contains(err.Error(), "no node") {
			return err
		}
		return nil
	})
}

// moveTo transfers leadership to a node.
func (c *cluster) moveTo(i int) *raftstore.Node {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		leader, at := c.leader()
		return at == i || leader.TransferLeadership(c.opts[i].NodeID) == nil && c.nodes[i].Confirm() == nil
	}, patience, 10*time.Millisecond)
	return c.nodes[i]
}

func listenAt(t *testing.T, addr string) net.Listener {
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return l
}

// restart opens a closed node again on its disk.
func (c *cluster) restart(i int) {
	c.opts[i].Listener = listenAt(c.t, c.opts[i].RaftAddr)
	node, err := raftstore.OpenAlone(c.opts[i])
	require.NoError(c.t, err)
	c.nodes[i] = node
}

// stop closes a node.
func (c *cluster) stop(i int) {
	require.NoError(c.t, c.nodes[i].Close())
	c.nodes[i] = nil
}

// takes counts the calls of take. The count is the ID of the operation, so a repeated operation counts once.
var takes atomic.Int64

// take asks for one unit of a bucket until there is an answer. The bucket refills by one unit a day.
func (c *cluster) take(n *raftstore.Node, key string, burst int64) engine.Decision {
	c.t.Helper()
	ops := []engine.Op{{
		Key: []byte(key), Cost: 1, ID: fmt.Append(nil, takes.Add(1)),
		Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(24 * time.Hour)},
			Max: burst},
	}}
	out := make([]engine.Decision, 1)
	require.Eventually(c.t, func() bool { return n.Decide(ops, out) == nil }, patience, 10*time.Millisecond)
	return out[0]
}

// agree waits until all running nodes have applied the same entries, and compares their states. It takes the
// digests at the same time, because a leader may append entries faster than a slow machine digests three tables.
func (c *cluster) agree() {
	c.t.Helper()
	seen := map[uint64][]uint64{} // hashes by index
	require.Eventually(c.t, func() bool {
		clear(seen)
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, n := range c.nodes {
			if n != nil {
				all.Go(func() {
					index, hash := n.Digest()
					mu.Lock()
					defer mu.Unlock()
					seen[index] = append(seen[index], hash)
				})
			}
		}
		all.Wait()
		return len(seen) == 1
	}, patience, 10*time.Millisecond, "nodes do not catch up")
	for index, hashes := range seen {
		require.Len(c.t, slices.Compact(hashes), 1, "nodes differ at entry %d", index)
	}
}
