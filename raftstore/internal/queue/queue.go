package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// MaxEntryOps and MaxEntryBytes bound an entry. It is large enough to spread its cost over many operations, and
	// small enough to be applied in well under a millisecond.
	MaxEntryOps   = 1024
	MaxEntryBytes = 128 << 10
	// maxCallBytes bounds the encoded operations of one step. They go into one entry, and on a follower into one call
	// to the leader. Both have the same bound, so a transaction is accepted or refused alike on every node.
	maxCallBytes = peer.MaxPayload
	// maxAnswerBytes bounds the strings in the answers to an entry. A follower receives them in one message, together
	// with the numbers. One call has a smaller bound; see package server.
	maxAnswerBytes = maxCallBytes / 2
	// maxQueuedOps bounds the operations that wait to be proposed. At the lowest useful rate they are still answered
	// within the maximum age of a decision.
	maxQueuedOps = 64 << 10
	// MaxInFlight bounds the in-flight window: entries, or batches on their way to the leader, without an answer. Two
	// entries keep disk and network busy at the same time. More entries help when a majority is far away.
	MaxInFlight = 4
)

// Queue collects the operations of all callers into batches until the pump takes them. The pump takes a batch when the
// window of the host lets it go, or when it fills an entry (inflight.go).
type Queue struct {
	Mu      sync.Mutex
	changed *sync.Cond
	Batches []*Batch
	ops     int
	slots   int // free places of the in-flight window
	nonce   uint64
	closed  bool
	paused  bool // Next waits
	// valueBytes is the greatest length of a string in an answer.
	valueBytes int
	// inFlight holds the proposed batches by nonce, and the batches that coalesced with them.
	inFlight map[uint64]*Batch

	window   *HostWindow
	listed   bool // the queue is in window.waiting; guarded by the window
	released bool // window lets the waiting batches go
}

// New returns an empty queue. valueBytes bounds the length of a string in an answer.
func New(valueBytes int, window *HostWindow) *Queue {
	q := &Queue{
		valueBytes: valueBytes, slots: MaxInFlight, nonce: rand.Uint64(), inFlight: map[uint64]*Batch{}, window: window,
	}
	q.changed = sync.NewCond(&q.Mu)
	return q
}

// Add appends a call to the open batch. It returns the batch and the index of the call's first answer. A call without
// operations only waits for the next entry. After any error, nothing is counted.
func (q *Queue) Add(ops []engine.Op, atomic, foreign bool) (*Batch, int, error) {
	bytes := 0
	for i := range ops {
		if !wire.Valid(&ops[i]) {
			return nil, 0, failure.ErrInvalidOp
		}
		bytes += wire.Estimate(&ops[i])
	}
	if bytes > maxCallBytes/estimateShare && encodedBytes(ops, atomic) > maxCallBytes {
		return nil, 0, limiter.ErrTooLarge
	}
	return q.add(ops, bytes, foreign, func(b *Batch) int { return b.Append(ops, atomic) })
}

// Splice appends the encoded calls of another node to the open batch, as Add appends a call. A decoder has read ops
// from body, so they are valid. forms are their forms.
func (q *Queue) Splice(body []byte, ops []engine.Op, forms wire.Forms) (*Batch, int, error) {
	return q.add(ops, len(body), true, func(b *Batch) int { return b.splice(body, len(ops), forms) })
}

// add puts operations of a size into the open batch.
func (q *Queue) add(ops []engine.Op, bytes int, foreign bool, put func(*Batch) (from int)) (*Batch, int, error) {
	textBytes := 0
	for i := range ops {
		if ops[i].AnswersText() {
			textBytes += q.valueBytes
		}
	}
	var others []*Queue
	defer func() {
		if others != nil {
			release(others) // after q.Mu is unlocked
		}
	}()
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.closed {
		return nil, 0, limiter.ErrTryAgain
	}
	if q.ops+len(ops) > maxQueuedOps {
		return nil, 0, limiter.ErrOverloaded
	}
	b := q.open(len(ops), bytes, textBytes, foreign)
	b.textBytes += textBytes
	q.ops += len(ops)
	at := put(b)
	if !q.released {
		q.released, others = q.window.arrive(q, len(ops))
	}
	if q.ready() {
		q.changed.Broadcast()
	}
	return b, at, nil
}

// estimateShare is the factor by which encoded operations can exceed wire.Estimate. The estimate assumes 48 bytes for
// the numbers of an operation, and they take at most 150.
const estimateShare = 4

// encodedBytes returns the length of operations as the log writes them.
func encodedBytes(ops []engine.Op, atomic bool) int {
	var e wire.Encoder
	return len(e.Call(nil, ops, atomic))
}

// open returns the batch for a call of this size. That is the last batch or the last but one, if it has the same
// origin and space, or else a new batch. A call never overtakes an entry of another kind.
func (q *Queue) open(ops, bytes, textBytes int, foreign bool) *Batch {
	for _, b := range slices.Backward(q.Batches[max(len(q.Batches)-2, 0):]) {
		if b.Kind != wire.Decide {
			break
		}
		if b.Foreign == foreign {
			if b.fits(ops, bytes, textBytes) {
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

// Special adds a batch of another kind than wire.Decide, or an empty one.
func (q *Queue) Special(kind wire.Kind) (*Batch, error) { return q.Moving(kind, 0) }

// Moving adds a batch that moves a test clock.
func (q *Queue) Moving(kind wire.Kind, moveNs int64) (*Batch, error) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.closed {
		return nil, limiter.ErrTryAgain
	}
	b := q.push(kind)
	b.MoveNs = moveNs
	q.released = true
	q.changed.Broadcast()
	return b, nil
}

// Next waits for a batch that may be proposed, and puts it in flight. It returns nil when the queue is closed.
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
	q.inFlight[b.Nonce] = b
	q.released = q.released && len(q.Batches) > 0
	b.round = q.window.sent()
	return b
}

// Complete ends the flight of a batch, frees its place in the in-flight window, and wakes its callers.
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
	q.window.completed(b.round, b.ownOps())
}

// Pause holds back all further batches until Resume. It returns when no batch is in flight or ctx ends.
func (q *Queue) Pause(ctx context.Context) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.paused = true
	q.await(ctx, func() bool { return len(q.inFlight) == 0 })
}

// Empty returns when no batch waits or is in flight, or when ctx ends.
func (q *Queue) Empty(ctx context.Context) {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.await(ctx, func() bool { return len(q.inFlight) == 0 && len(q.Batches) == 0 })
}

// await waits until is reports true, the queue is closed, or ctx ends. Each change of the awaited state must
// broadcast. The caller holds Mu.
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

// Answers returns the slice for the answers to the batch with the given nonce, or nil if no such batch is in flight.
func (q *Queue) Answers(nonce uint64) []engine.Decision {
	q.Mu.Lock()
	b := q.inFlight[nonce]
	q.Mu.Unlock()
	if b == nil {
		return nil
	}
	return b.Answers()
}

// Expire ends the wait for batches older than maxAge. It removes those that were not proposed. The others stay in
// flight without callers.
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
	q.changed.Broadcast() // Empty may be waiting
	q.Mu.Unlock()
	for _, b := range stale {
		b.finish(limiter.ErrTryAgain)
	}
	for _, b := range lost {
		b.finish(limiter.ErrUnknownOutcome)
	}
}

// Close closes the queue. Batches that were not proposed will not be applied.
func (q *Queue) Close() {
	q.Mu.Lock()
	q.closed = true
	waiting := q.Batches
	q.Batches = nil
	q.changed.Broadcast()
	q.Mu.Unlock()
	for _, b := range waiting {
		b.finish(limiter.ErrTryAgain)
	}
}
