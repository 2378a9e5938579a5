package store

import (
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/allocations"
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Store holds the entries of one shard. The caller holds the lock of the shard.
type Store struct {
	// The fields that every decision reads come first, so that they share few cache lines.
	NowNs    int64 // the latest time seen; it never goes back
	OffsetNs int64
	Looking  bool // between BeginLook and EndLook
	Brief    bool // within a look: give no long list of ended allocations back
	Skipped  bool // the brief look did not, for a limiter that it opened
	OldRules bool // decide by rules older than engine.RulesDefinitions
	FewHolds bool // decide by rules older than engine.RulesManyHolds
	Index    Index
	Limits   limitTable
	changes  changeLog
	Counts   counts
	Slab     arena.Slab
	Wheel    wheel

	memory         *Memory
	hashKey        func(key []byte) uint64
	onBlock        func(e Entry, there bool) // called when a block everywhere begins or ends
	catchUp        func(c *Cell)             // brings a limiter to the definition in force; see engine
	lags           func() bool               // whether limiters may need it
	borrowed       []uint32                  // limits of copies made for a look
	evictSeed      uint64                    // the state of the random numbers of evict
	Used           arena.Meter               // read without the lock
	Exhausted      atomic.Bool               // the last reclaim step found no memory to free
	inVain         int64                     // see SearchedInVain
	compaction     compaction
	shedding       shedding
	resumeNs       int64 // NowNs before the look, restored at its end
	resumeOffsetNs int64
	ahead          bool         // see BeginAhead
	aheadLooking   bool         // Looking before BeginAhead, restored at its end
	aheadNs        int64        // NowNs before BeginAhead
	copies         []Entry      // copies made for a look that have blocks of their own
	listed         []allocation // the result of allocationsIn
	keepsAll       bool         // nothing may be evicted now
	allocationName [markLen + rule.MaxIDLen]byte
	lists          []*allocations.List   // by number, which is in the state of an entry of allocations; nil: unused
	bundles        int                   // entries that are bundles
	Moves          uint64                // how often limiters of a bundle moved; see createMember
	bundleName     [rule.MaxNameLen]byte // see locate
	memberName     [rule.MaxNameLen]byte // see eachMember and LoadBundle
	unfolded       [entryHead + rule.MaxNameLen + maxMemberState]byte
	heads          bundleHeads // see encodeBundle
	lastLimit      storedLimit // see readLimit
	fetched        uint64      // keeps prefetches from being optimized away
}

// counts are the counters of a store.
type counts struct {
	Entries                    [NumKinds]int64       // by kind
	Blocked                    int64                 // keys that have both a limiter and a block
	Elsewhere                  [rule.Databases]int64 // keys by database; none of database 0
	Expired, Evicted, Forgiven int64
}

// OnCatchUp sets the function that brings an opened limiter of a policy to the definition in force for its key, and one
// that reports whether there may be limiters that lag behind.
func (s *Store) OnCatchUp(catchUp func(c *Cell), lags func() bool) { s.catchUp, s.lags = catchUp, lags }

// Discarded is the memory of discarded stores. Memory.TakeBack takes it back at once, because the blocks beside those
// of one store belong to others.
type Discarded struct {
	pages    arena.Batch
	segments []*Segment
}

// Discard ends the use of all memory. Only Reset may follow.
func (s *Store) Discard(to *Discarded) {
	s.Used.Add(-s.Limits.Bytes() - s.ListBytes())
	s.Slab.Discard(&to.pages)
	to.segments = s.Index.discard(to.segments)
}

// Reset makes a new or discarded store empty. onBlock is called when a block everywhere begins or ends.
func (s *Store) Reset(
	m *Memory, trackChanges bool, hashKey func(key []byte) uint64, onBlock func(e Entry, there bool),
) {
	s.memory, s.hashKey, s.onBlock = m, hashKey, onBlock
	s.Used.CountIn(&m.used)
	s.Slab = arena.NewSlab(&m.pages, &s.Used)
	s.Index = newIndex(&m.segments, &s.Used)
	s.Limits = newLimitTable(&s.Used)
	s.compaction, s.shedding = compaction{}, shedding{}
	s.Wheel = newWheel()
	s.changes = changeLog{on: trackChanges}
	s.OnCatchUp(func(*Cell) {}, func() bool { return false })
	s.Counts, s.bundles, s.lists = counts{}, 0, nil
}

func (s *Store) hashOf(r arena.Ref) uint64 { return s.hashKey(Entry(s.Slab.At(r)).Key()) }

// hashesOf puts the hashes of entries into out. It first reads a part of each, so that the processor loads them side by
// side.
func (s *Store) hashesOf(refs []arena.Ref, out []uint64) {
	for _, r := range refs {
		s.fetched += s.Slab.Prefetch(r)
	}
	for i, r := range refs {
		out[i] = s.hashOf(r)
	}
}
