//go:build linux && !race

package offheap_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/offheap"
)

// TestHugePages checks that only the areas of a large owner ask for huge pages, and that an area whose blocks come back
// asks for none any more.
func TestHugePages(t *testing.T) {
	type block [1 << 20]byte
	blocks := &offheap.Blocks[block]{}
	first := blocks.Take()
	if flags := mapping(t, first, "VmFlags"); !strings.Contains(flags, " nh") && !strings.Contains(flags, " hg") {
		t.Skip("the kernel has no huge pages")
	}
	require.Contains(t, mapping(t, first, "VmFlags"), " nh")
	var last *block
	for range 40 {
		last = blocks.Take()
		for i := 0; i < len(last); i += os.Getpagesize() {
			last[i] = 1
		}
	}
	require.Contains(t, mapping(t, last, "VmFlags"), " hg")
	split, huge := splitPages(t), strings.Fields(mapping(t, last, "AnonHugePages"))[0] != "0"
	blocks.Return(last)
	require.Contains(t, mapping(t, last, "VmFlags"), " nh")
	if huge {
		require.Greater(t, splitPages(t), split, "the rest of a huge page must not keep what was returned")
	}
	require.Same(t, last, blocks.Take())
	runtime.KeepAlive(blocks)
}

// TestEmptyAreasKeepHugePages checks that an area whose blocks come back together may still have huge pages, although a
// part of it was never in use, and that another area, of which one block came back before, may not.
func TestEmptyAreasKeepHugePages(t *testing.T) {
	type block [64 << 10]byte
	requireCollected(t) // owners of other tests
	before := resident(t)
	blocks := &offheap.Blocks[block]{}
	var all []*block
	for range 50 << 20 / len(block{}) { // areas of 1, 2, 4, 8 and 16 MiB, and 19 of 32 MiB
		b := blocks.Take()
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
		all = append(all, b)
	}
	middle := len(all) / 2
	alone, last := all[middle], all[len(all)-1]
	if !strings.Contains(mapping(t, last, "VmFlags"), " hg") {
		t.Skip("the kernel has no huge pages")
	}
	blocks.Return(alone)
	require.Contains(t, mapping(t, alone, "VmFlags"), " nh")
	blocks.ReturnAll(slices.Delete(all, middle, middle+1))
	require.Contains(t, mapping(t, alone, "VmFlags"), " nh")
	require.Contains(t, mapping(t, last, "VmFlags"), " hg")
	require.Less(t, resident(t)-before, int64(8<<20))
	runtime.KeepAlive(blocks)
}

// TestOtherKernels checks blocks on kernels with large pages, and on one that drops no page although it says so. Whole
// pages among many blocks must go back also if the blocks begin and end within others.
func TestOtherKernels(t *testing.T) {
	type block [16 << 10]byte
	t.Run("drops nothing", func(t *testing.T) {
		defer offheap.Pretend(os.Getpagesize(), false)()
		takeAndReturn(t, func(b *block) []byte { return b[:] })
	})
	defer offheap.Pretend(64<<10, true)()
	takeAndReturn(t, func(b *block) []byte { return b[:] })
	requireCollected(t)
	used := bytes.Repeat([]byte{1}, len(block{}))
	before := resident(t)
	blocks, all := &offheap.Blocks[block]{}, []*block{}
	for range 4096 {
		b := blocks.Take()
		copy(b[:], used)
		all = append(all, b)
	}
	blocks.Return(all[2049])
	blocks.ReturnAll(slices.Delete(all, 2049, 2050))
	require.Less(t, resident(t)-before, int64(8<<20))
	for range 4096 {
		requireFilled(t, blocks.Take()[:], 0)
	}
	runtime.KeepAlive(blocks)
}

// splitPages returns how many huge pages the kernel has split.
func splitPages(t *testing.T) int {
	counters, err := os.ReadFile("/proc/vmstat")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(counters), "thp_split_page ")
	n, err := strconv.Atoi(strings.Fields(text)[0])
	require.NoError(t, err)
	return n
}

// mapping returns what the kernel says in a field about the memory of a block.
func mapping[T any](t *testing.T, block *T, field string) string {
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	inside := false
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			at := uintptr(unsafe.Pointer(block))
			inside = from <= at && at < to
		}
		if text, ok := strings.CutPrefix(line, field+":"); ok && inside {
			return text
		}
	}
	t.Fatal("the block is not mapped")
	return ""
}
