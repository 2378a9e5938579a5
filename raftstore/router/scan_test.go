package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

// TestACursorMeansTheSameOnEveryNode continues a scan at another node at each call, while every node restarts once
// with another number of shards, leaders change and other keys come. The scan returns every key that is there all the
// time.
func TestACursorMeansTheSameOnEveryNode(t *testing.T) {
	const groups, keys, batch = 4, 100_000, 1000
	shards := 1
	c := newTier(t, 3, groups, func(o *raftstore.Options) {
		o.Table.Shards = shards
		shards *= 8
	})
	c.led(c.nodes[0])
	add := func(n int, name string, from, to int) {
		var some []engine.Op // without IDs: twice is as good as once here
		for i := from; i < to; i++ {
			some = append(some, quota(fmt.Sprint(name, i), 1_000_000))
		}
		c.taken(c.nodes[n], some)
	}
	for from := 0; from < keys; from += batch {
		add(0, "key:", from, from+batch)
	}
	seen, calls := map[string]bool{}, 0
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		n := c.nodes[calls%3]
		require.Eventually(t, func() bool { return n.ReadIndex() == nil }, patience, time.Millisecond)
		cursor = n.Scan(cursor, 100, func(key []byte, _ engine.Algorithm) { seen[string(key)] = true })
		require.Less(t, cursor, uint64(1)<<53)
		if calls++; calls%50 == 0 {
			add(calls%3, "other:", 10*calls, 10*calls+500)
		}
		if at := calls / 50; calls%50 == 0 && at <= 3 { // the scan is still in the first groups
			c.restartOtherwise(at%3, groups, at)
		}
	}
	missed := 0
	for i := range keys {
		if !seen[fmt.Sprint("key:", i)] {
			missed++
		}
	}
	require.Zero(t, missed)
	require.Greater(t, calls, 3*50)
	require.Empty(t, c.fatal)
}

// restartOtherwise restarts a node with another number of shards, from images of its groups or from its log, and waits
// until every node is led and up to date.
func (c *tier) restartOtherwise(i, groups, round int) {
	if round%2 == 1 {
		for g := range groups {
			require.NoError(c.t, c.nodes[i].Group(g).Snapshot())
		}
	}
	c.stop(i)
	c.led(c.nodes[(i+1)%3])
	c.opts[i].Table.Shards *= 4
	c.restart(i)
	for _, n := range c.nodes {
		c.led(n)
	}
}
