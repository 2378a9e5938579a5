package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/wire"
)

// All nodes must evict the same entries, although each has its own memory. So evictions are operations in the log.
// The leader chooses them by the memory of its own node, and adds them to entries that add keys. It holds a batch
// back while the entries in flight may take all memory that is left.
const (
	// growthPerOp and growthPerByte are estimates of the most memory that an operation and a byte of its encoding
	// take. They cover an entry and a remembered ID, both with the key and rounded up to the next slot length, and a
	// block of a log. A check of many limits may take more memory. Later entries then evict more.
	growthPerOp, growthPerByte = 256, 3
	// maxVictims bounds the evictions of one entry, and so the time to choose and to apply them to some milliseconds.
	maxVictims = 2048
	// othersPause is the pause before a group looks again whether larger groups have evicted. noWaitFor is how long it
	// does not wait for them after a wait without result.
	othersPause, noWaitFor = 10 * time.Millisecond, 10 * time.Second
	// maxHold bounds how long a batch is held back for evictions. A new leader with a smaller bound than the previous
	// leader evicts for longer, and answers requests meanwhile.
	maxHold = 250 * time.Millisecond
)

// evictions tracks the memory that entries in flight take and free.
type evictions struct {
	mu      sync.Mutex
	changed *sync.Cond // growth or evicts has changed
	growth  int64      // bytes that entries in flight add at most, as estimated
	evicts  int64      // bytes of the victims that entries in flight name

	noVictims atomic.Bool // the last search found nothing to evict

	noWaitUntil time.Time // see awaitOthers; used by the goroutine of propose alone
}

// newEvictions returns the state of a leader without entries in flight.
func newEvictions() *evictions {
	e := &evictions{}
	e.changed = sync.NewCond(&e.mu)
	return e
}

// add adds what a batch takes and frees when it is in flight. The caller subtracts it when the batch no longer is.
func (e *evictions) add(growth, evicts int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.growth += growth
	e.evicts += evicts
	e.changed.Broadcast()
}

func (e *evictions) inFlight() (growth, evicts int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.growth, e.evicts
}

// awaitChange waits until the field growth differs from the argument.
func (e *evictions) awaitChange(growth int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.growth == growth {
		e.changed.Wait()
	}
}

// admitMemory waits until memory for a batch is available, at most maxHold. It adds evictions to the batch when
// memory is above the soft level.
func (p *Pipeline) admitMemory(b *queue.Batch, r *leadership.Term) {
	if p.MaxMemory == 0 || p.DenyWhenFull || b.Kind != wire.Decide {
		return
	}
	b.Growth = growthPerByte*int64(len(b.Body())) + growthPerOp*int64(b.Ops)
	for until := time.Now().Add(maxHold); p.Leadership.Current.Load() == r && time.Now().Before(until); {
		growth, _ := p.evictions.inFlight()
		exceeds := time.Now().After(p.evictions.noWaitUntil) && p.poolExcess(growth+b.Growth) > 0
		if !exceeds && p.Memory.Over(p.used()+growth+b.Growth, budget.High) <= 0 {
			break
		}
		if growth > 0 {
			p.evictions.awaitChange(growth)
		} else if !p.evictNow(r) && !(exceeds && p.awaitOthers(until)) {
			break
		}
	}
	p.evict(b)
	p.evictions.add(b.Growth, b.Evicts)
}

// awaitOthers waits a moment, in which larger groups may evict. It reports false if the node closes. If it reaches the
// end of a hold, the batches of the next noWaitFor are not held for other groups.
func (p *Pipeline) awaitOthers(until time.Time) bool {
	time.Sleep(othersPause)
	if now := time.Now(); !now.Before(until) {
		p.evictions.noWaitUntil = now.Add(noWaitFor)
	}
	return !p.Life.Closing()
}

// evictNow proposes an entry of evictions only and waits until it is applied. It reports false if the search found no
// victim or the entry failed.
func (p *Pipeline) evictNow(r *leadership.Term) bool {
	b := queue.NewBatch(wire.Decide, 0) // no caller waits for its answers
	if p.evict(b); b.Evicts == 0 {
		return false
	}
	return p.Raft.Await(p.apply(b, r)) == nil
}

// evict adds evictions to a batch, as many as bring memory back to the soft level, at most maxVictims. If other
// groups have left no memory, it evicts as much as the batch may add, but nothing of the reserved part.
func (p *Pipeline) evict(b *queue.Batch) {
	growth, evicts := p.evictions.inFlight()
	wanted := p.Memory.Over(p.used()-evicts, budget.Soft)
	wanted = max(wanted, min(p.poolExcess(growth+b.Growth), b.Growth))
	if wanted <= 0 {
		p.evictions.noVictims.Store(false)
		return
	}
	var ops []engine.Op
	at, _ := p.FSM.Last()
	b.Evicts = p.FSM.Table.Load().Victims(at, wanted, maxVictims, func(key, id []byte) {
		ops = append(ops, engine.Op{Code: engine.OpForget, Key: key, ID: id, Cost: 1})
	})
	if p.evictions.noVictims.Store(len(ops) == 0); len(ops) > 0 {
		b.Append(ops, false)
	}
}

// FreeMemory lets the table free pages that other groups need, and calls EvictIfOver.
func (p *Pipeline) FreeMemory() {
	if p.MaxMemory > 0 {
		p.Memory.FreePages()
		p.EvictIfOver()
	}
}

// EvictIfOver begins to evict if this node leads and its memory is above the high level. Without it, memory would stay
// above that level while no calls arrive. It does not block.
func (p *Pipeline) EvictIfOver() {
	if p.over() {
		p.evicting.Go(p.Life.Go, p.evictWhileOver)
	}
}

func (p *Pipeline) over() bool {
	return p.Leadership.Current.Load() != nil && !p.DenyWhenFull && p.full(budget.High)
}

// evictWhileOver proposes one entry of evictions after the other.
func (p *Pipeline) evictWhileOver() {
	for p.over() {
		b, err := p.Queue.Special(wire.Decide)
		if err != nil {
			return
		}
		if <-b.Done; b.Err != nil || p.evictions.noVictims.Load() {
			return
		}
	}
}
