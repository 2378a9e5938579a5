package engine

import "github.com/weir-project/weir/engine/internal/store"

// drainRounds bounds the rounds of a Drain beside decisions. Each hands out what has changed during the one before it.
const drainRounds = 4

// Drain hands out the changes since the last Drain and clears them. Of an operation, it hands out all changes or none,
// whatever number of entries it changed. A chunk has at most maxChunk entries, or a few megabytes. Two changes of one
// limiter are handed out in their order. Drain stops at the first error of emit, and does not hand out that chunk
// again. No lock is held while emit runs. Drain must not run concurrently with itself.
//
// Drain runs beside decisions. Of each shard it hands out the state of one moment. If operations have changed several
// shards, or written events, it goes on for a few rounds, until a round has less than a chunk. It then stops decisions
// while it copies the changes made during that round.
func (t *Table) Drain(maxChunk int, emit func([]Change) error) error {
	d := drain{t: t, most: maxChunk, emit: emit}
	for range drainRounds {
		before := d.handed
		d.round()
		if d.hand(); d.handed-before < maxChunk || !d.joint() {
			break
		}
	}
	if d.err != nil || !d.joint() {
		return d.err
	}
	all := t.everyShard(nil)
	t.lockShards(all)
	d.stopped = true
	d.round()
	for i := range t.shards {
		t.shards[i].ForgetJoint()
	}
	t.unlock(all)
	d.hand()
	return d.err
}

// drain is the work of one Drain.
type drain struct {
	t       *Table
	most    int // changes of a chunk
	emit    func([]Change) error
	err     error // of emit
	stopped bool  // the shards are locked, so full chunks wait
	batch   store.Batch
	waiting []store.Batch
	out     []Change
	handed  int // changes handed out
}

// round collects all changes, and hands out full chunks.
func (d *drain) round() {
	d.t.drainPolicies(&d.batch)
	d.t.order.drain(&d.batch)
	for i := range d.t.shards {
		for d.err == nil && d.some(&d.t.shards[i]) {
			d.handFull()
		}
	}
	for d.err == nil && d.t.events.Drain(d.most-d.batch.Len(), d.addEvent) {
		d.handFull()
	}
}

// some collects changes of a shard, until the chunk is full or a lock was held for long, and reports whether more are
// left.
func (d *drain) some(s *shard) (more bool) {
	if !d.stopped {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	s.flushForgotten()
	return s.DrainBatch(&d.batch, d.most-d.batch.Len())
}

// joint reports whether an operation may have been handed out in part. Such an operation has ended by the end of the
// round.
func (d *drain) joint() bool {
	for i := range d.t.shards {
		s := &d.t.shards[i]
		s.mu.Lock()
		joint := s.Joint()
		s.mu.Unlock()
		if joint {
			return true
		}
	}
	return false
}

func (d *drain) addEvent(key string, write func([]byte) []byte) { d.batch.Add(eventClass, key, write) }

// handFull hands out a full chunk, or makes it wait.
func (d *drain) handFull() {
	switch {
	case d.batch.Len() < d.most && !d.batch.Full():
	case d.stopped:
		d.waiting, d.batch = append(d.waiting, d.batch), store.Batch{}
	default:
		d.hand()
	}
}

// hand hands out what was collected.
func (d *drain) hand() {
	for _, b := range append(d.waiting, d.batch) {
		if d.err != nil || b.Len() == 0 {
			continue
		}
		d.handed += b.Len()
		d.out = b.Changes(d.out[:0])
		d.err = d.emit(d.out)
	}
	d.waiting = nil
	d.batch.Reset()
}
