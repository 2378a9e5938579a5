// Package offheap hands out blocks of memory that the garbage collector neither marks nor sweeps.
//
// A table of a hundred million limiters has half a million blocks. As objects of the heap they cost each collection
// a tenth of a second of processor time, and a heap that grows by blocks is collected again and again.
//
// On Linux, blocks come from areas that the kernel maps. A block that is returned gives its memory back to the kernel
// by itself. Elsewhere, and under the race detector, which sees the heap only, blocks are objects of the heap.
package offheap
