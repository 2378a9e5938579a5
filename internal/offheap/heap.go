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

// List is a list of blocks. The zero value is empty.
type List[T any] struct{ at []*T }

// NewList returns a list of n times nil.
func NewList[T any](n int) List[T] { return List[T]{make([]*T, n)} }

// Len returns the number of blocks.
func (l *List[T]) Len() int { return len(l.at) }

// At returns a block by its number.
func (l *List[T]) At(i int) *T { return l.at[i] }

// Set replaces a block.
func (l *List[T]) Set(i int, t *T) { l.at[i] = t }

// Append adds a block at the end.
func (l *List[T]) Append(t *T) { l.at = append(l.at, t) }
