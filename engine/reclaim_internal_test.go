package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// TestReclaimingBesideManyIDs checks the work of making room for values in a table that is full of the IDs of one key.
// All IDs are in one shard, so reclaiming takes its memory from there. Most entries of the shard are small, and its
// large entries are of more worth. The bound is on the entries that walks over the index read for each value: 52 to 60
// with most seeds, and up to 220 with three of a thousand. A walk that is repeated for nothing makes it 600 or more.
func TestReclaimingBesideManyIDs(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const ids, values, perValue = 40_000, 12_000, 300
	table := NewTable(Options{MaxMemoryBytes: 16 << 20, HashSeed: HashSeed{1}})
	at, out := Stamp{NowNs: 1_800_000_000e9}, make([]Decision, 1)
	do := func(op Op) {
		at.NowNs += 5000
		table.Decide(at, []Op{op}, out)
		require.Equal(t, OK, out[0].Status)
	}
	for i := range ids {
		do(Op{Code: OpTake, Key: []byte("key"), ID: fmt.Append(nil, i), Cost: 1,
			Limit: Limit{Algorithm: FixedWindow, WindowNs: 3600e9, Max: 2 * ids}})
	}
	set := &Script{ID: TextSet}
	set.Values[0] = []byte(strings.Repeat("v", 4000))
	for i := range values {
		do(Op{Code: OpScript, Key: fmt.Append(nil, "value:", i), Cost: 1, Script: set})
	}
	visited := int64(0)
	for i := range table.shards {
		visited += table.shards[i].VisitedByShedding()
	}
	t.Logf("walks read %d entries, %d for each value", visited, visited/values)
	require.Positive(t, visited)
	require.Less(t, visited/values, int64(perValue))
}

// TestATableFullOfHoldsSearchesLittle fills a table with open holds, so that no entry may be evicted. Operations at the
// bound then read no entries in vain. When some holds are settled, a search of a bounded length finds their limiters,
// which make room for others.
func TestATableFullOfHoldsSearchesLittle(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const settled, takes, mostOnce, mostPerTake = 100, 3000, 4 * reclaimReads, 2500
	table := NewTable(Options{Shards: 1, MaxMemoryBytes: 4 << 20})
	at, out := Stamp{NowNs: 1_800_000_000e9}, make([]Decision, 1)
	do := func(op Op) Decision {
		at.NowNs += 5000
		table.Decide(at, []Op{op}, out)
		return out[0]
	}
	l := Limit{Algorithm: FixedWindow, Mode: Forever, Max: 100}
	do(Op{Code: OpPolicy, Key: []byte("p"), Policy: &PolicyChange{Terms: &Policy{Limits: []PolicyLimit{{Limit: l}}}}})
	reserve := func(i int) (id string, made bool) {
		id = fmt.Sprintf("hold-%09d", i)
		key := []byte("key-" + id)
		d := do(Op{Code: OpReserve, Text: []byte("p"), Key: key, ID: []byte(id), Cost: 80, TTLNs: 3600e9})
		if d.Allowed == 0 {
			require.Equal(t, OutOfMemory, d.Status)
		}
		return id, d.Allowed == 1
	}
	made, refused := []string{}, 0
	for refused < 500 {
		if id, ok := reserve(len(made) + refused); ok {
			made = append(made, id)
		} else {
			refused++
		}
	}
	take := func(i int) (admitted bool, inVain int64) {
		before := table.shards[0].SearchedInVain()
		d := do(Op{Code: OpTake, Key: fmt.Appendf(nil, "take-%024d", i), Cost: 1, Limit: l})
		return d.Allowed == 1, table.shards[0].SearchedInVain() - before
	}
	require.Greater(t, len(made), 5000)
	before := table.shards[0].SearchedInVain()
	for i := range 1000 {
		_, ok := reserve(len(made) + refused + i)
		require.False(t, ok)
	}
	require.Zero(t, table.shards[0].SearchedInVain()-before)
	for _, id := range made[:settled] {
		require.EqualValues(t, 1, do(Op{Code: OpCommit, Key: []byte(id), Cost: 80}).Allowed)
	}
	most, total, admissions := int64(0), int64(0), 0
	for i := range takes {
		admitted, inVain := take(i)
		total += inVain
		if most = max(most, inVain); admitted {
			admissions++
		}
	}
	t.Logf("%d takes admitted; read in vain: %d for each take, at most %d", admissions, total/takes, most)
	require.LessOrEqual(t, most, int64(mostOnce))
	require.LessOrEqual(t, total/takes, int64(mostPerTake))
	require.Greater(t, admissions, takes/2)
}
