package raftstore

import (
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// batch is what becomes one entry: the calls of many callers, and later their
// answers.
type batch struct {
	kind  wire.Kind
	data  []byte // the header's place, then the body
	enc   wire.Encoder
	ops   int
	said  int // bytes of strings that the answers may have
	nonce uint64
	// format is the oldest that has all operations.
	format byte
	// foreign calls come from other nodes: they took this one for the leader, and when
	// it is not they have to look for another themselves. Sent on from here they would
	// wait in a circle.
	foreign bool
	// moveNs is how far the entry moves a test clock.
	moveNs int64
	born   time.Time
	// coalesced goes in the same entry, with its answers from riderFrom on; see queue.board.
	coalesced     *batch
	coalescedFrom int
	// growth and evicts are the bytes that the entry may add and those of its victims; see
	// makeRoom.
	growth, evicts int64

	// out holds the answers. The machine fills it before finish; callers read it after.
	out      []engine.Decision
	finished atomic.Bool
	err      error
	done     chan struct{} // closed by finish
}

func newBatch(kind wire.Kind, nonce uint64) *batch {
	return &batch{
		kind: kind, nonce: nonce, format: wire.Oldest, born: time.Now(),
		data: make([]byte, wire.HeaderLen, 4<<10),
		done: make(chan struct{}),
	}
}

// append adds a call and returns where its answers will be.
func (b *batch) append(ops []engine.Op, atomic bool) (from int) {
	b.data = b.enc.Call(b.data, ops, atomic)
	for i := range ops {
		b.format = max(b.format, wire.FormatOf(&ops[i]))
	}
	from = b.ops
	b.ops += len(ops)
	return from
}

// fits reports whether there is room for a call of this size, whose answers may have so many
// bytes of strings.
func (b *batch) fits(ops, bytes, said int) bool {
	return b.ops+ops <= maxEntryOps && len(b.data)+bytes <= maxEntryBytes && b.said+said <= maxAnswerBytes
}

// coalesce takes another batch into the same entry. Its calls are read as they are behind any others.
func (b *batch) coalesce(next *batch) {
	b.coalesced, b.coalescedFrom = next, b.ops
	b.data = append(b.data, next.body()...)
	b.enc.Reset() // who appends next knows nothing of what the next ended with
	b.ops += next.ops
	b.said += next.said
	b.format = max(b.format, next.format)
}

// body is what the calls of the batch were written to.
func (b *batch) body() []byte { return b.data[wire.HeaderLen:] }

// answers returns the place for the answers.
func (b *batch) answers() []engine.Decision {
	if b.out == nil {
		b.out = make([]engine.Decision, b.ops)
	}
	return b.out
}

// complete is finish for a batch that has been in flight, and for the batch coalesced with it.
func (b *batch) complete(err error) {
	if r := b.coalesced; r != nil {
		if err == nil && !r.finished.Load() { // else nobody looks, or they have it
			r.out = b.out[b.coalescedFrom:]
		}
		r.finish(err)
	}
	b.finish(err)
}

// finish wakes the callers; only the first outcome counts.
func (b *batch) finish(err error) {
	if b.finished.CompareAndSwap(false, true) {
		b.err = err
		close(b.done)
	}
}
