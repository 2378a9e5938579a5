package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
)

// compacted is a shard of keys of one length, of which every other was deleted.
func compacted(t *testing.T, keys int) (s *shard, take func(number int) Decision) {
	table := NewTable(Options{Shards: 1})
	decide := func(op Op) Decision {
		out := make([]Decision, 1)
		table.Decide(Stamp{NowNs: 1e18}, []Op{op}, out)
		return out[0]
	}
	limit := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: 3600e9}, Max: 10}
	take = func(number int) Decision {
		return decide(Op{Key: fmt.Appendf(nil, "%050d", number), Limit: limit, Cost: 1})
	}
	for n := range keys {
		require.EqualValues(t, 9, take(n).Remaining)
	}
	for n := 0; n < keys; n += 2 {
		decide(Op{Code: OpReset, Key: fmt.Appendf(nil, "%050d", n)})
	}
	return &table.shards[0], take
}

// TestCompactionTakesNoPages: slots that were free when pages were chosen may be taken when
// their turn comes. What cannot be moved stays, and its pages serve their class again.
func TestCompactionTakesNoPages(t *testing.T) {
	const keys = 10_000
	s, take := compacted(t, keys)
	require.True(t, s.planCompaction(1))
	class := arena.ClassOf(entryLen(50, shortBucketLen))
	added := 0
	for ; s.slab.HasFreeSlot(entryLen(50, shortBucketLen)); added++ {
		require.EqualValues(t, 9, take(2*added).Remaining)
	}
	pages, free := s.slab.Bytes(), s.slab.FreeSlots(class)
	for s.compaction.running {
		s.compactSome()
	}
	require.Equal(t, pages, s.slab.Bytes())
	require.Positive(t, free)
	for i := range free {
		require.EqualValues(t, 9, take(2*(added+i)).Remaining)
	}
	require.Equal(t, pages, s.slab.Bytes(), "free slots of pages that were to be emptied are taken again")
	for n := 1; n < keys; n += 2 {
		require.EqualValues(t, 8, take(n).Remaining, "key %d", n)
	}
}

// TestCompactionFreesWhatItPlans: a walk frees as many pages as the free slots make.
func TestCompactionFreesWhatItPlans(t *testing.T) {
	const keys = 10_000
	s, take := compacted(t, keys)
	planned := s.slab.SurplusPages()
	require.True(t, s.planCompaction(planned))
	count := s.slab.PagesOf(arena.ClassOf(entryLen(50, shortBucketLen)))
	for s.compaction.running {
		s.compactSome()
	}
	class := arena.ClassOf(entryLen(50, shortBucketLen))
	require.Equal(t, count-planned, s.slab.PagesOf(class))
	require.Zero(t, s.slab.SurplusPages())
	require.False(t, s.planCompaction(1), "there is nothing left to give")
	for n := range keys {
		require.EqualValues(t, 9-n%2, take(n).Remaining, "key %d", n)
	}
}

// TestFewerShardsForLittleMemory: a shard has some pages for slots of every length.
func TestFewerShardsForLittleMemory(t *testing.T) {
	for _, c := range []struct {
		o      Options
		shards int
	}{
		{Options{Shards: 64}, 64},
		{Options{Shards: 64, MaxMemoryBytes: 64 << 20}, 64},
		{Options{Shards: 64, MaxMemoryBytes: 64<<20 - 1}, 32},
		{Options{Shards: 64, MaxMemoryBytes: 1}, 1},
		{Options{Shards: 64, MaxMemoryBytes: 64 << 20, WhenFull: Replica}, 16},
		{Options{Shards: 64, MaxMemoryBytes: 256 << 20, WhenFull: Replica}, 64},
	} {
		require.Equal(t, c.shards, len(NewTable(c.o).shards), "%+v", c.o)
	}
}

// TestSheddingTakesTheLeastWorthFirst: where all of a class may go, what is soonest idle goes
// first, and a block never.
func TestSheddingTakesTheLeastWorthFirst(t *testing.T) {
	const keys = 6_000
	table, at := NewTable(Options{Shards: 1}), Stamp{NowNs: 1e18}
	limit := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: 3600e9}, Max: 10}
	name := func(n int) []byte { return fmt.Appendf(nil, "%050d", n) }
	for n := range keys {
		op := Op{Key: name(n), Limit: limit, Cost: 1 + int64(n%3)}
		if n%3 == 2 {
			op = Op{Code: OpBlock, Key: name(n), TTLNs: 1}
		}
		table.Decide(at, []Op{op}, make([]Decision, 1))
	}
	s := &table.shards[0]
	for s.shedding.anything = true; s.counts.evicted < keys/30 && s.shedding.anything; {
		require.True(t, s.shedSome())
	}
	require.Positive(t, s.counts.evicted)
	require.EqualValues(t, keys/3, s.counts.entries[kindBlock])
	for n := 1; n < keys; n += 3 {
		require.True(t, table.Has(at, name(n)), "key %d has used two units, others one", n)
	}
}

// TestSheddingSparesAClassOfWorth: a class whose entries are all worth more than most entries is
// left alone, as long as others have something to evict.
func TestSheddingSparesAClassOfWorth(t *testing.T) {
	table, at := NewTable(Options{Shards: 1}), Stamp{NowNs: 1e18}
	limit := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: 3600e9}, Max: 10}
	take := func(number, length int, cost int64) {
		op := Op{Key: fmt.Appendf(nil, "%0*d", length, number), Limit: limit, Cost: cost}
		table.Decide(at, []Op{op}, make([]Decision, 1))
	}
	for n := range 10_000 {
		take(n, 50, 1)
	}
	for n := range 300 {
		take(n, 500, 9)
	}
	s := &table.shards[0]
	many, few := arena.ClassOf(entryLen(50, shortBucketLen)), arena.ClassOf(entryLen(500, shortBucketLen))
	s.shedding.pinned[many] = true // so that the other class is chosen
	for range 10 {
		if require.True(t, s.shedSome()); s.shedding.pinned[few] {
			break
		}
	}
	require.True(t, s.shedding.pinned[few])
	require.Zero(t, s.counts.evicted)
}
