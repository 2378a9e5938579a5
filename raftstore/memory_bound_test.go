package raftstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

// lengthsFlood sends new keys whose lengths change from short to long and back.
type lengthsFlood struct {
	callers, calls, ops int // calls of each caller, and operations of each call
	refused             atomic.Int64
}

// lengths are the shortest and the longest key in each part of a flood.
var lengths = [][2]int{{10, 10}, {200, engine.MaxKeyLen}, {10, 250}, {450, engine.MaxKeyLen}, {10, engine.MaxKeyLen}}

// run makes concurrent callers ask the leader for one unit of each key.
func (f *lengthsFlood) run(c *cluster, leader *raftstore.Node) {
	var callers sync.WaitGroup
	for caller := range f.callers {
		callers.Go(func() {
			for call := range f.calls {
				f.count(c.decideOn(leader, f.call(caller, call)...))
			}
		})
	}
	callers.Wait()
}

func (f *lengthsFlood) call(caller, call int) []engine.Op {
	ops := make([]engine.Op, f.ops)
	part := lengths[call*len(lengths)/f.calls]
	for i := range ops {
		n := part[0] + (call*f.ops+i)*37%(part[1]-part[0]+1)
		key := fmt.Appendf(make([]byte, 0, n), "%x.%x", caller, call*f.ops+i)
		ops[i] = engine.Op{Key: append(key, make([]byte, max(n-len(key), 0))...), Cost: 1, Limit: engine.Limit{
			Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Hour)}, Max: 10,
		}}
	}
	return ops
}

func (f *lengthsFlood) count(out []engine.Decision) {
	for i := range out {
		if out[i].Status == engine.OutOfMemory {
			f.refused.Add(1)
		}
	}
}

// watchMemory records the highest memory use of each node until stop is called.
func (c *cluster) watchMemory() (stop func() (most []int64)) {
	end, most := make(chan struct{}), make([]int64, len(c.nodes))
	var watch sync.WaitGroup
	for i, n := range c.nodes {
		watch.Go(func() {
			for tick := time.NewTicker(time.Millisecond); ; {
				most[i] = max(most[i], n.Stats().MemoryBytes)
				select {
				case <-tick.C:
				case <-end:
					return
				}
			}
		})
	}
	return func() []int64 {
		close(end)
		watch.Wait()
		return most
	}
}

// TestKeysOfOtherLengthsFindRoom checks that a leader which may evict refuses no key for lack of memory, whatever the
// lengths of keys. Every node must stay within the bound.
func TestKeysOfOtherLengthsFindRoom(t *testing.T) {
	const bound = 8 << 20
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.Table.MaxMemoryBytes, o.Heartbeat = bound, 2*time.Second
	})
	leader, _ := c.leader()
	offender := quota("offender", 1_000_000)
	offender.Cost = 500_000
	c.decideOn(leader, offender)
	flood, stop := lengthsFlood{callers: 4, calls: 50, ops: 400}, c.watchMemory()
	flood.run(c, leader)
	c.agree()
	most := stop()
	stats := leader.Stats()
	t.Logf("%d refused, at most %d bytes, %d evicted", flood.refused.Load(), most, stats.Evicted)
	require.Zero(t, flood.refused.Load())
	for i := range most {
		require.LessOrEqual(t, most[i], int64(bound+bound/100), "node %d", i)
	}
	require.Greater(t, leader.Stats().MemoryBytes, int64(bound*3/4), "the leader must not evict more than necessary")
	require.EqualValues(t, 499_999, c.decideOn(leader, quota("offender", 1_000_000))[0].Remaining,
		"the offender must not be evicted")
}

// TestWhatIsNeverEvictedFillsMemory checks that a leader refuses keys only once blocks fill its memory and few
// other keys are left. It admits keys again after blocks are lifted.
func TestWhatIsNeverEvictedFillsMemory(t *testing.T) {
	const bound = 4 << 20
	c := newCluster(t, 1, func(_ int, o *raftstore.Options) { o.Table.MaxMemoryBytes = bound })
	leader, _ := c.leader()
	flood := lengthsFlood{callers: 1, calls: 20, ops: 400}
	flood.run(c, leader)
	require.Zero(t, flood.refused.Load())
	block := func(number int) engine.Op {
		key := fmt.Appendf(make([]byte, 0, 200), "block %d", number)
		return engine.Op{Code: engine.OpBlock, Key: append(key, make([]byte, 200-len(key))...), TTLNs: engine.Never}
	}
	n := 0
	for ops := make([]engine.Op, 100); flood.refused.Load() == 0; n += len(ops) {
		require.Less(t, n, bound/200, "blocks of more bytes than the bound must not fit")
		for i := range ops { // a call of this size takes less than a hundredth of the bound
			ops[i] = block(n + i)
		}
		flood.count(c.decideOn(leader, ops...))
	}
	stats := leader.Stats()
	require.LessOrEqual(t, stats.MemoryBytes, int64(bound+bound/100))
	// Chance leaves 60 to 260 of 8,000 keys, because store.evictReads bounds the search for a key to evict.
	require.Less(t, stats.KeysBy[engine.TokenBucket], int64(flood.calls*flood.ops/10),
		"the other keys must have been evicted first")
	require.Equal(t, engine.OutOfMemory, c.decideOn(leader, quota("new", 5))[0].Status)
	for i := range n {
		op := block(i)
		op.Code = engine.OpUnblock
		c.decideOn(leader, op)
		if c.decideOn(leader, quota("new", 5))[0].Status == engine.OK {
			return
		}
	}
	require.Fail(t, "the leader must admit keys after blocks were lifted")
}
