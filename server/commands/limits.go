package commands

import (
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

// The limits of sessions and of the commands.
const (
	// DefaultMaxBulkBytes bounds one argument. Keys end at 512 bytes; what is left
	// is room for scripts sent with EVAL and for policy text.
	DefaultMaxBulkBytes = 64 << 10
	// DefaultMaxValueBytes bounds a string that a client keeps: ten times what Bucket4j
	// keeps of a bucket with several bandwidths. A library that keeps more, as a cache
	// does, is another use than limiting and has to be asked for.
	DefaultMaxValueBytes = 4 << 10

	// MaxBatch bounds the operations that wait in one connection for one call to
	// the Limiter: enough to spread the cost of the call, little enough that others
	// get their turn within a fraction of a millisecond.
	MaxBatch = 1024
	// maxBatchValues bounds the bytes of strings that the answers to such a call, or of a
	// transaction, may have: those of a full batch at the default --max-value-bytes.
	maxBatchValues = MaxBatch * DefaultMaxValueBytes
	// MaxHeldBytes bounds what all connections together hold in transactions that
	// wait for EXEC, in replies beyond keptReplyBytes and in pushed messages that
	// wait for a reader: as much as a few hundred such clients need.
	MaxHeldBytes = 256 << 20
	// freeTransactionBytes of a transaction do not count in it, so that clients who
	// hoard never keep others from an ordinary one.
	freeTransactionBytes = 16 << 10
	// queuedCommandBytes and queuedArgBytes are what a queued command and each of
	// its arguments take besides the bytes of the arguments.
	queuedCommandBytes = 64
	queuedArgBytes     = 32
	// maxExecBytes is how long the replies of one transaction may get before its
	// remaining lookups are refused: a thousand KEYS would be gigabytes.
	maxExecBytes = 1 << 20
	// maxClientTextBytes bounds the names a client gives itself and its library:
	// CLIENT LIST shows them for everyone.
	maxClientTextBytes = 256
	// maxPatternBytes bounds a glob: none needs to be longer than a key, and the work of
	// matching grows with its length.
	maxPatternBytes = engine.MaxKeyLen

	// DefaultMaxClients is Redis' own default. It needs as many file descriptors.
	DefaultMaxClients = 10_000
	// KeepAliveIdle finds peers that vanished without a word: Redis' 300 s, then a few probes.
	KeepAliveIdle = 300 * time.Second
)

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
