package queue

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// Batch collects the calls of many callers that become one log entry, and later holds their answers.
type Batch struct {
	Kind      wire.Kind
	Data      []byte // space for the header, then the body
	enc       wire.Encoder
	Ops       int
	textBytes int // upper bound of the bytes of strings in the answers
	Nonce     uint64
	Forms     wire.Forms // of all operations
	// Foreign marks a batch whose calls came from other nodes, which took this node for the leader. If this node does
	// not lead, the calls fail, and the other nodes look for the leader. This node must not forward them again,
	// because calls could circulate between nodes.
	Foreign bool
	// MoveNs is the distance by which the entry moves a test clock.
	MoveNs int64
	Born   time.Time
	// coalesced is the batch that shares the entry. Its answers begin at coalescedFrom; see Queue.Coalesce.
	coalesced     *Batch
	coalescedFrom int
	round         uint64 // of the HostWindow
	// Growth is the estimated number of bytes that the entry adds at most, and Evicts is the number of bytes of its
	// victims; see Pipeline.admitMemory.
	Growth, Evicts int64

	// Out holds the answers. The FSM fills it before finish, and the callers read it after.
	Out      []engine.Decision
	finished atomic.Bool
	Err      error
	Done     chan struct{} // closed by finish
}

// NewBatch returns an empty batch.
func NewBatch(kind wire.Kind, nonce uint64) *Batch {
	return &Batch{
		Kind: kind, Nonce: nonce, Forms: wire.FormsOf(nil), Born: time.Now(),
		Data: make([]byte, wire.HeaderLen, 4<<10),
		Done: make(chan struct{}),
	}
}

// Append adds a call and returns the index of its first answer.
func (b *Batch) Append(ops []engine.Op, atomic bool) (from int) {
	b.Data = b.enc.Call(b.Data, ops, atomic)
	return b.count(len(ops), wire.FormsOf(ops))
}

// splice adds encoded calls with so many operations, and returns the index of their first answer.
func (b *Batch) splice(body []byte, ops int, forms wire.Forms) (from int) {
	b.Data = append(b.Data, body...)
	b.enc.Reset() // the calls end with a limit that enc does not know
	return b.count(ops, forms)
}

// count counts operations that Data has, and returns the index of their first answer.
func (b *Batch) count(ops int, forms wire.Forms) (from int) {
	b.Forms.Raise(forms)
	from = b.Ops
	b.Ops += ops
	return from
}

// fits reports whether the batch has space for a call with so many operations, bytes, and bytes of strings in its
// answers.
func (b *Batch) fits(ops, bytes, textBytes int) bool {
	return b.Ops+ops <= MaxEntryOps && len(b.Data)+bytes <= MaxEntryBytes && b.textBytes+textBytes <= maxAnswerBytes
}

// coalesce appends the calls of another batch, so that both share one entry.
func (b *Batch) coalesce(next *Batch) {
	b.coalesced, b.coalescedFrom = next, b.Ops
	b.Data = append(b.Data, next.Body()...)
	b.enc.Reset() // the appended calls end with a limit that enc does not know
	b.count(next.Ops, next.Forms)
	b.textBytes += next.textBytes
}

// Entry returns the bytes of the log entry. The Raft library keeps the latest entries in memory. So a short entry, such
// as one of an idle group, is copied and does not keep the buffer of a typical batch.
func (b *Batch) Entry() []byte {
	if 4*len(b.Data) > cap(b.Data) {
		return b.Data
	}
	return slices.Clone(b.Data)
}

// Body returns the encoded calls of the batch.
func (b *Batch) Body() []byte { return b.Data[wire.HeaderLen:] }

// Answers returns the slice for the answers.
func (b *Batch) Answers() []engine.Decision {
	if b.Out == nil {
		b.Out = make([]engine.Decision, b.Ops)
	}
	return b.Out
}

// ownOps returns the number of operations of clients of this node in the entry.
func (b *Batch) ownOps() (n int) {
	if !b.Foreign {
		n = b.Ops
	}
	switch c := b.coalesced; {
	case c != nil && c.Foreign && !b.Foreign:
		n -= c.Ops
	case c != nil && !c.Foreign && b.Foreign:
		n += c.Ops
	}
	return n
}

// Complete finishes a batch that was in flight, and the batch that coalesced with it.
func (b *Batch) Complete(err error) {
	if r := b.coalesced; r != nil {
		if err == nil && !r.finished.Load() { // otherwise its callers have an outcome, or get an error
			r.Out = b.Out[b.coalescedFrom:]
		}
		r.finish(err)
	}
	b.finish(err)
}

// finish wakes the callers. Only the first outcome counts.
func (b *Batch) finish(err error) {
	if b.finished.CompareAndSwap(false, true) {
		b.Err = err
		close(b.Done)
	}
}
