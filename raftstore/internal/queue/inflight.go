package queue

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
func (q *Queue) ready() bool {
	if q.paused || q.slots == 0 || len(q.Batches) == 0 {
		return false
	}
	return len(q.inFlight) == 0 || q.ops >= worthOps || time.Since(q.sentAt) >= coalesceFor
}

// nudge looks whether what waits may go because of the time that has passed. Without
// it two nodes that hand leadership over can each hold the other's calls behind a
// batch that waits for the other, until somebody asks for something else.
func (q *Queue) nudge() {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.ready() {
		q.changed.Broadcast()
	}
}

// take takes the oldest batch out.
func (q *Queue) take() *Batch {
	b := q.Batches[0]
	q.Batches[0] = nil
	q.Batches = q.Batches[1:]
	q.ops -= b.Ops
	return b
}

// Coalesce lets the batch that waits behind b go in the same entry, where it fits: on
// the leader the calls of its own clients and those of other nodes need not be apart.
func (q *Queue) Coalesce(b *Batch) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if b.Kind != wire.Decide || len(q.Batches) == 0 {
		return
	}
	if next := q.Batches[0]; next.Kind == wire.Decide && b.fits(next.Ops, len(next.Body()), next.said) {
		b.coalesce(q.take())
		q.inFlight[next.Nonce] = next
	}
}
