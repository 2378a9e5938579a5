package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestOldEntriesAreDecidedByOldRules checks that an entry is decided by the rules of the newest format that the log has
// at that entry. So nodes of different versions decide alike.
func TestOldEntriesAreDecidedByOldRules(t *testing.T) {
	m := newTestMachine(t)
	never := bucket
	never.Cost = bucket.Limit.Max + 1
	blocks := engine.Op{Code: engine.OpBlock, Key: bucket.Key, Cost: 1, TTLNs: 60e9}
	wait := func(format byte) int64 {
		_, out := m.entry(wire.Header{Term: 1, At: at(1), Format: format}, never)
		return out[0].RetryMs
	}
	m.entry(wire.Header{Term: 1, At: at(1)}, blocks)
	require.EqualValues(t, 60000, wait(wire.Oldest), "the block alone")
	require.EqualValues(t, 60000, wait(6))
	require.EqualValues(t, -1, wait(7))
	require.EqualValues(t, -1, wait(wire.Oldest), "every member reads the format of the log")
}
