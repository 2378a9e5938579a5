package commands

import (
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

// The limits of sessions and of the commands.
const (
	// DefaultMaxBulkBytes bounds one argument. A key has at most 512 bytes. The rest is for strings, scripts sent with
	// EVAL and policy text. It is above DefaultMaxValueBytes, so that a string that is too long gets an error that
	// says so.
	DefaultMaxBulkBytes = 128 << 10
	// DefaultMaxValueBytes bounds a string that a client keeps. Bucket4j keeps some hundred bytes; Django REST
	// framework keeps a list of 9 bytes for each request of its window, so that 5,000 an hour take 45 KB.
	DefaultMaxValueBytes = 64 << 10

	// MaxBatch bounds the operations of one connection that wait for one call to the Limiter. It is large enough to
	// spread the cost of the call, and small enough that other connections wait less than a millisecond.
	MaxBatch = 1024
	// maxBatchValues bounds the bytes of strings in the answers of one such call or transaction, each counted as
	// --max-value-bytes. It is 64 strings of the default.
	maxBatchValues = 4 << 20
	// MaxHeldBytes bounds the bytes that all connections together hold: in transactions that wait for EXEC, in replies
	// beyond keptReplyBytes of package server, and in pushed messages that wait for a reader. It is enough for a few
	// hundred clients at their own limits.
	MaxHeldBytes = 256 << 20
	// freeTransactionBytes of each transaction do not count in MaxHeldBytes, so that large transactions never prevent
	// an ordinary one.
	freeTransactionBytes = 16 << 10
	// queuedCommandBytes and queuedArgBytes are the memory of a queued command and of each argument, in addition to the
	// bytes of the arguments.
	queuedCommandBytes = 64
	queuedArgBytes     = 32
	// maxExecBytes bounds the replies of one transaction. Beyond it, weir refuses the remaining commands that are not
	// operations, because a thousand KEYS would take gigabytes.
	maxExecBytes = 1 << 20
	// maxClientTextBytes bounds the names that a client gives to itself and its library, because CLIENT LIST shows them
	// to other clients.
	maxClientTextBytes = 256
	// maxPatternBytes bounds a glob. No pattern needs to be longer than a key, and the work of matching grows with its
	// length.
	maxPatternBytes = engine.MaxKeyLen

	// DefaultSentinelName is the name in the configuration that Redis ships for Sentinel.
	DefaultSentinelName = "mymaster"
	// DefaultMaxClients is Redis' own default. It needs as many file descriptors.
	DefaultMaxClients = 10_000
	// KeepAliveIdle is the idle time after which TCP probes a peer that may have vanished: Redis' 300 s.
	KeepAliveIdle = 300 * time.Second
)

// Budget counts bytes that all connections together hold. Each client has a limit of its own, and MaxHeldBytes bounds
// the sum of thousands of clients.
type Budget struct{ Used atomic.Int64 }

// Reserve counts n bytes. It returns false if fewer bytes are left.
func (b *Budget) Reserve(n int) bool {
	if b.Used.Add(int64(n)) > MaxHeldBytes {
		b.Release(n)
		return false
	}
	return true
}

// Release returns bytes that Reserve counted.
func (b *Budget) Release(n int) { b.Used.Add(-int64(n)) }
