package engine

import (
	"container/heap"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/trie"
	"github.com/weir-project/weir/engine/network"
)

// The set of blocks everywhere. A change makes a new set that shares almost all of the old one, so its cost does not
// grow with the blocks. The number in force at a stamp depends on the log and the stamp alone: tables collect ended
// blocks at different times, so those that are still there are counted, and subtracted.

// blocksEverywhere is an immutable set of blocks everywhere. It is never empty: a table without blocks everywhere has
// no set.
type blocksEverywhere struct {
	names    trie.Trie[*blockEverywhere] // by the hashes of their names
	networks trie.Trie[*blockEverywhere] // those of networks, by the hashes of these
	versions trie.Trie[*blockEverywhere] // those with a version, in the order of the versions: see byVersion
	lens     *lengthSet                  // of the key suffixes that they apply to
	lengths  [2]uint64                   // of these networks, as bits: of IPv6 and of IPv4
}

// lengthSet is a set of lengths of keys, as bits.
type lengthSet [MaxKeyLen/64 + 1]uint64

func (l *lengthSet) has(n int) bool { return n <= MaxKeyLen && l[n/64]>>(n%64)&1 != 0 }

// everywhereIndex is the set of blocks everywhere of a table, and what its changes need.
type everywhereIndex struct {
	atomic.Pointer[blocksEverywhere] // nil: no block everywhere

	mu       sync.Mutex // guards the other fields and changes of the set; locked after a shard
	used     arena.Meter
	suffixes [MaxKeyLen + 1]int32 // how many blocks apply to a suffix of each length
	prefixes [2][64]int32         // how many blocks are of a network of each length
	count    blockCount
	slots    hashslot.Range // of the group, for blockCount.foreign; changed when another one is asked for
	ends     byEnd          // those that have an end
}

// blockCount counts blocks everywhere.
type blockCount struct{ all, members, foreign int64 }

func (x *everywhereIndex) add(c *blockCount, b *blockEverywhere, n int64) {
	c.all += n
	c.members += n * arith.OneIf(b.member)
	c.foreign += n * arith.OneIf(!x.slots.Has(b.slot))
}

// byEnd is a heap of blocks.
type byEnd []*blockEverywhere

func (h *byEnd) Len() int           { return len(*h) }
func (h *byEnd) Less(i, j int) bool { return (*h)[i].untilNs < (*h)[j].untilNs }
func (h *byEnd) Swap(i, j int) {
	a := *h
	a[i], a[j] = a[j], a[i]
	a[i].at, a[j].at = i, j
}

func (h *byEnd) Push(x any) {
	b := x.(*blockEverywhere)
	b.at = len(*h)
	*h = append(*h, b)
}

func (h *byEnd) Pop() any {
	a := *h
	n := len(a) - 1
	b := a[n]
	a[n], *h = nil, a[:n]
	return b
}

// eachEnded visits the blocks that have ended. i is the root of the part of the heap to look at.
func (h byEnd) eachEnded(i int, nowNs int64, visit func(b *blockEverywhere)) {
	if i >= len(h) || h[i].untilNs > nowNs {
		return
	}
	visit(h[i])
	h.eachEnded(2*i+1, nowNs, visit)
	h.eachEnded(2*i+2, nowNs, visit)
}

// inForce counts the blocks in force. The caller holds mu.
func (x *everywhereIndex) inForce(nowNs int64) blockCount {
	c := x.count
	x.ends.eachEnded(0, nowNs, func(b *blockEverywhere) { x.add(&c, b, -1) })
	return c
}

// blockBytes is about what the set needs for a block, without its texts, and versionBytes what it needs in addition for
// a block with a version.
const (
	blockBytes   = 150
	versionBytes = 60
)

// versionShift is how many bits of a hash in blocksEverywhere.versions tell blocks of one version apart.
const versionShift = 20

// byVersion returns the lowest hash of the blocks of a version.
func byVersion(version uint64) uint64 { return version << versionShift }

// replace replaces a block in the set by another one. Readers see one of the two. Either may be nil. The caller holds
// mu.
func (x *everywhereIndex) replace(t *Table, old, b *blockEverywhere) {
	next := blocksEverywhere{lens: &lengthSet{}}
	if all := x.Load(); all != nil {
		next = *all
	}
	if old != nil {
		x.change(t, &next, old, -1)
	}
	if b != nil {
		x.change(t, &next, b, 1)
	}
	if x.count.all == 0 {
		x.Store(nil)
		return
	}
	x.Store(&next)
}

// change adds a block to the next set, or removes it: n is 1 or -1.
func (x *everywhereIndex) change(t *Table, next *blocksEverywhere, b *blockEverywhere, n int32) {
	lens := *next.lens
	counted := func(count *int32, bits *uint64, bit int) {
		if *count += n; *count == 0 {
			*bits &^= 1 << bit
		} else {
			*bits |= 1 << bit
		}
	}
	update := func(set *trie.Trie[*blockEverywhere], hash uint64) {
		if n > 0 {
			*set = set.With(hash, b)
		} else {
			*set = set.Without(hash, b)
		}
	}
	name, key := len(b.name()), len(b.key)
	counted(&x.suffixes[name], &lens[name/64], name%64)
	if key != name {
		counted(&x.suffixes[key], &lens[key/64], key%64)
	}
	if lens != *next.lens {
		next.lens = &lens
	}
	hash := t.keys.of([]byte(b.name()))
	update(&next.names, hash)
	if b.version != 0 {
		update(&next.versions, byVersion(b.version)|hash>>(64-versionShift))
	}
	if b.network {
		of, _ := networkOf(b.key)
		v4 := arith.OneIf(of.V4)
		counted(&x.prefixes[v4][of.Bits], &next.lengths[v4], of.Bits)
		update(&next.networks, t.hashNetwork(of))
	}
	switch {
	case b.untilNs == Never:
	case n > 0:
		heap.Push(&x.ends, b)
	default:
		heap.Remove(&x.ends, b.at)
	}
	x.add(&x.count, b, int64(n))
	size := int64(blockBytes + key + len(b.reason))
	if b.version != 0 {
		size += versionBytes
	}
	x.used.Add(int64(n) * size)
}

// noteBlock updates the set of blocks everywhere for an entry that gains or loses a block everywhere.
func (s *shard) noteBlock(e store.Entry, there bool) {
	_, b := store.ReadBlocks(e.State())
	if !there {
		b = store.Block{}
	}
	s.setEverywhere(e.Key(), b)
}

// setEverywhere makes b the block everywhere of a key in the set, or none if b is zero.
func (s *shard) setEverywhere(key []byte, b store.Block) {
	x := &s.t.everywhere
	x.mu.Lock()
	defer x.mu.Unlock()
	var old, next *blockEverywhere
	if all := x.Load(); all != nil {
		old = all.of(s.t, key)
	}
	if old.end() == b.UntilNs && (old == nil || old.version == b.Version && old.reason == string(b.Reason)) {
		return
	}
	if b.UntilNs != 0 {
		next = newBlockEverywhere(key, b)
	} else if old.end() <= s.NowNs {
		s.t.order.ended(old.version)
	}
	x.replace(s.t, old, next)
}

func newBlockEverywhere(key []byte, of store.Block) *blockEverywhere {
	b := &blockEverywhere{
		key: string(key), reason: string(of.Reason), untilNs: of.UntilNs, version: of.Version, slot: SlotOf(key),
	}
	name := b.name()
	b.member = len(name) < len(b.key) && network.IsWritten(name)
	_, b.network = networkOf(b.key)
	return b
}

// clearEverywhere empties the set when the table is cleared. In a group that follows the first one it does not, because
// the first group alone decides when its blocks end. It returns these blocks, by their shards.
func (t *Table) clearEverywhere() (kept map[int][]*blockEverywhere) {
	x := &t.everywhere
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.Load()
	switch {
	case all == nil:
	case t.order.follows:
		kept = map[int][]*blockEverywhere{}
		for _, b := range all.names.From(0) {
			n := t.shardNumber([]byte(b.key))
			kept[n] = append(kept[n], b)
		}
	default:
		x.Store(nil)
		x.used.Add(-x.used.Bytes())
		x.suffixes, x.prefixes = [MaxKeyLen + 1]int32{}, [2][64]int32{}
		x.count, x.ends = blockCount{}, nil
	}
	return kept
}

// keepBlock gives a shard that was cleared the entry of a block that the set has.
func (s *shard) keepBlock(b *blockEverywhere) {
	c := store.Cell{Hash: s.t.hashKey([]byte(b.key)), Key: []byte(b.key), Space: store.Blocks}
	s.Open(&c)
	all := store.Block{UntilNs: b.untilNs, Reason: []byte(b.reason), Version: b.version}
	if !s.setBlocks(&c, store.Block{}, all) {
		s.setEverywhere(c.Key, store.Block{})
	}
}

// mayBlockEverywhere reports whether one more block everywhere is allowed. It counts only blocks in force,
// because tables collect ended blocks at different times.
func (s *shard) mayBlockEverywhere(key []byte) bool {
	most, x := s.t.Rules().MaxBlocksEverywhere(), &s.t.everywhere
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count.all < most {
		return true
	}
	replaced := x.Load().of(s.t, key).end() > s.NowNs
	return x.inForce(s.NowNs).all-arith.OneIf(replaced) < most
}

// BlocksEverywhere are the blocks everywhere of a table that are in force at a stamp. The zero value has none.
type BlocksEverywhere struct {
	t   *Table
	at  Stamp
	Max int64 // how many may be in force
}

// BlocksEverywhere returns the blocks everywhere that are in force.
func (t *Table) BlocksEverywhere(at Stamp) BlocksEverywhere {
	return BlocksEverywhere{t, at, t.Rules().MaxBlocksEverywhere()}
}

// from returns the blocks with this hash of their names and higher ones, in the order of these hashes.
func (b BlocksEverywhere) from(hash uint64) iter.Seq2[uint64, *blockEverywhere] {
	return func(yield func(uint64, *blockEverywhere) bool) {
		if b.t == nil {
			return
		}
		all := b.t.everywhere.Load()
		if all == nil {
			return
		}
		for hash, x := range all.names.From(hash) {
			if x.untilNs > b.at.NowNs && !yield(hash, x) {
				return
			}
		}
	}
}

// Keys returns the keys of the blocks, in ascending order.
func (b BlocksEverywhere) Keys() (keys []string) {
	for _, x := range b.from(0) {
		keys = append(keys, x.key)
	}
	slices.Sort(keys)
	return keys
}

// Has reports whether one of the blocks is of a key.
func (b BlocksEverywhere) Has(key []byte) bool {
	if b.t == nil {
		return false
	}
	all := b.t.everywhere.Load()
	return all != nil && all.of(b.t, key).end() > b.at.NowNs
}

// Len returns the number of the blocks, and how many of them are of members.
func (b BlocksEverywhere) Len() (all, members int64) {
	if b.t == nil {
		return 0, 0
	}
	x := &b.t.everywhere
	x.mu.Lock()
	defer x.mu.Unlock()
	count := x.inForce(b.at.NowNs)
	return count.all, count.members
}

// MemberBits is the size of the position of a member.
const MemberBits = 48

// Members returns the addresses and networks that the blocks deny, written as network.Network.Append writes them, from
// a position on. The order of the positions is the same for every table of one HashSeed.
func (b BlocksEverywhere) Members(position uint64) iter.Seq2[uint64, string] {
	return func(yield func(uint64, string) bool) {
		if position >= 1<<MemberBits {
			return
		}
		for hash, x := range b.from(position << (64 - MemberBits)) {
			if x.member && !yield(hash>>(64-MemberBits), x.name()) {
				return
			}
		}
	}
}

// foreign returns the number of the blocks on keys of other groups.
func (b BlocksEverywhere) foreign(slots hashslot.Range) int64 {
	x := &b.t.everywhere
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.slots != slots {
		x.slots, x.count.foreign = slots, 0
		if all := x.Load(); all != nil {
			for _, b := range all.names.From(0) {
				x.count.foreign += arith.OneIf(!slots.Has(b.slot))
			}
		}
	}
	return x.inForce(b.at.NowNs).foreign
}
