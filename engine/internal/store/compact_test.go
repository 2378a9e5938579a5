package store

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// filled is a store of buckets with a burst of ten units and a refill of one unit an hour.
type filled struct{ *Store }

func newFilled() filled {
	seed, s := maphash.MakeSeed(), new(Store)
	s.Reset(new(Memory), false, func(key []byte) uint64 { return maphash.Bytes(seed, key) << 1 }, func(Entry, bool) {})
	s.memory.Bound(0, LeastHarm, 1)
	s.NowNs = 1e18
	return filled{s}
}

var hourly = rule.Limit{Algorithm: rule.TokenBucket, Rate: rule.Rate{Units: 1, PerNs: 3600e9}, Max: 10}

// take takes units of a key and returns the units left.
func (f filled) take(key []byte, units int64) (left int64) {
	c := Cell{Hash: f.hashKey(key), Key: key}
	if f.Open(&c); !c.Live {
		f.Ensure(&c, uint8(rule.TokenBucket), BucketLen(&hourly))
		f.SetLimit(c.Entry, &hourly)
		c.Relink = true
	}
	deficit := DeficitAt(BucketOf(c.Entry), hourly.Rate, f.NowNs).Add(hourly.Rate.Grains(units))
	SetBucket(c.Entry, GoneAt(deficit, hourly.Rate, f.NowNs))
	f.Touched(&c)
	return hourly.Max - f.UsedUnits(c.Entry)
}

func (f filled) block(key []byte, forNs int64) {
	c := Cell{Hash: f.hashKey(key), Key: key, Space: Blocks}
	f.Open(&c)
	f.Ensure(&c, KindBlock, BlockLen)
	WriteBlocks(c.Entry.State(), Block{UntilNs: f.NowNs + forNs}, Block{})
	c.Relink = true
	f.Touched(&c)
}

func (f filled) has(key []byte) bool {
	c := Cell{Hash: f.hashKey(key), Key: key}
	f.Open(&c)
	return c.Live
}

// compacted returns a store of keys of one length, after every second key was deleted.
func compacted(t *testing.T, keys int) (f filled, take func(number int) int64) {
	f = newFilled()
	take = func(number int) int64 { return f.take(fmt.Appendf(nil, "%050d", number), 1) }
	for n := range keys {
		require.EqualValues(t, 9, take(n))
	}
	for n := 0; n < keys; n += 2 {
		key := fmt.Appendf(nil, "%050d", n)
		c := Cell{Hash: f.hashKey(key), Key: key}
		f.Open(&c)
		f.Drop(&c)
	}
	return f, take
}

// TestCompactionTakesNoPages checks a compaction whose free slots are taken after it selected pages. Entries for which
// no slot is left stay, and their pages are used for new entries again.
func TestCompactionTakesNoPages(t *testing.T) {
	const keys = 10_000
	s, take := compacted(t, keys)
	require.True(t, s.planCompaction(1))
	class := arena.ClassOf(EntryLen(50, ShortBucketLen))
	added := 0
	for ; s.Slab.HasFreeSlot(EntryLen(50, ShortBucketLen)); added++ {
		require.EqualValues(t, 9, take(2*added))
	}
	pages, free := s.Slab.PageCount(), s.Slab.FreeSlots(class)
	for s.compaction.running {
		s.compactSome()
	}
	require.Equal(t, pages, s.Slab.PageCount())
	require.Positive(t, free)
	for i := range free {
		require.EqualValues(t, 9, take(2*(added+i)))
	}
	require.Equal(t, pages, s.Slab.PageCount(), "free slots on the chosen pages must be used again")
	for n := 1; n < keys; n += 2 {
		require.EqualValues(t, 8, take(n), "key %d", n)
	}
}

// TestCompactionFreesWhatItPlans checks that one pass frees as many pages as the free slots would fill.
func TestCompactionFreesWhatItPlans(t *testing.T) {
	const keys = 10_000
	s, take := compacted(t, keys)
	planned := s.Slab.SurplusPages()
	require.True(t, s.planCompaction(planned))
	count := s.Slab.PagesOf(arena.ClassOf(EntryLen(50, ShortBucketLen)))
	for s.compaction.running {
		s.compactSome()
	}
	class := arena.ClassOf(EntryLen(50, ShortBucketLen))
	require.Equal(t, count-planned, s.Slab.PagesOf(class))
	require.Zero(t, s.Slab.SurplusPages())
	require.False(t, s.planCompaction(1), "no further page can be freed")
	for n := range keys {
		require.EqualValues(t, 9-n%2, take(n), "key %d", n)
	}
}

// TestSheddingTakesTheLeastWorthFirst checks which entries of a class are evicted first: those that become idle
// soonest. A block is never evicted.
func TestSheddingTakesTheLeastWorthFirst(t *testing.T) {
	const keys = 6_000
	s := newFilled()
	name := func(n int) []byte { return fmt.Appendf(nil, "%050d", n) }
	for n := range keys {
		if n%3 == 2 {
			s.block(name(n), 1)
		} else {
			s.take(name(n), 1+int64(n%3))
		}
	}
	for s.shedding.anything = true; s.Counts.Evicted < keys/30 && s.shedding.anything; {
		require.True(t, s.shedSome())
	}
	require.Positive(t, s.Counts.Evicted)
	require.EqualValues(t, keys/3, s.Counts.Entries[KindBlock])
	for n := 1; n < keys; n += 3 {
		require.True(t, s.has(name(n)), "key %d has used two units, so it must outlast keys with one", n)
	}
}

// TestSheddingSparesAClassOfWorth checks that no entry of a class is evicted if its entries are worth more than most
// others, and other classes have entries to evict.
func TestSheddingSparesAClassOfWorth(t *testing.T) {
	s := newFilled()
	take := func(number, length int, cost int64) { s.take(fmt.Appendf(nil, "%0*d", length, number), cost) }
	for n := range 10_000 {
		take(n, 50, 1)
	}
	for n := range 300 {
		take(n, 500, 9)
	}
	few := arena.ClassOf(EntryLen(500, ShortBucketLen))
	s.shedding.class, s.shedding.mostNs = few, s.usualWorth()
	for range 10 {
		if require.True(t, s.shedSome()); s.shedding.pinned[few] > 0 {
			break
		}
	}
	require.Positive(t, s.shedding.pinned[few])
	require.Zero(t, s.Counts.Evicted)
}
