package server

import (
	"strconv"
	"strings"
	"sync"

	"github.com/weir-project/weir/engine"
)

// batch holds the operations of one pipeline until they are decided. Only a
// connection that has operations waiting holds one, so that ten thousand idle
// connections hold none. Behind their length ops and incrs are zero.
type batch struct {
	ops       []engine.Op
	decisions []engine.Decision
	queue     []deferred
	incrs     []engine.Incr   // what ops point to
	scripts   []engine.Script // and these too
	bytes     []byte          // holder ids the server has made
	pairs     []engine.Pair   // of checks
	values    int             // bytes of strings that the answers may have
}

// deferred is one command whose reply waits for its operations.
type deferred struct {
	cmd *commandInfo
	ops int
}

type batchPool struct{ pool sync.Pool }

func newBatchPool() *batchPool {
	return &batchPool{pool: sync.Pool{New: func() any { return new(batch) }}}
}

func (p *batchPool) get() *batch { return p.pool.Get().(*batch) }

func (p *batchPool) put(b *batch) {
	b.truncate(0)
	clear(b.incrs)
	clear(b.pairs)
	if b.values > 0 {
		clear(b.decisions)
		clear(b.scripts)
	}
	b.queue, b.incrs, b.scripts, b.bytes, b.pairs, b.values = b.queue[:0], b.incrs[:0], b.scripts[:0], b.bytes[:0], b.pairs[:0], 0
	p.pool.Put(b)
}

// next adds a zero operation. The pointer is good until the following call.
func (b *batch) next() *engine.Op {
	n := len(b.ops)
	if n == cap(b.ops) {
		b.ops = append(b.ops, engine.Op{})
		clear(b.ops[n:cap(b.ops)])
	}
	b.ops = b.ops[:n+1]
	return &b.ops[n]
}

// truncate takes back the operations from n on, and what they refer to.
func (b *batch) truncate(n int) {
	clear(b.ops[n:])
	b.ops = b.ops[:n]
}

// room returns a slice of decisions for ops.
func (b *batch) room() []engine.Decision {
	if len(b.decisions) < len(b.ops) {
		b.decisions = make([]engine.Decision, cap(b.ops))
	}
	return b.decisions[:len(b.ops)]
}

// shownBatch is a batch as SLOWLOG shows it: its first command, whose arguments
// are gone but for the key, and how many came with it.
func shownBatch(b *batch) []string {
	shown := []string{strings.ToUpper(b.queue[0].cmd.full), string(b.ops[0].Key)}
	if more := len(b.queue) - 1; more > 0 {
		shown = append(shown, "... ("+strconv.Itoa(more)+" more commands of the pipeline)")
	}
	return shown
}
