package server

import "sync/atomic"

// budget counts the bytes that all connections together hold for something each
// may hold a little of: one client is bounded by its own limit, ten thousand of
// them by maxHeldBytes.
type budget struct{ used atomic.Int64 }

// take reserves n bytes, or reports that there are not as many left.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) > maxHeldBytes {
		b.give(n)
		return false
	}
	return true
}

// give hands back what take reserved.
func (b *budget) give(n int) { b.used.Add(-int64(n)) }
