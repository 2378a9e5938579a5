package queue

import (
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// Batch is what becomes one entry: the calls of many callers, and later their
// answers.
type Batch struct {
	Kind  wire.Kind
	Data  []byte // the header's place, then the body
	enc   wire.Encoder
	Ops   int
	said  int // bytes of strings that the answers may have
	Nonce uint64
	// Format is the oldest that has all operations.
	Format byte
	// Foreign calls come from other nodes: they took this one for the leader, and when
	// it is not they have to look for another themselves. Sent on from here they would
	// wait in a circle.
	Foreign bool
	// MoveNs is how far the entry moves a test clock.
	MoveNs int64
	Born   time.Time
	// coalesced goes in the same entry, with its answers from riderFrom on; see queue.board.
	coalesced     *Batch
	coalescedFrom int
	// Growth and evicts are the bytes that the entry may add and those of its victims; see
	// makeRoom.
	Growth, Evicts int64

	// Out holds the answers. The machine fills it before finish; callers read it after.
	Out      []engine.Decision
	finished atomic.Bool
	Err      error
	Done     chan struct{} // closed by finish
}

func NewBatch(kind wire.Kind, nonce uint64) *Batch {
	return &Batch{
		Kind: kind, Nonce: nonce, Format: wire.Oldest, Born: time.Now(),
		Data: make([]byte, wire.HeaderLen, 4<<10),
		Done: make(chan struct{}),
	}
}

// Append adds a call and returns where its answers will be.
func (b *Batch) Append(ops []engine.Op, atomic bool) (from int) {
	b.Data = b.enc.Call(b.Data, ops, atomic)
	for i := range ops {
		b.Format = max(b.Format, wire.FormatOf(&ops[i]))
	}
	from = b.Ops
	b.Ops += len(ops)
	return from
}

// fits reports whether there is room for a call of this size, whose answers may have so many
// bytes of strings.
func (b *Batch) fits(ops, bytes, said int) bool {
	return b.Ops+ops <= MaxEntryOps && len(b.Data)+bytes <= MaxEntryBytes && b.said+said <= maxAnswerBytes
}

// coalesce takes another batch into the same entry. Its calls are read as they are behind any others.
func (b *Batch) coalesce(next *Batch) {
	b.coalesced, b.coalescedFrom = next, b.Ops
	b.Data = append(b.Data, next.Body()...)
	b.enc.Reset() // who appends next knows nothing of what the next ended with
	b.Ops += next.Ops
	b.said += next.said
	b.Format = max(b.Format, next.Format)
}

// Body is what the calls of the batch were written to.
func (b *Batch) Body() []byte { return b.Data[wire.HeaderLen:] }

// Answers returns the place for the answers.
func (b *Batch) Answers() []engine.Decision {
	if b.Out == nil {
		b.Out = make([]engine.Decision, b.Ops)
	}
	return b.Out
}

// Complete is finish for a batch that has been in flight, and for the batch coalesced with it.
func (b *Batch) Complete(err error) {
	if r := b.coalesced; r != nil {
		if err == nil && !r.finished.Load() { // else nobody looks, or they have it
			r.Out = b.Out[b.coalescedFrom:]
		}
		r.finish(err)
	}
	b.finish(err)
}

// finish wakes the callers; only the first outcome counts.
func (b *Batch) finish(err error) {
	if b.finished.CompareAndSwap(false, true) {
		b.Err = err
		close(b.Done)
	}
}
