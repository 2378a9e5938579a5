package offheap_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/offheap"
	"github.com/weir-project/weir/internal/race"
)

type small [100]byte

// TestBlocksAreZeroAndApart takes and returns blocks of a size that fills no page of the kernel, and of one that does.
// Every block that is taken must have zeros only, and must keep what was written to it.
func TestBlocksAreZeroAndApart(t *testing.T) {
	t.Run("small", func(t *testing.T) { takeAndReturn(t, func(b *small) []byte { return b[:] }) })
	t.Run("16 KiB", func(t *testing.T) { takeAndReturn(t, func(b *[16 << 10]byte) []byte { return b[:] }) })
}

func takeAndReturn[T any](t *testing.T, bytesOf func(*T) []byte) {
	blocks, taken := &offheap.Blocks[T]{}, map[*T]byte{}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 20_000 {
		if rng.IntN(100) < 60-n/500 {
			block := blocks.Take()
			require.NotContains(t, taken, block)
			fill := byte(1 + rng.IntN(255))
			requireFilled(t, bytesOf(block), 0)
			for i := range bytesOf(block) {
				bytesOf(block)[i] = fill
			}
			taken[block] = fill
			continue
		}
		for block, fill := range taken {
			requireFilled(t, bytesOf(block), fill)
			blocks.Return(block)
			delete(taken, block)
			break
		}
	}
	runtime.KeepAlive(blocks)
}

func requireFilled(t *testing.T, block []byte, with byte) {
	require.Equal(t, len(block), bytes.Count(block, []byte{with}))
}

// TestManyBlocksComeBack returns some blocks of several areas at once. The others must keep what was written to them,
// and the blocks that are taken next must have zeros only.
func TestManyBlocksComeBack(t *testing.T) {
	const n = 1024 // blocks of 16 KiB, in areas of 1, 2, 4, 8 and 16 MiB
	rng := rand.New(rand.NewPCG(3, 4))
	blocks := &offheap.Blocks[[16 << 10]byte]{}
	blocks.ReturnAll(nil)
	kept := map[*[16 << 10]byte]byte{}
	for _, keep := range []int{0, 1, 50, 0, 99} { // percent
		var back []*[16 << 10]byte
		for range n {
			block, fill := blocks.Take(), byte(1+rng.IntN(255))
			requireFilled(t, block[:], 0)
			copy(block[:], bytes.Repeat([]byte{fill}, len(block)))
			if rng.IntN(100) < keep {
				kept[block] = fill
			} else {
				back = append(back, block)
			}
		}
		rng.Shuffle(len(back), func(i, j int) { back[i], back[j] = back[j], back[i] })
		blocks.ReturnAll(back)
		for block, fill := range kept {
			requireFilled(t, block[:], fill)
		}
	}
	runtime.KeepAlive(blocks)
}

func TestListOfBlocks(t *testing.T) {
	blocks := &offheap.Blocks[small]{}
	list, want := offheap.NewList[small](3), make([]*small, 3)
	for i := range 100 {
		block := blocks.Take()
		list.Append(block)
		want = append(want, block)
		list.Set(i, block)
		want[i] = block
	}
	list.Set(1, nil)
	want[1] = nil
	runtime.GC()
	require.Equal(t, len(want), list.Len())
	for i, block := range want {
		require.Same(t, block, list.At(i))
	}
	runtime.KeepAlive(blocks)
}

// TestReturnedBlocksTakeNoMemory checks that blocks which fill pages of the kernel give their memory back one by one,
// and that the blocks of a collected owner do so together.
func TestReturnedBlocksTakeNoMemory(t *testing.T) {
	if race.Enabled || runtime.GOOS != "linux" {
		t.Skip("blocks are objects of the heap")
	}
	if 16<<10%os.Getpagesize() != 0 {
		t.Skip("the kernel's pages are larger than a block")
	}
	const n = int64(4096) // 64 MiB
	requireCollected(t)   // owners of other tests
	before := resident(t)
	func() {
		blocks := &offheap.Blocks[[16 << 10]byte]{}
		var all []*[16 << 10]byte
		for range n {
			block := blocks.Take()
			for i := range block {
				block[i] = 1
			}
			all = append(all, block)
		}
		full := resident(t)
		require.Greater(t, full-before, n*15<<10)
		require.Equal(t, n*16<<10, offheap.InUse())
		for i, block := range all {
			if i%16 != 0 { // the others hold every area
				blocks.Return(block)
			}
		}
		require.Less(t, resident(t)-before, n/16*16<<10+8<<20)
		require.Equal(t, n/16*16<<10, offheap.InUse())
		for i := int64(0); i < n; i += 16 {
			require.EqualValues(t, 1, all[i][n])
		}
		runtime.KeepAlive(blocks)
	}()
	requireCollected(t)
	require.Less(t, resident(t)-before, int64(8<<20))
}

// requireCollected waits until the blocks of all owners that are gone are unmapped.
func requireCollected(t *testing.T) {
	require.Eventually(t, func() bool {
		runtime.GC()
		return offheap.InUse() == 0
	}, time.Minute, time.Millisecond)
}

// resident returns the resident bytes of the process outside of files.
func resident(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(status), "RssAnon:")
	require.True(t, ok)
	kb, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
	require.NoError(t, err)
	return kb << 10
}
