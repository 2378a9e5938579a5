package queue

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
	// MaxEntryOps and maxEntryBytes close an entry: large enough that the cost of an
	// entry is spread over many operations, small enough that one is applied in well
	// under a millisecond.
	MaxEntryOps   = 1024
	MaxEntryBytes = 128 << 10
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
	// MaxInFlight bounds the entries, or batches on their way to the leader, that
	// have not been answered. Two keep disk and network busy at once; a few more serve
	// where a majority is far away.
	MaxInFlight = 4
	// worthOps make an entry that goes beside others: the operations then cost as much as
	// it does (measured with 1 to 1024, at every depth of pipeline: 256 was best or even).
	worthOps = 256
	// coalesceFor is how long what was sent last may be under way until what waits goes,
	// however little it is: longer than a commit takes on a good disk in one
	// data centre. An entry in so long costs a node a few hundredths of a processor.
	coalesceFor = 5 * time.Millisecond
)

// Queue gathers the operations of all callers into batches until the pump takes
// them: when something lands, or when they have become worth an entry of their own
// (inflight.go).
type Queue struct {
	Mu      sync.Mutex
	changed *sync.Cond
	Batches []*Batch
	ops     int
	slots   int // batches that may still be under way
	nonce   uint64
	closed  bool
	paused  bool // next waits
	// valueBytes is how long a string in an answer may be.
	valueBytes int
	// inFlight holds the proposed batches by nonce, and the batches that coalesced with them.
	inFlight map[uint64]*Batch
	sentAt   time.Time   // when the newest of them left
	late     *time.Timer // goes off when it has been under way for too long
}

func New(valueBytes int) *Queue {
	q := &Queue{valueBytes: valueBytes, slots: MaxInFlight, nonce: rand.Uint64(), inFlight: map[uint64]*Batch{}}
	q.changed = sync.NewCond(&q.Mu)
	q.late = time.AfterFunc(coalesceFor, q.nudge)
	return q
}

// Add appends a call to the open batch and returns it and where the call's answers
// will be. A call without operations only waits for the next entry.
func (q *Queue) Add(ops []engine.Op, atomic, foreign bool) (*Batch, int, error) {
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
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.closed {
		return nil, 0, failure.ErrTryAgain
	}
	if q.ops+len(ops) > maxQueuedOps {
		return nil, 0, failure.ErrOverloaded
	}
	b := q.open(len(ops), bytes, said, foreign)
	b.said += said
	q.ops += len(ops)
	at := b.Append(ops, atomic)
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
func (q *Queue) open(ops, bytes, said int, foreign bool) *Batch {
	for _, b := range slices.Backward(q.Batches[max(len(q.Batches)-2, 0):]) {
		if b.Kind != wire.Decide {
			break
		}
		if b.Foreign == foreign {
			if b.fits(ops, bytes, said) {
				return b
			}
			break
		}
	}
	b := q.push(wire.Decide)
	b.Foreign = foreign
	return b
}

// push adds an empty batch.
func (q *Queue) push(kind wire.Kind) *Batch {
	q.nonce++
	b := NewBatch(kind, q.nonce)
	q.Batches = append(q.Batches, b)
	return b
}

// Special adds an entry of another kind.
func (q *Queue) Special(kind wire.Kind) (*Batch, error) { return q.Moving(kind, 0) }

// Moving is special for an entry that moves a test clock.
func (q *Queue) Moving(kind wire.Kind, moveNs int64) (*Batch, error) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.closed {
		return nil, failure.ErrTryAgain
	}
	b := q.push(kind)
	b.MoveNs = moveNs
	q.changed.Broadcast()
	return b, nil
}

// Next waits for a batch that may go; nil when the queue is closed.
func (q *Queue) Next() *Batch {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	for !q.closed && !q.ready() {
		q.changed.Wait()
	}
	if q.closed {
		return nil
	}
	b := q.take()
	q.slots--
	q.inFlight[b.Nonce], q.sentAt = b, time.Now()
	q.late.Reset(coalesceFor)
	return b
}

// Complete gives a slot back and tells the callers of the batch.
func (q *Queue) Complete(b *Batch, err error) {
	q.Mu.Lock()
	delete(q.inFlight, b.Nonce)
	if b.coalesced != nil {
		delete(q.inFlight, b.coalesced.Nonce)
	}
	q.slots++
	q.changed.Broadcast()
	q.Mu.Unlock()
	b.Complete(err)
}

// Pause lets nothing more under way, and returns when nothing is or ctx ends.
func (q *Queue) Pause(ctx context.Context) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.paused = true
	q.await(ctx, func() bool { return len(q.inFlight) == 0 })
}

// Empty returns when nothing waits and nothing is under way, or ctx ends.
func (q *Queue) Empty(ctx context.Context) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.await(ctx, func() bool { return len(q.inFlight) == 0 && len(q.Batches) == 0 })
}

// await waits for what only changes under the lock, which the caller holds.
func (q *Queue) await(ctx context.Context, is func() bool) {
	stop := context.AfterFunc(ctx, func() {
		q.Mu.Lock()
		defer q.Mu.Unlock()
		q.changed.Broadcast()
	})
	defer stop()
	for !is() && !q.closed && ctx.Err() == nil {
		q.changed.Wait()
	}
}

// Resume ends a pause.
func (q *Queue) Resume() {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.paused = false
	q.changed.Broadcast()
}

// Answers returns the place for the answers to the batch with the given nonce, nil when no such
// batch is under way.
func (q *Queue) Answers(nonce uint64) []engine.Decision {
	q.Mu.Lock()
	b := q.inFlight[nonce]
	q.Mu.Unlock()
	if b == nil {
		return nil
	}
	return b.Answers()
}

// Expire ends the wait for everything older than maxAge: what was not proposed is
// taken out, what was stays under way without its callers.
func (q *Queue) Expire(maxAge time.Duration) {
	q.Mu.Lock()
	var stale []*Batch
	for len(q.Batches) > 0 && time.Since(q.Batches[0].Born) > maxAge {
		stale = append(stale, q.Batches[0])
		q.ops -= q.Batches[0].Ops
		q.Batches = q.Batches[1:]
	}
	var lost []*Batch
	for _, b := range q.inFlight {
		if time.Since(b.Born) > maxAge {
			lost = append(lost, b)
		}
	}
	q.changed.Broadcast() // somebody may wait for an empty queue
	q.Mu.Unlock()
	for _, b := range stale {
		b.finish(failure.ErrTryAgain)
	}
	for _, b := range lost {
		b.finish(failure.ErrUnknown)
	}
}

// Close ends the queue; what was not proposed is not applied.
func (q *Queue) Close() {
	q.Mu.Lock()
	q.closed = true
	q.late.Stop()
	waiting := q.Batches
	q.Batches = nil
	q.changed.Broadcast()
	q.Mu.Unlock()
	for _, b := range waiting {
		b.finish(failure.ErrTryAgain)
	}
}
