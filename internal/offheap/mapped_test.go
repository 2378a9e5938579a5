//go:build linux && !race

package offheap_test

import (
	"fmt"
	"os"
	"runtime"
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
	if flags := flagsOf(t, first); !strings.Contains(flags, " nh") && !strings.Contains(flags, " hg") {
		t.Skip("the kernel has no huge pages")
	}
	require.Contains(t, flagsOf(t, first), " nh")
	var last *block
	for range 40 {
		last = blocks.Take()
	}
	require.Contains(t, flagsOf(t, last), " hg")
	blocks.Return(last)
	require.Contains(t, flagsOf(t, last), " nh")
	require.Same(t, last, blocks.Take())
	runtime.KeepAlive(blocks)
}

// flagsOf returns the kernel's flags of the memory of a block.
func flagsOf[T any](t *testing.T, block *T) string {
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	inside := false
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			at := uintptr(unsafe.Pointer(block))
			inside = from <= at && at < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return flags
		}
	}
	t.Fatal("the block is not mapped")
	return ""
}
