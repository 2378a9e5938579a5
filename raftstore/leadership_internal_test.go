package raftstore

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

// TestATestClockGoesOnFromTheLastEntry: the end of an entry that moved it may be unknown to the
// leader, whose own clock then stays where it was.
func TestATestClockGoesOnFromTheLastEntry(t *testing.T) {
	m := fsm.New(engine.Options{Shards: 1})
	m.Source, m.Differs = persistence.SystemSource(), func(fsm.Difference) {}
	data := make([]byte, wire.HeaderLen)
	wire.Header{Kind: wire.Tick, Term: 1, At: at(7000)}.Put(data)
	require.Nil(t, m.Apply(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: data}))
	l := &leadership{host: &host{}, machine: m}
	behind := &leaderTerm{clock: persistence.StartTestClock(at(4000))}
	ahead := &leaderTerm{clock: persistence.StartTestClock(at(9000))}
	require.Equal(t, at(7500), l.stampOf(&queue.Batch{MoveNs: 500e6}, behind))
	require.Equal(t, at(9500), l.stampOf(&queue.Batch{MoveNs: 500e6}, ahead))
	require.Equal(t, at(4000), l.stampOf(&queue.Batch{}, behind), "it moves nothing")
}
