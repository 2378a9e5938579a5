package queue

import (
	"github.com/weir-project/weir/raftstore/wire"
)

// ready reports whether the oldest batch may be proposed. The in-flight window must have space. Besides, either the
// window of the host must have released the queue, or the operations fill an entry.
func (q *Queue) ready() bool {
	return !q.paused && q.slots > 0 && len(q.Batches) > 0 && (q.released || q.ops >= MaxEntryOps)
}

// take removes the oldest batch from the queue.
func (q *Queue) take() *Batch {
	b := q.Batches[0]
	q.Batches[0] = nil
	q.Batches = q.Batches[1:]
	q.ops -= b.Ops
	return b
}

// Coalesce moves the oldest waiting batch into the entry of b, if it fits. On the leader, calls of its own clients
// and of other nodes are in separate batches, and can share an entry.
func (q *Queue) Coalesce(b *Batch) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if b.Kind != wire.Decide || len(q.Batches) == 0 {
		return
	}
	if next := q.Batches[0]; next.Kind == wire.Decide && b.fits(next.Ops, len(next.Body()), next.textBytes) {
		b.coalesce(q.take())
		q.inFlight[next.Nonce] = next
	}
}
