package raftstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// maxEntryOps and maxEntryBytes close an entry: large enough that the cost of an
	// entry is spread over many operations, small enough that one is applied in well
	// under a millisecond.
	maxEntryOps   = 1024
	maxEntryBytes = 128 << 10
	// maxCallBytes bounds the operations of one step as the log writes them. They go into
	// one entry, and on a follower into one call to the leader: both have the same bound,
	// so that a transaction does not depend on the node that takes it.
	maxCallBytes = peer.MaxPayload
	// maxAnswerBytes bounds the strings in the answers to an entry: a follower gets them in one
	// message, which has the numbers beside them. One call has less; see package server.
	maxAnswerBytes = maxCallBytes / 2
	// maxQueuedOps bounds the operations that wait to be proposed: at the slowest
	// useful rate they are answered within the age a decision may have.
	maxQueuedOps = 64 << 10
	// maxInFlight bounds the entries, or batches on their way to the leader, that
	// have not been answered. Two keep disk and network busy at once; a few more serve
	// where a majority is far away.
	maxInFlight = 4
	// worthOps make an entry that goes beside others: the operations then cost as much as
	// it does (measured with 1 to 1024, at every depth of pipeline: 256 was best or even).
	worthOps = 256
	// coalesceFor is how long what was sent last may be under way until what waits goes,
	// however little it is: longer than a commit takes on a good disk in one
	// data centre. An entry in so long costs a node a few hundredths of a processor.
	coalesceFor = 5 * time.Millisecond
)

// queue gathers the operations of all callers into batches until the pump takes
// them: when something lands, or when they have become worth an entry of their own
// (inflight.go).
type queue struct {
	mu      sync.Mutex
	changed *sync.Cond
	batches []*batch
	ops     int
	slots   int // batches that may still be under way
	nonce   uint64
	closed  bool
	paused  bool // next waits
	// valueBytes is how long a string in an answer may be.
	valueBytes int
	// inFlight are the batches under way, by nonce, and their riders.
	inFlight map[uint64]*batch
	sentAt   time.Time   // when the newest of them left
	late     *time.Timer // goes off when it has been under way for too long
}

func newQueue(valueBytes int) *queue {
	q := &queue{valueBytes: valueBytes, slots: maxInFlight, nonce: rand.Uint64(), inFlight: map[uint64]*batch{}}
	q.changed = sync.NewCond(&q.mu)
	q.late = time.AfterFunc(coalesceFor, q.nudge)
	return q
}

// add appends a call to the open batch and returns it and where the call's answers
// will be. A call without operations only waits for the next entry.
func (q *queue) add(ops []engine.Op, atomic, foreign bool) (*batch, int, error) {
	bytes, said := 0, 0
	for i := range ops {
		if !wire.Sound(&ops[i]) {
			return nil, 0, failure.ErrUnsound
		}
		bytes += wire.Estimate(&ops[i])
		if ops[i].AnswersText() {
			said += q.valueBytes
		}
	}
	if bytes > maxCallBytes/estimateShare && encodedBytes(ops, atomic) > maxCallBytes {
		return nil, 0, failure.ErrTooLarge
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, 0, failure.ErrTryAgain
	}
	if q.ops+len(ops) > maxQueuedOps {
		return nil, 0, failure.ErrOverloaded
	}
	b := q.open(len(ops), bytes, said, foreign)
	b.said += said
	q.ops += len(ops)
	at := b.append(ops, atomic)
	if q.ready() {
		q.changed.Broadcast()
	}
	return b, at, nil
}

// estimateShare is how many times longer encoded operations may be than wire.Estimate
// says: it assumes 48 bytes for the numbers of an operation, and they take at most 150.
const estimateShare = 4

// encodedBytes returns the length of operations as the log writes them.
func encodedBytes(ops []engine.Op, atomic bool) int {
	var e wire.Encoder
	return len(e.Call(nil, ops, atomic))
}

// open returns the batch that a call of this size goes to: the last one, or the one
// before it, of those that come from where the call does. Nothing overtakes a batch
// of another kind.
func (q *queue) open(ops, bytes, said int, foreign bool) *batch {
	for _, b := range slices.Backward(q.batches[max(len(q.batches)-2, 0):]) {
		if b.kind != wire.Decide {
			break
		}
		if b.foreign == foreign {
			if b.fits(ops, bytes, said) {
				return b
			}
			break
		}
	}
	b := q.push(wire.Decide)
	b.foreign = foreign
	return b
}

// push adds an empty batch.
func (q *queue) push(kind wire.Kind) *batch {
	q.nonce++
	b := newBatch(kind, q.nonce)
	q.batches = append(q.batches, b)
	return b
}

// special adds an entry of another kind.
func (q *queue) special(kind wire.Kind) (*batch, error) { return q.moving(kind, 0) }

// moving is special for an entry that moves a test clock.
func (q *queue) moving(kind wire.Kind, moveNs int64) (*batch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, failure.ErrTryAgain
	}
	b := q.push(kind)
	b.moveNs = moveNs
	q.changed.Broadcast()
	return b, nil
}

// next waits for a batch that may go; nil when the queue is closed.
func (q *queue) next() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && !q.ready() {
		q.changed.Wait()
	}
	if q.closed {
		return nil
	}
	b := q.take()
	q.slots--
	q.inFlight[b.nonce], q.sentAt = b, time.Now()
	q.late.Reset(coalesceFor)
	return b
}

// complete gives a slot back and tells the callers of the batch.
func (q *queue) complete(b *batch, err error) {
	q.mu.Lock()
	delete(q.inFlight, b.nonce)
	if b.coalesced != nil {
		delete(q.inFlight, b.coalesced.nonce)
	}
	q.slots++
	q.changed.Broadcast()
	q.mu.Unlock()
	b.complete(err)
}

// pause lets nothing more under way, and returns when nothing is or ctx ends.
func (q *queue) pause(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = true
	q.await(ctx, func() bool { return len(q.inFlight) == 0 })
}

// empty returns when nothing waits and nothing is under way, or ctx ends.
func (q *queue) empty(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.await(ctx, func() bool { return len(q.inFlight) == 0 && len(q.batches) == 0 })
}

// await waits for what only changes under the lock, which the caller holds.
func (q *queue) await(ctx context.Context, is func() bool) {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})
	defer stop()
	for !is() && !q.closed && ctx.Err() == nil {
		q.changed.Wait()
	}
}

// resume ends a pause.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = false
	q.changed.Broadcast()
}

// answers returns the place for the answers to the batch with the given nonce, nil when no such
// batch is under way.
func (q *queue) answers(nonce uint64) []engine.Decision {
	q.mu.Lock()
	b := q.inFlight[nonce]
	q.mu.Unlock()
	if b == nil {
		return nil
	}
	return b.answers()
}

// expire ends the wait for everything older than maxAge: what was not proposed is
// taken out, what was stays under way without its callers.
func (q *queue) expire(maxAge time.Duration) {
	q.mu.Lock()
	var stale []*batch
	for len(q.batches) > 0 && time.Since(q.batches[0].born) > maxAge {
		stale = append(stale, q.batches[0])
		q.ops -= q.batches[0].ops
		q.batches = q.batches[1:]
	}
	var lost []*batch
	for _, b := range q.inFlight {
		if time.Since(b.born) > maxAge {
			lost = append(lost, b)
		}
	}
	q.changed.Broadcast() // somebody may wait for an empty queue
	q.mu.Unlock()
	for _, b := range stale {
		b.finish(failure.ErrTryAgain)
	}
	for _, b := range lost {
		b.finish(failure.ErrUnknown)
	}
}

// close ends the queue; what was not proposed is not applied.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.late.Stop()
	waiting := q.batches
	q.batches = nil
	q.changed.Broadcast()
	q.mu.Unlock()
	for _, b := range waiting {
		b.finish(failure.ErrTryAgain)
	}
}
