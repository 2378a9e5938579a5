package arena

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestPageSize checks that a page of a slab is four pages of most kernels, so that it gives its memory back when it is
// returned.
func TestPageSize(t *testing.T) {
	require.EqualValues(t, 16<<10, unsafe.Sizeof(page{}))
	require.GreaterOrEqual(t, dirtyBits*WordsPerDirtyBit, pageLen/8)
}

// TestSlotClasses checks that a slot has the requested size, in the smallest possible class.
func TestSlotClasses(t *testing.T) {
	for n := 1; n <= MaxRecord; n++ {
		class := ClassOf(n)
		require.GreaterOrEqual(t, int(slotLens[class]), n)
		require.True(t, class == 0 || int(slotLens[class-1]) < n, "%d bytes", n)
	}
}

// TestSlab takes and frees slots of all sizes, so that pages are made, released, and reused for slots of another size.
// It marks some slots as dirty. Every slot must keep its contents, and PopDirty must return every marked slot once.
func TestSlab(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 4))
			s := NewSlab(new(Pages), NewMeter())
			slots, marked, listed := map[Ref]byte{}, map[Ref]bool{}, map[uint32]bool{}
			for wave := range 12 {
				size, want := 32+rng.IntN(MaxRecord-31), 2_000>>(wave%2*12)
				for len(slots) < want {
					n := 32 + rng.IntN(size-31)
					r := s.Alloc(n)
					_, taken := slots[r]
					require.False(t, taken)
					slots[r] = byte(rng.Int())
					fillSlot(s.slot(r), slots[r])
					if rng.IntN(2) == 0 {
						marked[r] = true
						if _, first := s.MarkDirty(r); first {
							listed[r>>wordBits] = true
						}
					}
				}
				for r, fill := range slots { // in random order
					if len(slots) == want/2 {
						break
					}
					require.Equal(t, fill, s.slot(r)[0])
					require.Equal(t, fill, s.slot(r)[s.Len(r)-1])
					s.Free(r)
					delete(slots, r)
					delete(marked, r)
				}
				require.Equal(t, len(slots), s.slots())
				require.EqualValues(t, (s.PageCount()-1)*PageBytes, s.used.Bytes())
				if wave%3 == 2 {
					takeMarks(t, &s, marked, listed)
				}
			}
		})
	}
}

func fillSlot(b []byte, fill byte) {
	for i := range b {
		b[i] = fill
	}
}

// takeMarks takes all dirty slots of the listed pages, as a drain does, and compares them with the marked slots.
func takeMarks(t *testing.T, s *Slab, marked map[Ref]bool, listed map[uint32]bool) {
	met := map[Ref]bool{}
	for id := range listed {
		for p := s.page(id); p != nil; {
			word, ok := p.popDirty()
			if !ok {
				break
			}
			met[id<<wordBits|uint32(word)] = true
		}
	}
	require.Equal(t, marked, met)
	clear(marked)
	clear(listed)
}

// slots returns the number of used slots in a slab.
func (s *Slab) slots() (n int) {
	for i := range s.pages.Len() {
		if p := s.pages.At(i); p != nil {
			n += int(p.live)
		}
	}
	return n
}
