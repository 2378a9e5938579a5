package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// TestMemoryOfSteps checks the accounted size of strike limits with the most steps and a new limit for each key. The
// size must return to zero when they are gone.
func TestMemoryOfSteps(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const keys = 30_000
	at := engine.Stamp{NowNs: 1e18}
	filled := func() (table *engine.Table, empty int64) {
		table = engine.NewTable(engine.Options{Shards: 4})
		empty = table.MemoryBytes()
		for n := range keys {
			steps := make([]engine.Step, engine.MaxSteps)
			for i := range steps {
				steps[i] = engine.Step{Threshold: int64(n + i + 2), PenaltyNs: 1e9}
			}
			l := windowOf(engine.Strike, 60e9, int64(n+engine.MaxSteps+1))
			l.Steps = engine.MakeSteps(steps)
			decideOne(table, step{at, engine.Op{Key: keyOf(n), Limit: l, Cost: 1}})
		}
		return table, empty
	}
	table, empty := filled()
	t.Logf("%d bytes a key", heldBytes(t, &table, 0.2)/keys)
	table, _ = filled()
	table.Clear()
	require.Equal(t, empty, table.MemoryBytes())
}
