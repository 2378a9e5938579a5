package queue

import (
	"time"

	"github.com/weir-project/weir/raftstore/wire"
)

// An entry costs every node a disk write, a message or two, and half a dozen goroutine wake-ups: as much as hundreds
// of operations. So a small batch waits while another is in flight, and grows. With 50 closed-loop clients and few
// processors, this gives a third more decisions, and no client waits longer (bench/performance.md).

// ready reports whether the oldest batch may be proposed. The in-flight window must have space. Besides, either no
// batch is in flight, or at least worthOps operations wait, or the newest batch in flight left coalesceFor ago. On a
// host with several groups, either the host's window must have released the queue, or the operations fill an entry.
func (q *Queue) ready() bool {
	if q.paused || q.slots == 0 || len(q.Batches) == 0 {
		return false
	}
	if q.window != nil {
		return q.released || q.ops >= MaxEntryOps
	}
	return len(q.inFlight) == 0 || q.ops >= worthOps || time.Since(q.sentAt) >= coalesceFor
}

// wakePump wakes the pump if the oldest batch may be proposed now that coalesceFor has passed. Without this timer, two
// nodes could block each other during a handover. Each could hold the calls of the other node behind a batch that it
// has sent to the other node. Both would wait until the next call.
func (q *Queue) wakePump() {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.ready() {
		q.changed.Broadcast()
	}
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
