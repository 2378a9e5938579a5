package router_test

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

// TestLoadCost prints what an entry costs under load, for each number of groups in WEIRTEST_LOAD_GROUPS. Three nodes
// run in this process, and four callers for each group wait for one decision after the other:
//
//	WEIRTEST_LOAD_GROUPS=1,4,16 go test ./raftstore/router -run TestLoadCost -v
func TestLoadCost(t *testing.T) {
	sizes := os.Getenv("WEIRTEST_LOAD_GROUPS")
	if sizes == "" {
		t.Skip("set WEIRTEST_LOAD_GROUPS to numbers of groups, such as 4,16")
	}
	const turns = 2
	for _, s := range strings.Split(sizes, ",") {
		groups, err := strconv.Atoi(s)
		require.NoError(t, err)
		for range turns {
			t.Run(s+" groups", func(t *testing.T) { loadCost(t, groups) })
		}
	}
}

func loadCost(t *testing.T, groups int) {
	const size, callers, window = 3, 4, 6 * time.Second
	c := newTier(t, size, groups, func(o *raftstore.Options) { o.Heartbeat = 2 * time.Second })
	for _, n := range c.nodes {
		c.led(n)
	}
	applied := func() (entries uint64) {
		for g := range groups {
			entries += c.nodes[0].Group(g).Topology().AppliedIndex
		}
		return entries
	}
	syncs := func() (all uint64) {
		for _, n := range c.nodes {
			all += n.Syncs()
		}
		return all
	}
	var running sync.WaitGroup
	var decided atomic.Int64
	var stop atomic.Bool
	entries, synced, cpu := applied(), syncs(), cpuTime(t)
	for i := range callers * groups {
		n, key := c.nodes[i%size], keyIn(i%groups, groups)
		running.Go(func() {
			out := make([]engine.Decision, 1)
			for !stop.Load() {
				if err := n.Decide([]engine.Op{quota(key, 1<<40)}, out); err == nil && out[0].Status == engine.OK {
					decided.Add(1)
				}
			}
		})
	}
	time.Sleep(window)
	stop.Store(true)
	running.Wait()
	made := float64(applied() - entries)
	t.Logf("%.0f decisions/s, %.0f entries/s, %.2f fsyncs an entry, %.0f us of CPU an entry",
		float64(decided.Load())/window.Seconds(), made/window.Seconds(), float64(syncs()-synced)/made,
		float64((cpuTime(t)-cpu).Microseconds())/made)
	require.Empty(t, c.fatal)
}
