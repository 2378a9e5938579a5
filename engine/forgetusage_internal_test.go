package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForgettingIsNotForTheChange checks that a policy change with a reset scans no shard. A shard postpones several
// resets, up to a bound, before it is scanned.
func TestForgettingIsNotForTheChange(t *testing.T) {
	table, at := NewTable(Options{Shards: 4}), Stamp{NowNs: 1e18}
	decide := func(ops ...Op) { table.DecideAtomic(at, ops, make([]Decision, len(ops))) }
	quota := &Policy{Limits: []PolicyLimit{{Limit: Limit{Algorithm: FixedWindow, Mode: Forever, Max: 10}}}}
	reset := Op{Code: OpPolicy, Key: []byte("p"), Policy: &PolicyChange{Terms: quota, Reset: true}}
	decide(reset)
	for i := range 100 {
		decide(Op{Code: OpCheck, Text: []byte("p"), Key: fmt.Append(nil, i), Cost: 1})
	}
	for i := range 3 * maxForgotten {
		decide(reset)
		for k := range table.shards {
			s := &table.shards[k]
			require.Len(t, s.forgotten, (i+1)%maxForgotten)
			require.Equal(t, i+1 < maxForgotten, s.Counts.Entries[FixedWindow] > 0)
		}
	}
}
