package service

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-project/weir/engine"
)

// Batch holds the operations of one pipeline until they are decided. Only a connection with waiting operations holds a
// Batch, so ten thousand idle connections hold none. Elements beyond the length of Ops and incrs are zero.
type Batch struct {
	Ops     []engine.Op
	room    []engine.Decision // memory for Decisions
	Queue   []Deferred
	incrs   []engine.Incr   // Ops point to these
	scripts []engine.Script // Ops point to these
	bytes   []byte          // holder ids that the server generated
	Pairs   []engine.Pair   // of checks
	Values  int             // bytes of strings that the answers may contain
}

// Deferred is one command whose reply waits for its operations.
type Deferred struct {
	Cmd *Command
	Ops int // the number of its operations
}

type batchPool struct{ pool sync.Pool }

func newBatchPool() *batchPool {
	return &batchPool{pool: sync.Pool{New: func() any { return new(Batch) }}}
}

// Get returns an empty batch, which belongs to the caller until Put.
func (p *batchPool) Get() *Batch { return p.pool.Get().(*Batch) }

// Put takes a batch back and clears it. The caller must no longer use the batch, nor its operations and decisions.
func (p *batchPool) Put(b *Batch) {
	b.Truncate(0)
	clear(b.incrs)
	clear(b.Pairs)
	if b.Values > 0 {
		clear(b.room)
		clear(b.scripts)
	}
	b.Queue, b.incrs, b.scripts, b.bytes, b.Pairs, b.Values = b.Queue[:0], b.incrs[:0], b.scripts[:0],
		b.bytes[:0], b.Pairs[:0], 0
	p.pool.Put(b)
}

// Next appends a zero operation. The pointer is valid until the next call.
func (b *Batch) Next() *engine.Op {
	n := len(b.Ops)
	if n == cap(b.Ops) {
		b.Ops = append(b.Ops, engine.Op{})
		clear(b.Ops[n:cap(b.Ops)])
	}
	b.Ops = b.Ops[:n+1]
	return &b.Ops[n]
}

// Truncate removes the operations from n on, and their references.
func (b *Batch) Truncate(n int) {
	clear(b.Ops[n:])
	b.Ops = b.Ops[:n]
}

// Decisions returns a slice for the decisions on Ops.
func (b *Batch) Decisions() []engine.Decision {
	if len(b.room) < len(b.Ops) {
		b.room = make([]engine.Decision, cap(b.Ops))
	}
	return b.room[:len(b.Ops)]
}

// shownBatch returns a batch as SLOWLOG shows it: its first command with the key only, and the number of further
// commands.
func shownBatch(b *Batch) []string {
	shown := []string{strings.ToUpper(b.Queue[0].Cmd.Full), string(b.Ops[0].Key)}
	if more := len(b.Queue) - 1; more > 0 {
		shown = append(shown, "... ("+strconv.Itoa(more)+" more commands of the pipeline)")
	}
	return shown
}

// NextScript appends a zero script. Earlier scripts stay at the addresses that operations point to.
func (b *Batch) NextScript() *engine.Script {
	b.scripts = append(b.scripts, engine.Script{})
	return &b.scripts[len(b.scripts)-1]
}

// NewHolder returns an unguessable holder id: 128 random bits.
func (b *Batch) NewHolder() []byte {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	start := len(b.bytes)
	b.bytes = hex.AppendEncode(b.bytes, random[:])
	return b.bytes[start:len(b.bytes):len(b.bytes)]
}

// NextIncr appends a zero INCREX argument. Earlier arguments stay at the addresses that operations point to.
func (b *Batch) NextIncr() *engine.Incr {
	b.incrs = append(b.incrs, engine.Incr{})
	return &b.incrs[len(b.incrs)-1]
}
