//go:build linux && !race

package offheap

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
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
	// A chunk is as large as a huge page on most processors, and starts where one may start.
	chunkBytes = 2 << 20
)

// Blocks hands out blocks of one type. A T must have no pointers, because the collector does not see them. The zero
// value has no areas. Its methods are safe for concurrent use.
//
// All blocks live as long as what holds the Blocks: the collector finds that it is gone, and the areas are unmapped.
// A user of a block must hold the Blocks as well.
type Blocks[T any] struct {
	mu    sync.Mutex
	areas *areas
	rest  []T     // of the newest area
	free  List[T] // returned blocks
}

// areas are the areas of one owner. They are apart from Blocks, which they outlive.
type areas struct {
	mapped []area
	inUse  int64 // bytes of blocks
}

type area struct {
	bytes []byte
	huge  bool   // the kernel may use huge pages
	whole uint64 // bits of the chunks that may be in huge pages
}

// Take returns a block of zeros. The process ends if the kernel gives no memory, as it does when the heap gets none.
func (b *Blocks[T]) Take() *T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.areas == nil {
		b.areas = &areas{}
		runtime.AddCleanup(b, (*areas).unmap, b.areas)
	}
	if b.free.Len() > 0 {
		b.count(1)
		return b.free.Pop()
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
	n := int64(blocks) * int64(sizeOf[T]())
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
	a.huge = huge
	advice := syscall.MADV_NOHUGEPAGE
	if huge {
		advice, a.whole = syscall.MADV_HUGEPAGE, ^uint64(0)
	}
	_ = syscall.Madvise(a.bytes, advice)
}

// Return takes back a block of this Blocks. The caller must not use it any more. The memory of a block that fills whole
// pages of the kernel goes back to the kernel. Other blocks are kept for the next Take.
func (b *Blocks[T]) Return(t *T) { b.returnSome([]*T{t}) }

// ReturnAll is Return of many blocks. Those that are side by side go back to the kernel together. It sorts the slice.
func (b *Blocks[T]) ReturnAll(blocks []*T) {
	slices.SortFunc(blocks, func(x, y *T) int { return cmp.Compare(addressOf(x), addressOf(y)) })
	for len(blocks) > 0 {
		blocks = blocks[b.returnSome(blocks):]
	}
}

// returnSome takes back the leading blocks, up to the first gap or the end of an area, and returns their number. Take
// waits meanwhile.
func (b *Blocks[T]) returnSome(blocks []*T) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := addressOf(blocks[0])
	of := b.areas.of(first)
	most := int(span(of.bytes).to-first) / sizeOf[T]()
	for n = 1; n < min(len(blocks), most) && addressOf(blocks[n]) == first+uintptr(n*sizeOf[T]()); n++ {
	}
	b.giveBack(of, unsafe.Slice(blocks[0], n))
	b.count(-n)
	for _, t := range slices.Backward(blocks[:n]) { // the next ones taken are side by side
		b.free.Append(t)
	}
	return n
}

func addressOf[T any](t *T) uintptr { return uintptr(unsafe.Pointer(t)) }

// of returns the area of an address.
func (a *areas) of(at uintptr) *area {
	for i := range a.mapped {
		if all := span(a.mapped[i].bytes); all.from <= at && at < all.to {
			return &a.mapped[i]
		}
	}
	endProcess("a block of limiters comes back to an owner that did not give it")
	return nil
}

// giveBack fills blocks that are side by side with zeros. It gives the whole pages among them to the kernel, unless the
// kernel refuses, as it does for locked memory.
func (b *Blocks[T]) giveBack(of *area, blocks []T) {
	bytes := bytesOf(blocks)
	before, pages := wholePages(bytes)
	if len(pages) == 0 || !dropsPages() {
		clear(blocks)
		return
	}
	of.endHugePages(span(bytes), span(bytesOf(b.rest)), pages)
	if syscall.Madvise(pages, syscall.MADV_DONTNEED) != nil {
		clear(blocks)
		return
	}
	clear(bytes[:before])
	clear(bytes[before+len(pages):])
}

// wholePages returns the pages of the kernel that bytes fill, and the number of bytes before them. The kernel would
// round, and take what is around the bytes.
func wholePages(bytes []byte) (before int, pages []byte) {
	of := span(bytes)
	page := uintptr(pageBytes)
	from, to := (of.from+page-1)/page*page, of.to/page*page
	if from >= to {
		return 0, nil
	}
	before = int(from - of.from)
	return before, bytes[before : before+int(to-from)]
}

// dropsPages reports whether pages that go back to the kernel have zeros when they are used again. An emulator of Linux
// may only say so, as that of qemu did for years (jemalloc/jemalloc#2005, redis/redis#10467).
var dropsPages = sync.OnceValue(func() bool {
	probe, err := syscall.Mmap(-1, 0, pageBytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Munmap(probe) }()
	probe[0] = 1
	return syscall.Madvise(probe, syscall.MADV_DONTNEED) == nil && probe[0] == 0
})

func bytesOf[T any](blocks []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(blocks))), len(blocks)*sizeOf[T]())
}

// A run is a range of addresses.
type run struct{ from, to uintptr }

func span(bytes []byte) run {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
	return run{from, from + uintptr(len(bytes))}
}

// endHugePages ends the huge pages of an area to which blocks are returned. The kernel would fill the returned memory
// again to make a huge page of it. An area to which all blocks are returned at once may have huge pages again. pages
// are the kernel's pages that the blocks fill. rest is the part of the newest area that was never in use.
func (a *area) endHugePages(back, rest run, pages []byte) {
	all := span(a.bytes)
	if rest.from == back.to && rest.to == all.to {
		back.to = rest.to
	}
	if back == all {
		a.setHuge(len(a.bytes) >= hugeAreaBytes)
		return
	}
	if a.huge {
		a.setHuge(false)
	}
	of := span(pages)
	first, end := all.chunk(of.from), all.chunk(of.to-1)+1
	if chunks := uint64(1)<<end - uint64(1)<<first; a.whole&chunks != 0 {
		a.whole &^= chunks
		_ = syscall.Madvise(pages, madvFree)
	}
}

// chunk returns the number of the chunk of an address in the run.
func (r run) chunk(at uintptr) int { return int(at/chunkBytes - r.from/chunkBytes) }

// madvFree is MADV_FREE of Linux. For a part of a huge page it splits the page at once. MADV_DONTNEED alone leaves it
// whole, and in use, until memory becomes short (madvise_free_huge_pmd and the deferred split queue of Linux 6.18).
const madvFree = 8

var pageBytes = syscall.Getpagesize() // 4 KiB, or up to 64 KiB on some kernels for ARM and PowerPC

func (a *areas) unmap() {
	defer inUse.Add(-a.inUse)
	for _, area := range a.mapped {
		if err := syscall.Munmap(area.bytes); err != nil {
			endProcess(fmt.Sprintf("an area of limiters cannot be unmapped: %v", err))
		}
	}
}

// List is a list of blocks. The collector does not look into it: it would search the heap for each block, in vain. The
// zero value is empty.
type List[T any] struct{ at []uintptr }

// NewList returns a list of n times nil.
func NewList[T any](n int) List[T] { return List[T]{make([]uintptr, n)} }

// Len returns the number of blocks.
func (l *List[T]) Len() int { return len(l.at) }

// At returns a block by its number.
func (l *List[T]) At(i int) *T { return *(**T)(unsafe.Pointer(&l.at[i])) }

// Set replaces a block.
func (l *List[T]) Set(i int, t *T) { l.at[i] = addressOf(t) }

// Append adds a block at the end.
func (l *List[T]) Append(t *T) { l.at = append(l.at, addressOf(t)) }

// Pop removes the last block and returns it.
func (l *List[T]) Pop() *T {
	last := len(l.at) - 1
	t := l.At(last)
	l.at = l.at[:last]
	return t
}
