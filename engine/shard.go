package engine

import (
	"hash/maphash"
	"sync"
)

// shard is one independently locked part of a table. All fields but mu are
// guarded by mu.
type shard struct {
	mu       sync.Mutex
	t        *Table
	nowNs    int64 // the latest time seen; it never goes back
	offsetNs int64
	slab     slab
	index    index
	wheel    wheel
	limits   limitTable
	changes  changeLog
	counts   counts
	wander   uint64                         // where evict looks next
	scratch  [2 + MaxKeyLen + MaxIDLen]byte // for the key of a token
}

// counts are the shard's share of Stats.
type counts struct {
	entries                    [numKinds]int64 // by kind
	blocked                    int64           // keys that have both a limiter and a block
	expired, evicted, forgiven int64
	admitted, denied           [numAlgorithms]int64
}

func (s *shard) init(t *Table) {
	s.t = t
	s.slab = newSlab(&t.used)
	s.index = newIndex(&t.used)
	s.limits = newLimitTable(&t.used)
	s.wheel = wheel{dueNs: Never}
	s.changes = changeLog{on: t.opts.TrackChanges}
	s.counts = counts{}
}

// collectPerOp is how many wheel steps an operation pays for. An entry is stepped
// over at most once per level of the wheel, so this keeps up with any traffic.
const collectPerOp = 4

// enter brings the shard's time up to the stamp.
func (s *shard) enter(at Stamp) {
	s.nowNs = max(s.nowNs, at.NowNs)
	s.offsetNs = at.WallOffsetNs
	if s.nowNs-idleGraceNs >= s.wheel.dueNs {
		s.collect(collectPerOp)
	}
}

// cell is a key during one operation: its entry, if it has one.
type cell struct {
	hash   uint64
	key    []byte
	ns     namespace
	r      ref
	e      entry
	live   bool // the entry is not idle
	fresh  bool // the entry is new and not in the wheel yet
	relink bool // the time at which it becomes idle may be nearer than the wheel has it
}

// open finds the key's entry.
func (s *shard) open(c *cell) {
	if _, _, c.r = s.index.find(c.hash, &s.slab, c.ns, c.key); c.r != 0 {
		c.e = s.slab.at(c.r)
		c.live = !s.idle(c.e)
	}
}

// hashKey is the hash by which the index knows a key: the bits that choose the
// shard are shifted away.
func (t *Table) hashKey(key []byte) uint64 { return maphash.Bytes(t.seed, key) << t.shardBits }

func (s *shard) hashOf(r ref) uint64 { return s.t.hashKey(entry(s.slab.at(r)).key()) }

// hold makes the cell's entry one of the operation's algorithm and limit, with a
// zero state if it was not live. Without room it answers OutOfMemory and returns
// false.
func (s *shard) hold(c *cell, op *Op, d *Decision) bool {
	a := op.Limit.Algorithm
	if n := a.blockLen(); n > 0 && !s.mayGrow(n) || !s.ensure(c, uint8(a), stateLens[a]) {
		*d = Decision{Status: OutOfMemory}
		return false
	}
	if *s.limits.at(c.e.limit()) != op.Limit {
		s.setLimit(c.e, &op.Limit)
		c.relink = true
	}
	return true
}

// adopt lets a denied operation put its limit in force: what was used stays used,
// but drains, or ends, by the new limit from now on. Without this a key denied
// under a slow limit would stay so after the limit was raised, and the reply's
// retry_after would be wrong. Only a request that would fit some day does it: such
// a one is not denied for want of a burst, so no token is cut off.
func (s *shard) adopt(c *cell, op *Op) bool {
	if !c.live || op.Cost == 0 || op.Dry || *s.limits.at(c.e.limit()) == op.Limit {
		return false
	}
	s.setLimit(c.e, &op.Limit)
	c.relink = true
	return true
}

// setLimit makes l the limit an entry remembers.
func (s *shard) setLimit(e entry, l *Limit) {
	id := s.limits.acquire(l)
	s.limits.release(e.limit())
	e.setLimit(id)
}

// ensure gives the cell an entry of a kind with a state of some length; it is zero
// unless the entry was live. It reports false when there is no room.
func (s *shard) ensure(c *cell, kind uint8, stateLen int) bool {
	n := entryHead + len(c.key) + stateLen
	if c.r != 0 && c.e.kind() == kind && (kind != kindBlock || n <= s.slab.len(c.r)) {
		if !c.live {
			s.freeState(c.e)
			clear(c.e.state()[:stateLen])
		}
		return true
	}
	if c.r != 0 {
		s.drop(c)
	}
	if !s.mayGrow(n) {
		return false
	}
	s.create(c, kind, stateLen)
	return true
}

// create adds an entry for a cell that has none.
func (s *shard) create(c *cell, kind uint8, stateLen int) {
	c.r = s.slab.alloc(entryHead + len(c.key) + stateLen)
	c.e = s.slab.at(c.r)
	c.e.init(kind, c.key, stateLen)
	s.index.add(c.hash, c.r, s.hashOf)
	c.fresh = true
	s.counts.entries[kind]++
	if s.hasPartner(c) {
		s.counts.blocked++
	}
}

// drop removes the cell's entry.
func (s *shard) drop(c *cell) {
	if s.hasPartner(c) {
		s.counts.blocked--
	}
	s.counts.entries[c.e.kind()]--
	s.changes.gone(c.e)
	s.freeState(c.e)
	s.limits.release(c.e.limit())
	s.wheel.unlink(&s.slab, c.r)
	g, pos, _ := s.index.find(c.hash, &s.slab, c.ns, c.key)
	s.index.remove(c.hash, g, pos, s.hashOf)
	s.slab.free(c.r)
	*c = cell{hash: c.hash, key: c.key, ns: c.ns}
}

// hasPartner reports whether the key of a limiter has a block, or the other way.
func (s *shard) hasPartner(c *cell) bool {
	other := blocks
	switch {
	case c.ns == blocks:
		other = limiters
	case c.ns == tokens || s.counts.entries[kindBlock] == 0:
		return false
	}
	_, _, r := s.index.find(c.hash, &s.slab, other, c.key)
	return r != 0
}

// touched is called when an entry's state has changed.
func (s *shard) touched(c *cell) {
	s.changed(c.r)
	if c.relink && !c.fresh {
		s.wheel.unlink(&s.slab, c.r)
	}
	if c.relink || c.fresh {
		s.wheel.link(&s.slab, c.r, s.idleAtNs(c.e))
	}
}

// settled is called when something was taken from an entry's state: it may be
// nearer to idle, or idle.
func (s *shard) settled(c *cell) {
	if s.idle(c.e) {
		s.drop(c)
		return
	}
	c.relink = true
	s.touched(c)
}
