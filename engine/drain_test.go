package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/internal/race"
)

// TestDrainIsBoundedInBytes checks that a chunk of large logs is no longer than its bound plus one log, whatever
// number of entries it may have.
func TestDrainIsBoundedInBytes(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const keys, units = 10, 100_000
	table := NewTable(Options{Shards: 1, TrackChanges: true})
	out := make([]Decision, 1)
	for k := range keys {
		limit := Limit{Algorithm: SlidingLog, WindowNs: MaxWindowNs, Max: units}
		for n := range int64(units) {
			op := Op{Key: []byte{byte(k)}, Limit: limit, Cost: 1}
			table.Decide(Stamp{NowNs: 1e18 + (int64(k*units)+n)*3e9}, []Op{op}, out)
		}
	}
	chunks, longest, largest := 0, 0, 0
	require.NoError(t, table.Drain(1<<20, func(changes []Change) error {
		bytes := 0
		for _, c := range changes {
			bytes += len(c.Value)
			largest = max(largest, len(c.Value))
		}
		chunks, longest = chunks+1, max(longest, bytes)
		return nil
	}))
	require.Greater(t, chunks, 1)
	require.LessOrEqual(t, longest, store.DrainBytes+largest)
}
