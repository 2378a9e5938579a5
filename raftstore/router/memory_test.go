package router_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
)

// flood makes two clients at different nodes send new keys of each of some groups.
func (c *tier) flood(groups, keys int, which ...int) {
	const clients, together, length = 2, 250, 400
	var callers sync.WaitGroup
	for i := range clients * len(which) {
		group := which[i/clients]
		callers.Go(func() {
			ops, out := make([]engine.Op, together), make([]engine.Decision, together)
			for sent := 0; sent < keys/clients; sent += together {
				for k := range ops {
					key := fmt.Sprintf("%s %d %d %0*d", keyIn(group, groups), i, len(which), length, sent+k)
					ops[k] = engine.Op{Key: []byte(key), Cost: 1, Limit: engine.Limit{
						Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Hour)}, Max: 10,
					}}
				}
				_ = c.nodes[i%len(c.nodes)].Decide(ops, out) // an error of an election only makes the flood smaller
			}
		})
	}
	callers.Wait()
}

// watchMemory records the most memory that all groups of a node take together, until stop is called.
func (c *tier) watchMemory(groups int) (stop func() (most []int64)) {
	end, most := make(chan struct{}), make([]int64, len(c.nodes))
	var watch sync.WaitGroup
	for i, n := range c.nodes {
		watch.Go(func() {
			for tick := time.NewTicker(time.Millisecond); ; {
				most[i] = max(most[i], memoryOf(n, groups))
				select {
				case <-tick.C:
				case <-end:
					return
				}
			}
		})
	}
	return sync.OnceValue(func() []int64 {
		close(end)
		watch.Wait()
		return most
	})
}

func memoryOf(n *router.Node, groups int) (bytes int64) {
	for g := range groups {
		bytes += n.Group(g).Stats().MemoryBytes
	}
	return bytes
}

// TestEachGroupHasItsShareOfMemory checks that a flood of one group evicts no key of another group, on any node, and
// that floods of all groups leave every node within its bound.
func TestEachGroupHasItsShareOfMemory(t *testing.T) {
	const groups, share, keys = 2, 4 << 20, 20_000
	const bound = groups * share
	c := newTier(t, 3, groups, func(o *raftstore.Options) {
		o.Heartbeat, o.Durability, o.Table.MaxMemoryBytes = 2*time.Second, raftstore.Memory, bound
	})
	for _, n := range c.nodes {
		c.led(n)
	}
	stop := c.watchMemory(groups)
	defer stop()
	evicted := func(group int) (all int64) {
		for _, n := range c.nodes {
			all += n.Group(group).Stats().Evicted
		}
		return all
	}
	c.flood(groups, keys/4, 1)
	require.Zero(t, evicted(1), "the group is within its share")
	c.flood(groups, keys, 0)
	require.NotZero(t, evicted(0), "the flood exceeds the share of its group")
	require.Zero(t, evicted(1), "a group must keep its share whatever other groups take")
	c.flood(groups, keys, 0, 1)
	for _, n := range c.nodes {
		require.Greater(t, memoryOf(n, groups), int64(bound/2), "the leaders must not evict more than necessary")
	}
	most := stop()
	t.Logf("at most %d bytes of %d", most, int64(bound))
	for i := range most {
		require.LessOrEqual(t, most[i], int64(bound+bound/100), "node %d", i)
	}
	require.Empty(t, c.fatal)
}
