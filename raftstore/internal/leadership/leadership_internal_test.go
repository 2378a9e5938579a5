package leadership

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestATestClockGoesOnFromTheLastEntry checks that a move of the test clock starts from the last entry if that is
// ahead of the leader's own clock. The leader may not know the outcome of the entry.
func TestATestClockGoesOnFromTheLastEntry(t *testing.T) {
	m := fsm.New(engine.Options{Shards: 1}, 1)
	m.Source, m.Differs = persistence.SystemSource(), func(fsm.Difference) {}
	data := make([]byte, wire.HeaderLen)
	wire.Header{Kind: wire.Tick, Term: 1, At: atMs(7000)}.Put(data)
	require.Nil(t, m.Apply(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: data}))
	l := New(Config{FSM: m})
	behind := &Term{Clock: persistence.StartTestClock(atMs(4000))}
	ahead := &Term{Clock: persistence.StartTestClock(atMs(9000))}
	require.Equal(t, atMs(7500), l.StampOf(&queue.Batch{MoveNs: 500e6}, behind))
	require.Equal(t, atMs(9500), l.StampOf(&queue.Batch{MoveNs: 500e6}, ahead))
	require.Equal(t, atMs(4000), l.StampOf(&queue.Batch{}, behind),
		"a batch without a move must not advance the clock")
}

// atMs returns a time in limiter time.
func atMs(ms int64) engine.Stamp { return engine.Stamp{NowNs: 1e15 + ms*1e6} }
