package commands

import "sync/atomic"

// Budget counts the bytes that all connections together hold for something each
// may hold a little of: one client is bounded by its own limit, ten thousand of
// them by MaxHeldBytes.
type Budget struct{ Used atomic.Int64 }

// Take reserves n bytes, or reports that there are not as many left.
func (b *Budget) Take(n int) bool {
	if b.Used.Add(int64(n)) > MaxHeldBytes {
		b.Give(n)
		return false
	}
	return true
}

// Give hands back what take reserved.
func (b *Budget) Give(n int) { b.Used.Add(-int64(n)) }
