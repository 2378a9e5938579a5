package raftstore

import (
	"time"

	"github.com/weir-project/weir/raftstore/wire"
)

// An entry costs every node a write to its disk, a message or two and half a dozen
// wakings: as much as hundreds of operations. So a batch that is small waits while
// another is under way, and becomes larger. With 50 clients that each wait for their
// answer that is a third more decisions, and no client waits longer, where processors
// are short (docs/performance.md).

// ready reports whether the oldest batch may go: nothing is under way, or what waits
// is worth an entry, or what is under way takes so long that its cost is no matter.
func (q *queue) ready() bool {
	if q.paused || q.slots == 0 || len(q.batches) == 0 {
		return false
	}
	return len(q.inFlight) == 0 || q.ops >= worthOps || time.Since(q.sentAt) >= coalesceFor
}

// nudge looks whether what waits may go because of the time that has passed. Without
// it two nodes that hand leadership over can each hold the other's calls behind a
// batch that waits for the other, until somebody asks for something else.
func (q *queue) nudge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ready() {
		q.changed.Broadcast()
	}
}

// take takes the oldest batch out.
func (q *queue) take() *batch {
	b := q.batches[0]
	q.batches[0] = nil
	q.batches = q.batches[1:]
	q.ops -= b.ops
	return b
}

// coalesce lets the batch that waits behind b go in the same entry, where it fits: on
// the leader the calls of its own clients and those of other nodes need not be apart.
func (q *queue) coalesce(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.kind != wire.Decide || len(q.batches) == 0 {
		return
	}
	if next := q.batches[0]; next.kind == wire.Decide && b.fits(next.ops, len(next.body()), next.said) {
		b.coalesce(q.take())
		q.inFlight[next.nonce] = next
	}
}
