package offheap

import (
	"sync/atomic"
	"unsafe"
)

// inUse counts the bytes of all blocks taken and not returned, of all owners, if they are outside the heap.
var inUse atomic.Int64

// InUse returns the bytes of all blocks outside the heap that are in use.
func InUse() int64 { return inUse.Load() }

func sizeOf[T any]() int { return int(unsafe.Sizeof(*new(T))) }
