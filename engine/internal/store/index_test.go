package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/internal/offheap"
)

// indexed is an index with a hash function of the test, and a map for comparison.
type indexed struct {
	slab  arena.Slab
	index Index
	refs  map[string]arena.Ref
	keys  []string // of refs, in any order
	hash  func(key []byte) uint64
}

func newIndexed(hash func(key []byte) uint64) *indexed {
	x := &indexed{slab: arena.NewSlab(new(arena.Pages), arena.NewMeter()), refs: map[string]arena.Ref{}, hash: hash}
	x.index = newIndex(new(offheap.Blocks[Segment]), arena.NewMeter())
	return x
}

// TestKindsFit checks that the bits of an entry's kind are enough for all kinds.
func TestKindsFit(t *testing.T) { require.Less(t, int(NumKinds), 1<<kindBits) }

// TestSegmentSize checks that a segment is one page of most kernels, so that it gives its memory back when it is
// returned.
func TestSegmentSize(t *testing.T) {
	require.EqualValues(t, segmentBytes, unsafe.Sizeof(Segment{}))
}

// TestStepsReachAll checks that each step between groups, and each stride of a sample, reaches the whole segment.
func TestStepsReachAll(t *testing.T) {
	reached := func(step, size int) int {
		seen := map[int]bool{}
		for i := range size {
			seen[i*step%size] = true
		}
		return len(seen)
	}
	for _, step := range steps {
		require.Equal(t, segmentGroups, reached(int(step), segmentGroups), "step %d", step)
	}
	for n := range segmentSlots {
		require.Equal(t, segmentSlots, reached(strideFrom(n), segmentSlots), "stride from %d", n)
	}
}

// TestSiblingsShareNoGroup checks that the limiters of a policy for one key begin in one group for each two of them.
func TestSiblingsShareNoGroup(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 10_000 {
		h, groups := rng.Uint64(), map[int]bool{}
		for number := 0; number < rule.MaxPolicyLimits; number += 2 {
			groups[startOf(SiblingHash(h, number))] = true
			require.Equal(t, startOf(SiblingHash(h, number)), startOf(SiblingHash(h, number+1)))
		}
		require.Len(t, groups, rule.MaxPolicyLimits/2)
	}
}

func (x *indexed) hashesOf(refs []arena.Ref, out []uint64) {
	for i, r := range refs {
		out[i] = x.hash(Entry(x.slab.At(r)).Key())
	}
}

func (x *indexed) find(key string) (*slotGroup, int, arena.Ref) {
	return x.index.find(x.hash([]byte(key)), &x.slab, Limiters, []byte(key))
}

func (x *indexed) add(key string) {
	r := x.slab.Alloc(EntryLen(len(key), ShortBucketLen))
	Entry(x.slab.At(r)).init(uint8(rule.TokenBucket), []byte(key), ShortBucketLen)
	x.index.add(x.hash([]byte(key)), r, x.hashesOf)
	x.refs[key] = r
	x.keys = append(x.keys, key)
}

func (x *indexed) remove(i int) {
	key := x.keys[i]
	of, slot, r := x.find(key)
	x.index.remove(x.hash([]byte(key)), of, slot, x.hashesOf)
	x.slab.Free(r)
	delete(x.refs, key)
	x.keys[i] = x.keys[len(x.keys)-1]
	x.keys = x.keys[:len(x.keys)-1]
}

// bytes returns the bytes of all segments.
func (x *Index) bytes() (n int64) {
	for range x.Segments() {
		n += segmentBytes
	}
	return n
}

// check compares the whole index with the map, and checks its invariants.
func (x *indexed) check(t *testing.T) {
	for key, want := range x.refs {
		_, _, r := x.find(key)
		require.Equal(t, want, r, "%q", key)
	}
	total := 0
	for i := 0; i < x.index.dir.Len(); {
		g := x.index.dir.At(i)
		span := 1 << (x.index.depth - g.Depth)
		for j := range span {
			require.Same(t, g, x.index.dir.At(i+j), "place %d of depth %d", i+j, g.Depth)
		}
		total += x.checkSegment(t, g)
		x.checkNeighbour(t, i, span, g)
		i += span
	}
	require.Len(t, x.refs, total)
	require.Equal(t, x.index.bytes(), x.index.used.Bytes())
}

func (x *indexed) checkSegment(t *testing.T, g *Segment) (live int) {
	dead := 0
	for i := range g.groups {
		for _, c := range g.groups[i].ctrl {
			live += int(arith.OneIf(c < slotEmpty))
			dead += int(arith.OneIf(c == slotGone))
		}
	}
	require.EqualValues(t, live, g.live)
	require.EqualValues(t, dead, g.dead)
	require.LessOrEqual(t, live+dead, segmentLoad, "a probe must meet an empty slot")
	return live
}

// checkNeighbour checks that two nearly empty neighbours are merged.
func (x *indexed) checkNeighbour(t *testing.T, i, span int, g *Segment) {
	if g.Depth == 0 {
		return
	}
	other := x.index.dir.At(i ^ span)
	require.False(t, g.Depth == other.Depth && g.live < segmentFew && other.live < segmentFew, "depth %d", g.Depth)
}

// TestIndex grows and empties an index repeatedly, and compares it with a map. Some of its hash functions are good, and
// some give many keys the same segment, group or tag.
func TestIndex(t *testing.T) {
	const groups, tags, top = (1<<groupBits - 1) << GroupShift, 127 << 16, 127 << 57
	for name, hash := range map[string]func(a, b uint64) uint64{
		"even":              func(a, _ uint64) uint64 { return a },
		"one group":         func(a, _ uint64) uint64 { return a | groups },
		"one tag":           func(a, _ uint64) uint64 { return a | tags },
		"two tags":          func(a, _ uint64) uint64 { return a&^tags | a&(1<<16) },
		"one tag and group": func(a, _ uint64) uint64 { return a &^ (groups | tags) },
		"one side":          func(a, _ uint64) uint64 { return a | top },
		"mostly one side":   func(a, b uint64) uint64 { return a & (b | 1<<57 - 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 2))
			hashes := map[string]uint64{}
			x := newIndexed(func(key []byte) uint64 { return hashes[string(key)] })
			for wave := range 4 {
				for size := 300 << wave; len(x.refs) < size; {
					x.churn(rng, hashes, hash, 60)
				}
				x.check(t)
				for i := 0; len(x.refs) > 0; i++ {
					x.churn(rng, hashes, hash, 30)
					if i%1000 == 0 {
						x.check(t)
					}
				}
				x.check(t)
				require.EqualValues(t, segmentBytes, x.index.bytes(), "an empty index must be one segment")
			}
		})
	}
}

// churn adds a key with this chance in percent, or removes one.
func (x *indexed) churn(rng *rand.Rand, hashes map[string]uint64, hash func(a, b uint64) uint64, chance int) {
	if rng.IntN(100) < chance || len(x.refs) == 0 {
		key := fmt.Sprint(rng.Uint32())
		if _, _, r := x.find(key); r == 0 {
			hashes[key] = hash(rng.Uint64(), rng.Uint64())
			x.add(key)
		}
		return
	}
	x.remove(rng.IntN(len(x.keys)))
}

// TestIndexSweeps checks that a segment with as many insertions as deletions removes its tombstones and does not
// split.
func TestIndexSweeps(t *testing.T) {
	hashes, rng := map[string]uint64{}, rand.New(rand.NewPCG(3, 4))
	x := newIndexed(func(key []byte) uint64 { return hashes[string(key)] })
	for n := range 20_000 {
		key := fmt.Sprint(n)
		hashes[key] = rng.Uint64()
		x.add(key)
		if len(x.keys) > 300 {
			x.remove(rng.IntN(len(x.keys)))
		}
	}
	x.check(t)
	require.Zero(t, x.index.depth)
}

// TestIndexReserve checks that an index rarely splits while it is filled to its reserved size.
func TestIndexReserve(t *testing.T) {
	const keys = 10_000
	hashes, rng := map[string]uint64{}, rand.New(rand.NewPCG(5, 6))
	x := newIndexed(func(key []byte) uint64 { return hashes[string(key)] })
	x.index.Reserve(2 * keys)
	x.index.Reserve(keys)
	reserved := x.index.bytes()
	require.Equal(t, reserved, x.index.used.Bytes())
	for n := range keys {
		key := fmt.Sprint(n)
		hashes[key] = rng.Uint64()
		x.add(key)
	}
	require.LessOrEqual(t, x.index.bytes(), reserved+reserved/8)
	for key, want := range x.refs {
		_, _, r := x.find(key)
		require.Equal(t, want, r)
	}
}
