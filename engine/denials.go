package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// Denials answers operations that Decide would deny without changing anything. For such an operation denied[i]
// is true, out[i] is what Decide would have answered, and the denial is counted. For all others denied[i] is
// false and out[i] is undefined. Denials returns how many it denied. out and denied are at least as long as
// ops.
//
// The leader of a cluster may answer these denials from applied state, without a log entry. So Denials leaves
// nothing behind that a later decision could observe. It never answers an operation with an ID, an operation
// that would put another limit in force, or a strike that counts. The stamp leaves no trace either: it may be
// ahead of the stamp of the next Decide.
//
// Operations on one key keep their order. If Denials does not answer an operation, it does not answer later
// operations on the same key in the same call.
func (t *Table) Denials(at Stamp, ops []Op, out []Decision, denied []bool) (n int) {
	l := denialLook{t: t, at: at}
	defer l.cursor.leave()
	for len(ops) > 0 {
		k := t.policyless(ops)
		if k > 0 {
			n += l.decideBatch(ops[:k], out, denied)
		} else if k, denied[0] = 1, l.check(&ops[0], &out[0]); denied[0] {
			n++
		}
		ops, out, denied = ops[k:], out[k:], denied[k:]
	}
	return n
}

// denialLook is one call of Denials.
type denialLook struct {
	t            *Table
	at           Stamp
	cursor       lockCursor
	waiting      keySet // the keys of operations that are not answered
	policiesWait bool   // a change of a policy or of a hold is not answered: no later check is answered
	allWait      bool   // a change of the blocks everywhere is not answered: no later operation is answered
}

// policyless returns how many operations precede the first operation that uses policies or changes blocks
// everywhere. It returns at most the size of a shard batch.
func (t *Table) policyless(ops []Op) int {
	n := min(len(ops), batchOps)
	for i := range n {
		if c := ops[i].Code; c == OpCheck || c == OpPolicy || c >= OpReserve || t.changesEverywhere(&ops[i]) {
			return i
		}
	}
	return n
}

// decideBatch evaluates plain operations in the order of their shards, like Table.decideBatch.
func (l *denialLook) decideBatch(ops []Op, out []Decision, denied []bool) (n int) {
	var r shardBatch
	r.sort(l.t, ops)
	for _, i := range r.first {
		for ; i != noOp; i = r.next[i] {
			if l.cursor.enter(r.in[i]) {
				r.in[i].look(l.at)
				r.in[i].Brief = true
				r.prefetch(r.in[i], i, ops)
			}
			if denied[i] = l.plain(r.in[i], r.hash[i], &ops[i], &out[i]); denied[i] {
				n++
			}
		}
	}
	return n
}

// plain answers an operation if it is denied and leaves no trace. The caller has called look on the shard.
func (l *denialLook) plain(s *shard, h uint64, op *Op, d *Decision) bool {
	home := h
	if Reserved(op.Key) { // a later check on the key of this limiter must wait for this operation
		home = l.t.hashKey(routingKey(op.Key))
	}
	c := store.Cell{Hash: h, Key: op.Key}
	if l.allWait || l.waiting.has(home) || !op.mayBeDenial() || !s.denies(&c, op, d) {
		l.waiting.add(home)
		return false
	}
	s.tally(op.Limit.Algorithm, &c, op, op.Cost, d)
	return true
}

// check is plain for an operation that uses policies.
func (l *denialLook) check(op *Op, d *Decision) bool {
	if !l.allWait && !l.policiesWait && l.t.deniesCheck(l.at, op, d, &l.cursor, &l.waiting) {
		return true
	}
	l.t.await(&l.waiting, op)
	l.allWait = l.allWait || l.t.changesEverywhere(op)
	// The operations on holds act on keys that are not known here, so all later checks wait.
	l.policiesWait = l.policiesWait || op.Code != OpCheck && op.Code != OpReserve && op.Code != OpForgive
	return false
}

// mayBeDenial reports whether an operation can be denied without leaving a trace.
func (op *Op) mayBeDenial() bool {
	return (op.Code == OpTake || op.Code == OpCheck && op.Else == 0) && op.counts() && len(op.ID) == 0
}

// keySet is a set of keys by their hashes. It may report keys that were not added.
type keySet [64]uint64

// bit returns the bit of a hash. It uses bits of the hash that choose neither the shard nor the segment of a
// small table.
func (k *keySet) bit(h uint64) (word *uint64, bit uint64) {
	return &k[h>>26%64], 1 << (h >> 20 % 64)
}

func (k *keySet) add(h uint64) {
	word, bit := k.bit(h)
	*word |= bit
}

func (k *keySet) has(h uint64) bool {
	word, bit := k.bit(h)
	return *word&bit != 0
}

// denies reports whether the shard denies a take and stays as it is. The caller has called look on the shard.
func (s *shard) denies(c *store.Cell, op *Op, d *Decision) bool {
	s.Open(c)
	if c.Live && c.Entry.Kind() != uint8(op.Limit.Algorithm) {
		return false
	}
	blocked := s.isBlocked(c, op)
	if !blocked && (surelyFits(&s.Store, c, op) || op.extends()) || forgetsFirst(&s.Store, c) {
		return false
	}
	*d = Decision{}
	if blocked {
		return s.denyBlocked(c, op, d)
	}
	if op.Limit.Algorithm.Previewable() {
		evaluate(&s.Store, c, op, d)
	} else {
		look := *op
		look.Dry = true
		s.take(c, &look, d)
	}
	return d.Status == OK && d.Allowed == 0 && !adopts(&s.Store, c, op, d)
}

// surelyFits reports whether a cheap comparison shows that a take is not a denial without trace. False means
// that the comparison does not decide it.
func surelyFits(s *store.Store, c *store.Cell, op *Op) bool {
	left := op.Limit.Max - op.want()
	if !c.Live {
		return left >= 0 || op.Limit.Algorithm == Strike
	}
	st := c.Entry.State()
	switch op.Limit.Algorithm {
	case TokenBucket, LeakyBucket:
		r := op.Limit.Rate
		return left >= 0 && s.Limits.At(c.Entry.Limit()).Is(&op.Limit) &&
			!r.Grains(left).Less(store.DeficitAt(store.BucketOf(c.Entry), r, s.NowNs))
	case FixedWindow:
		return store.ReadFixed(st).Used <= left
	case SlidingCounter:
		w := store.ReadSlidingCounter(st)
		return w.Prev+w.Cur <= left
	case SlidingLog:
		return unitlog.Read(st).Units <= left
	case Concurrency:
		return leases.Read(st).Units <= left
	case Strike:
		return store.StrikeBlockedNs(st) <= s.NowNs
	}
	return false
}

// forgetsFirst reports whether a decision would first drop a large part of a log. Denials leaves such a
// decision to Decide, because a look would walk over that part again each time.
func forgetsFirst(s *store.Store, c *store.Cell) bool {
	if !c.Live || c.Entry.Kind() != uint8(SlidingLog) && c.Entry.Kind() != uint8(Strike) {
		return false
	}
	log := unitlog.Read(c.Entry.State())
	return log.Stale(&s.Slab, s.NowNs-s.Limits.At(c.Entry.Limit()).WindowNs)
}

// await records in waiting that an operation was not answered. Later operations on its keys must wait for it.
func (t *Table) await(waiting *keySet, op *Op) {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return
		}
		waiting.add(t.hashKey(pair.Key))
	}
}

// awaited reports whether a check must wait for an operation that was not answered.
func (t *Table) awaited(waiting *keySet, op *Op) bool {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return false
		}
		if waiting.has(t.hashKey(pair.Key)) {
			return true
		}
	}
}

// deniesCheck answers a check for Denials. It reports whether the check is denied without a trace.
func (t *Table) deniesCheck(at Stamp, op *Op, d *Decision, held *lockCursor, waiting *keySet) bool {
	if !op.mayBeDenial() || t.awaited(waiting, op) {
		return false
	}
	h, s := t.find(op.Key)
	if len(op.Also) == 0 {
		if held.enter(s) {
			s.look(at)
			s.Brief = true
		}
		return s.checkDenied(h, op, d)
	}
	held.leave()
	var few [2 * MaxPairs]int
	involved := t.involved([]Op{*op}, few[:0])
	defer func() {
		for _, i := range involved {
			t.shards[i].unlock()
		}
	}()
	for _, i := range involved {
		t.shards[i].mu.Lock()
		at.NowNs = max(at.NowNs, t.shards[i].NowNs)
	}
	for _, i := range involved {
		t.shards[i].look(at)
		t.shards[i].Brief = true
	}
	return s.checkDenied(h, op, d)
}

// checkDenied answers a check if it is denied and leaves no trace. The caller has called look on its shards.
func (s *shard) checkDenied(h uint64, op *Op, d *Decision) bool {
	k := &s.checker
	*d = Decision{}
	if !k.resolve(s, h, op, d) {
		return d.Status == OK // the key is blocked
	}
	if slices.ContainsFunc(k.parts, func(x part) bool { return x.s.Skipped }) {
		return false
	}
	if _, fits := k.look(op); fits {
		return false
	}
	for i := range k.parts {
		x := &k.parts[i]
		if !x.fits && (x.extends() || adopts(&x.s.Store, &x.c, &x.op, &x.d) || forgetsFirst(&x.s.Store, &x.c)) {
			return false
		}
	}
	k.deny(op, d)
	return true
}
