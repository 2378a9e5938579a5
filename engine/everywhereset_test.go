package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestTheBytesOfBlocksAreCounted checks that the memory that a table counts is about the memory that its blocks
// everywhere take, and that lifted blocks give it back.
func TestTheBytesOfBlocksAreCounted(t *testing.T) {
	for _, version := range []int64{0, 1} { // of the shared items: blocks have none, or one each
		t.Run(fmt.Sprint(version), func(t *testing.T) { requireBytes(t, version) })
	}
}

func requireBytes(t *testing.T, version int64) {
	const n = 20_000
	at := engine.Stamp{NowNs: 1e18}
	key := func(i int) string { return fmt.Sprintf("ip:10.%d.%d.7", i/200, i%200) }
	blocked := func() *engine.Table {
		table := engine.NewTable(engine.Options{Shards: 4})
		table.Decide(at, []engine.Op{{Code: engine.OpFollow, Key: []byte("shared"), Partial: true, Cost: version}},
			make([]engine.Decision, 1))
		for i := range n {
			table.Decide(at, []engine.Op{everywhere(key(i), 60e9)}, make([]engine.Decision, 1))
		}
		return table
	}
	table := blocked()
	t.Logf("%d bytes a block", heldBytes(t, &table, 0.2)/n)
	table = blocked()
	all := table.Stats(at).MemoryBytes
	for i := range n {
		lift := engine.Op{Code: engine.OpUnblock, Key: []byte(key(i)), Cost: 1}
		table.Decide(at, []engine.Op{lift}, make([]engine.Decision, 1))
	}
	require.Less(t, table.Stats(at).MemoryBytes, all-150*n)
}

// TestVersionsMoveIntoEntries checks the versions of blocks that a table has by older rules, as items of its order: they
// load, and the first change by newer rules gives all blocks of the first group one version, and later changes theirs.
// Then the stored order does not grow with the blocks, and a restart keeps the versions.
func TestVersionsMoveIntoEntries(t *testing.T) {
	table, at := engine.NewTable(engine.Options{TrackChanges: true}), engine.Stamp{NowNs: 1e18}
	table.SetRules(engine.RulesManyBlocks - 1)
	decide := func(op engine.Op) {
		out := make([]engine.Decision, 1)
		table.Decide(at, []engine.Op{op}, out)
		require.Equal(t, engine.OK, out[0].Status)
	}
	versions := func() string {
		var all []string
		for b := range table.Shared(at).Blocks() {
			all = append(all, fmt.Sprint(b.Key, " ", b.Version))
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	restart := func() {
		hash := table.StateHash(at)
		rules := table.Rules()
		table = reloaded(t, table, at)
		table.SetRules(rules)
		require.Equal(t, hash, table.StateHash(at))
	}
	decide(engine.Op{Code: engine.OpFollow, Key: []byte("shared"), Partial: true, Cost: 5})
	decide(everywhere("a", 60e9))
	decide(everywhere("b", 60e9))
	require.Equal(t, "a 6, b 7", versions())
	restart()
	require.Equal(t, "a 6, b 7", versions())
	_, _, known := table.Shared(at).BlocksSince(7)
	require.False(t, known)

	table.SetRules(engine.RulesManyBlocks)
	require.Equal(t, "a 6, b 7", versions())
	decide(everywhere("c", 60e9))
	decide(everywhere("d", 60e9))
	require.Equal(t, "a 7, b 7, c 8, d 9", versions())
	decide(engine.Op{Code: engine.OpBlock, Key: []byte("c"), TTLNs: 1e9, High: true, Cost: 1, Text: []byte("its own")})
	decide(engine.Op{Code: engine.OpUnblock, Key: []byte("b"), Cost: 1})
	restart()
	require.Equal(t, "a 7, c 8, d 9", versions())
	decide(engine.Op{Code: engine.OpUnblock, Key: []byte("c"), High: true, Cost: 1})
	require.Equal(t, "a 7, c 8, d 9", versions())
	decide(engine.Op{Code: engine.OpUnblock, Key: []byte("d"), Cost: 1})
	changed, removed, known := table.Shared(at).BlocksSince(10)
	require.True(t, known)
	require.Empty(t, changed)
	require.Equal(t, []string{"d"}, removed)
	_, _, known = table.Shared(at).BlocksSince(9)
	require.False(t, known, "the removal of b was before the restart")
}

// TestTheOldBoundStays checks that the rules of older versions have their bound.
func TestTheOldBoundStays(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
	table.SetRules(engine.RulesManyBlocks - 1)
	ask := func(i int) engine.Decision {
		out := make([]engine.Decision, 1)
		table.Decide(at, []engine.Op{everywhere(fmt.Sprint("k", i), 60e9)}, out)
		return out[0]
	}
	for i := range 1000 {
		require.Equal(t, engine.OK, ask(i).Status)
	}
	full := ask(1000)
	require.Equal(t, engine.Decision{Status: engine.BlocksFull}, full, "as older versions answer")
	require.EqualValues(t, 1000, full.MostBlocks())
	require.EqualValues(t, 1000, table.BlocksEverywhere(at).Max)
	require.Equal(t, engine.OK, ask(7).Status)
	table.SetRules(engine.RulesManyBlocks)
	require.Equal(t, engine.OK, ask(1000).Status)
	require.EqualValues(t, engine.MaxBlocksEverywhere, table.BlocksEverywhere(at).Max)
}

// TestAReplacedBlockIsThere checks that readers without a lock see one of the two blocks while one replaces the other.
func TestAReplacedBlockIsThere(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
	block := everywhere("ip:10.0.0.0/8", 60e9)
	table.Decide(at, []engine.Op{block}, make([]engine.Decision, 1))
	var writer sync.WaitGroup
	var done atomic.Bool
	writer.Go(func() {
		defer done.Store(true)
		for i := range int64(20_000) {
			block.TTLNs = 60e9 + i%7
			table.Decide(at, []engine.Op{block}, make([]engine.Decision, 1))
		}
	})
	for !done.Load() {
		require.NotEmpty(t, table.FromBlock(at, []byte("ip:10.1.2.3")).By)
		require.True(t, table.BlocksEverywhere(at).Has(block.Key))
	}
	writer.Wait()
}

// TestAClearedGroupForgetsEndedBlocks checks that a group that follows the first one keeps its blocks everywhere when it
// is cleared, and frees all of their memory when they have ended.
func TestAClearedGroupForgetsEndedBlocks(t *testing.T) {
	table, at := engine.NewTable(engine.Options{Shards: 4}), engine.Stamp{NowNs: 1e18}
	empty := table.Stats(at).MemoryBytes
	ops := []engine.Op{{Code: engine.OpFollow, Key: []byte("shared"), Cost: 500}}
	for i := range int64(500) {
		op := everywhere(fmt.Sprint("ip:10.0.0.", i), 60e9)
		op.Cost = i + 1
		ops = append(ops, op)
	}
	table.DecideAtomic(at, ops, make([]engine.Decision, len(ops)))
	hash := table.StateHash(at)
	table.Clear()
	require.Equal(t, hash, table.StateHash(at))
	require.Len(t, table.BlocksEverywhere(at).Keys(), 500)
	at.NowNs += 61e9
	table.Collect(at, 1e6)
	require.Zero(t, table.Len(at))
	table.Clear() // frees the pages of the entries
	require.Equal(t, empty, table.Stats(at).MemoryBytes)
}

// TestOlderVersionsRefuseVersions checks the stored forms with versions. Older versions read both as numbers and refuse
// what follows: a key's blocks must begin with a varint or with eleven bytes 0xff, and an order ends with its items.
func TestOlderVersionsRefuseVersions(t *testing.T) {
	table, at := engine.NewTable(engine.Options{TrackChanges: true}), engine.Stamp{NowNs: 1e18}
	table.Decide(at, []engine.Op{{Code: engine.OpFollow, Key: []byte("shared"), Partial: true, Cost: 5},
		everywhere("a", 60e9)}, make([]engine.Decision, 2))
	stored := map[byte][]byte{}
	require.NoError(t, table.Drain(100, func(chunk []engine.Change) error {
		for _, c := range chunk {
			stored[c.Key[0]] = slices.Clone(c.Value)
		}
		return nil
	}))
	block, order := stored['b'], stored['o']
	_, n := binary.Varint(block[1:])
	require.Negative(t, n)
	require.False(t, bytes.HasPrefix(block[1:], bytes.Repeat([]byte{0xff}, 11)))
	for range 4 { // version steps follows items
		_, n := binary.Varint(order)
		require.Positive(t, n)
		order = order[n:]
	}
	require.NotEmpty(t, order)
}

// TestAnEndedBlockStaysUnknown checks that a group which is behind an ended block compares all blocks, also when the
// first group has since forgotten half of the removals that it knows.
func TestAnEndedBlockStaysUnknown(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
	decide := func(ops ...engine.Op) { table.Decide(at, ops, make([]engine.Decision, len(ops))) }
	lift := func(n int) {
		for range n {
			decide(everywhere("k", 60e9), engine.Op{Code: engine.OpUnblock, Key: []byte("k"), Cost: 1})
		}
	}
	decide(engine.Op{Code: engine.OpFollow, Key: []byte("shared"), Partial: true, Cost: 1})
	lift(2100)
	decide(everywhere("short", 1e9))
	version := table.SharedVersion()
	require.False(t, table.Shared(at).LostSince(version-1, "short"))
	at.NowNs += 3600e9
	require.True(t, table.Shared(at).LostSince(version-1, "short"))
	table.Collect(at, 1000)
	for range 2 {
		_, _, known := table.Shared(at).BlocksSince(version)
		require.True(t, known)
		_, _, known = table.Shared(at).BlocksSince(version - 1)
		require.False(t, known)
		require.True(t, table.Shared(at).LostSince(version-1, "short"))
		lift(2000)
	}
}
