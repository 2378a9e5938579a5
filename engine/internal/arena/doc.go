// Package arena keeps byte slots of a few sizes in pages of 16 KiB, outside the heap that the garbage collector
// marks.
//
// A slab allocates slots, frees them, and reports how many bytes it has. It records changed slots
// in dirty bits. For compaction, a slab selects sparse pages, and the caller moves their slots
// away, so whole pages become free. A chain is a linked list of slots: each begins with the
// reference to the next slot.
//
// The arena does not interpret the bytes of a slot. Only its meters are safe for concurrent use.
// The caller holds the lock that guards a slab.
package arena
