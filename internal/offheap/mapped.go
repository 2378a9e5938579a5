//go:build linux && !race

package offheap

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

const (
	// Each area of an owner is twice as large as the one before. Only what is written takes memory.
	firstAreaBytes = 1 << 20
	maxAreaBytes   = 64 << 20
	// Areas of hugeAreaBytes and more ask for huge pages, of which the last may be in use in part only: 2 MiB, where
	// the owner has 15 MiB already.
	hugeAreaBytes = 16 << 20
)

// Blocks hands out blocks of one type. A T must have no pointers, because the collector does not see them. The zero
// value has no areas. Its methods are safe for concurrent use.
//
// All blocks live as long as what holds the Blocks: the collector finds that it is gone, and the areas are unmapped.
// A user of a block must hold the Blocks as well.
type Blocks[T any] struct {
	mu    sync.Mutex
	areas *areas
	rest  []T  // of the newest area
	free  []*T // returned blocks
}

// areas are the areas of one owner. They are apart from Blocks, which they outlive.
type areas struct {
	mapped []area
	inUse  int64 // bytes of blocks
}

type area struct {
	bytes   []byte
	huge    bool // the kernel may use huge pages
	wasHuge bool // it may have some
}

// Take returns a block of zeros. The process ends if the kernel gives no memory, as it does when the heap gets none.
func (b *Blocks[T]) Take() *T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.areas == nil {
		b.areas = &areas{}
		runtime.AddCleanup(b, (*areas).unmap, b.areas)
	}
	if n := len(b.free); n > 0 {
		t := b.free[n-1]
		b.free = b.free[:n-1]
		b.count(1)
		return t
	}
	if len(b.rest) == 0 {
		b.grow()
	}
	b.count(1)
	t := &b.rest[0]
	b.rest = b.rest[1:]
	return t
}

func (b *Blocks[T]) count(blocks int) {
	n := int64(blocks * sizeOf[T]())
	b.areas.inUse += n
	inUse.Add(n)
}

func (b *Blocks[T]) grow() {
	bytes := firstAreaBytes
	if n := len(b.areas.mapped); n > 0 {
		bytes = min(2*len(b.areas.mapped[n-1].bytes), maxAreaBytes)
	}
	const access, kind = syscall.PROT_READ | syscall.PROT_WRITE, syscall.MAP_PRIVATE | syscall.MAP_ANON
	mapped, err := syscall.Mmap(-1, 0, bytes, access, kind)
	if err != nil {
		endProcess(fmt.Sprintf("no memory for another %d bytes of limiters: %v", bytes, err))
	}
	a := area{bytes: mapped}
	a.setHuge(bytes >= hugeAreaBytes)
	b.areas.mapped = append(b.areas.mapped, a)
	b.rest = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mapped))), bytes/sizeOf[T]())
}

// endProcess cannot be recovered from. A panic of the caller could be recovered, in the middle of an operation.
func endProcess(why string) {
	go panic(why)
	select {}
}

// setHuge tells the kernel whether to use huge pages, with which a processor finds the blocks of a large table faster.
// A kernel without huge pages refuses the advice, and nothing is lost.
func (a *area) setHuge(huge bool) {
	a.huge, a.wasHuge = huge, a.wasHuge || huge
	advice := syscall.MADV_NOHUGEPAGE
	if huge {
		advice = syscall.MADV_HUGEPAGE
	}
	_ = syscall.Madvise(a.bytes, advice)
}

// Return takes back a block of this Blocks. The caller must not use it any more. Its memory goes back to the kernel if
// it fills whole pages of the kernel, and is kept for the next block otherwise.
func (b *Blocks[T]) Return(t *T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	block := unsafe.Slice((*byte)(unsafe.Pointer(t)), sizeOf[T]())
	b.areas.splitHuge(block)
	if !drop(block) {
		*t = *new(T)
	}
	b.count(-1)
	b.free = append(b.free, t)
}

// splitHuge ends the huge pages of the area of a block that is returned. The kernel would otherwise fill what was
// returned again, to make a huge page of what is around it.
func (a *areas) splitHuge(block []byte) {
	for i := range a.mapped {
		of := &a.mapped[i]
		at := uintptr(unsafe.Pointer(unsafe.SliceData(block))) - uintptr(unsafe.Pointer(unsafe.SliceData(of.bytes)))
		if !of.wasHuge || at >= uintptr(len(of.bytes)) {
			continue
		}
		if of.huge {
			of.setHuge(false)
		}
		_ = syscall.Madvise(block, madvFree)
	}
}

// madvFree is MADV_FREE of Linux. For a part of a huge page it splits the page at once. MADV_DONTNEED alone leaves it
// whole, and in use, until memory becomes short (madvise_free_huge_pmd and the deferred split queue of Linux 6.18).
const madvFree = 8

// drop gives the memory of a block back to the kernel, so that it has zeros when it is used again. It returns false if
// the block does not fill whole pages: the kernel would round, and take its neighbours. It also does so if the kernel
// refuses, as it does for locked memory.
func drop(block []byte) bool {
	return len(block)%pageBytes == 0 && syscall.Madvise(block, syscall.MADV_DONTNEED) == nil
}

var pageBytes = syscall.Getpagesize() // 4 KiB, or up to 64 KiB on some kernels for ARM and PowerPC

func (a *areas) unmap() {
	inUse.Add(-a.inUse)
	for _, area := range a.mapped {
		if err := syscall.Munmap(area.bytes); err != nil {
			endProcess(fmt.Sprintf("an area of limiters cannot be unmapped: %v", err))
		}
	}
}
