package persistence

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func holdFor(id string, ttl time.Duration) engine.Op {
	return engine.Op{Code: engine.OpReserve, Text: []byte("p"), Key: []byte("k"), ID: []byte(id), Cost: 1,
		TTLNs: int64(ttl), Keep: true}
}

func recording() engine.Op {
	l := engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1 << 40}}
	return engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Do: engine.PolicySet,
		Terms: &engine.Policy{Record: true, Limits: []engine.PolicyLimit{l}}}}
}

// TestAServerAloneTellsEnds checks that a server that runs alone writes the event of a hold that ends by itself, while
// it runs and after a downtime that the end fell into, with a disk and without.
func TestAServerAloneTellsEnds(t *testing.T) {
	for _, dir := range []string{"", dataDir} {
		src := &fakeSource{wall: noon}
		o := nodeOptions(t, vfs.NewMem(), src)
		o.DataDir, o.FlushEvery = dir, time.Millisecond
		n := mustStart(t, o)
		await := func(last uint64) {
			require.Eventually(t, func() bool {
				_, at, _ := n.Events(0, 0, 0)
				return at.Last == last
			}, 20*time.Second, time.Millisecond)
		}
		decide(t, n, recording())
		decide(t, n, holdFor("a", time.Second))
		decide(t, n, holdFor("b", time.Hour))
		src.pass(2 * time.Second)
		await(1)
		if dir != "" {
			require.NoError(t, n.Close())
			src.step(2 * time.Hour)
			n = mustStart(t, o)
			await(2)
			list, _, _ := n.Events(0, 1, 10)
			require.Equal(t, "b", list[0].ID)
			require.Equal(t, engine.EventExpired, list[0].Kind)
		}
		require.NoError(t, n.Close())
	}
}

// TestManyEndsOfAServerAlone checks that a turn tells a bounded number of ends.
func TestManyEndsOfAServerAlone(t *testing.T) {
	src := &fakeSource{wall: noon}
	o := nodeOptions(t, vfs.NewMem(), src)
	o.DataDir = ""
	n := mustStart(t, o)
	decide(t, n, recording())
	const holds = endBatches*(engine.MaxEnds+64) + 1000
	for i := range holds {
		op := holdFor(fmt.Sprint(i), time.Second)
		op.Key = op.ID
		decide(t, n, op)
	}
	src.pass(2 * time.Second)
	n.table.Collect(n.clock.Now(), 1<<20)
	n.tellEnds()
	_, at, _ := n.Events(0, 0, 0)
	require.Less(t, at.Last, uint64(holds))
	require.GreaterOrEqual(t, at.Last, uint64(endBatches*engine.MaxEnds))
	n.tellEnds()
	_, at, _ = n.Events(0, 0, 0)
	require.EqualValues(t, holds, at.Last)
	require.NoError(t, n.Close())
}
