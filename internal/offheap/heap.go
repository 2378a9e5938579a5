//go:build !linux || race

package offheap

// Blocks hands out blocks of one type as objects of the heap.
type Blocks[T any] struct{}

// Take returns a block of zeros.
func (*Blocks[T]) Take() *T { return new(T) }

// Return takes back a block. The collector frees it.
func (*Blocks[T]) Return(*T) {}

// ReturnAll takes back blocks. The collector frees them.
func (*Blocks[T]) ReturnAll([]*T) {}
