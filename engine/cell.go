package engine

import "github.com/weir-project/weir/engine/internal/arena"

// cell is a key during one operation: its entry, if it has one.
type cell struct {
	hash   uint64
	key    []byte
	ns     namespace
	r      arena.Ref
	e      entry
	live   bool // the entry is not idle
	known  bool // the entry is live and its limit is the operation's
	fresh  bool // the entry is new and not in the wheel yet
	relink bool // the time at which it becomes idle may be nearer than the wheel has it
}

// open finds the key's entry.
func (s *shard) open(c *cell) {
	if _, _, c.r = s.index.find(c.hash, &s.slab, c.ns, c.key); c.r != 0 {
		c.e = s.slab.At(c.r)
		c.live = !s.idle(c.e)
	}
}

// claim readies the cell's entry for the state an operation leaves behind and
// reports whether it leaves one: if admitted it takes its units, if denied it may
// put its limit in force.
func (s *shard) claim(c *cell, op *Op, d *Decision) bool {
	switch {
	case op.Cost == 0 || op.Dry:
		return false
	case d.Allowed > 0:
		return c.known || s.hold(c, op, d, 0)
	}
	return s.adopt(c, op, d)
}

// hold makes the cell's entry one of the operation's algorithm and limit, with a
// zero state if it was not live, and sees to it that a block of blockLen bytes may
// follow. Without room it answers OutOfMemory and returns false.
func (s *shard) hold(c *cell, op *Op, d *Decision, blockLen int) bool {
	a, l := op.Limit.Algorithm, &op.Limit
	known := c.r != 0 && s.limits.at(c.e.limit()).Is(l)
	if !known && !s.makeRoomForLimit(l, c.r) || !s.makeRoom(blockLen, c.r) || !s.ensure(c, uint8(a), limitStateLen(l)) {
		*d = Decision{Status: OutOfMemory}
		return false
	}
	if !known {
		s.setLimit(c.e, l)
		c.relink = true
	}
	return true
}

// adopt lets a denied operation put its limit in force: what was used stays used,
// but drains, or ends, by the new limit from now on. Without this a key denied
// under a slow limit would stay so after the limit was raised, and the reply's
// retry_after would be wrong. Only a request that would fit some day does it: such
// a one is not denied for want of a burst, so no token is cut off.
func (s *shard) adopt(c *cell, op *Op, d *Decision) bool {
	if !s.adopts(c, op, d) || !s.stretch(c, limitStateLen(&op.Limit)) {
		return false
	}
	s.setLimit(c.e, &op.Limit)
	c.relink = true
	return true
}

// adopts reports whether a denied operation may put its limit in force.
func (s *shard) adopts(c *cell, op *Op, d *Decision) bool {
	if c.known {
		return false // it is
	}
	fits := d.RetryMs >= 0 || op.canFit() // a window without end has no wait to name
	return fits && c.live && !s.limits.at(c.e.limit()).Is(&op.Limit) && s.mayRemember(&op.Limit)
}

// setLimit makes l the limit an entry remembers.
func (s *shard) setLimit(e entry, l *Limit) {
	id := s.limits.acquire(l)
	s.limits.release(e.limit())
	e.setLimit(id)
	unkeepLog(e)
}

// ensure gives the cell an entry of a kind with a state of some length; it is zero
// unless the entry was live. It reports false when there is no room.
func (s *shard) ensure(c *cell, kind uint8, length int) bool {
	if c.r != 0 && c.e.kind() == kind && s.fitsState(c, length) {
		if !c.live {
			s.freeState(c.e)
			clear(c.e.state()[:max(length, stateLen(c.e))])
		}
		return true
	}
	n := entryLen(len(c.key), length)
	if c.r != 0 && !c.live { // may make the room
		s.drop(c)
	}
	if !s.makeRoom(n, c.r) {
		return false
	}
	if c.r != 0 { // a block or a bucket that needs a longer slot (a hold that is live never does)
		s.replace(c, kind, length)
	} else {
		s.create(c, kind, length)
	}
	return true
}

// stretch sees to it that the state of a live entry may have some length. It evicts nothing:
// a check has found more entries than this one.
func (s *shard) stretch(c *cell, length int) bool {
	if s.fitsState(c, length) {
		return true
	}
	if !s.slab.HasSlot(entryLen(len(c.key), length)) && s.t.closed() {
		return false
	}
	s.replace(c, c.e.kind(), length)
	return true
}

// replace gives the cell another entry, with a zero state, for the one it has. To a store
// that is a change and no removal: between the two a crash would forget the key.
func (s *shard) replace(c *cell, kind uint8, length int) {
	stored := c.e.has(flagStored)
	c.e.unset(flagStored)
	s.drop(c)
	if s.create(c, kind, length); stored {
		c.e.set(flagStored)
	}
}

// fitsState reports whether the cell's entry may have a state of some length.
func (s *shard) fitsState(c *cell, length int) bool {
	if kind := c.e.kind(); kind == kindBlock || kind == kindHold {
		return entryLen(len(c.key), length) <= s.slab.Len(c.r)
	}
	return length <= stateLen(c.e)
}

// create adds an entry for a cell that has none.
func (s *shard) create(c *cell, kind uint8, length int) {
	c.r = s.slab.Alloc(entryLen(len(c.key), length))
	c.e = s.slab.At(c.r)
	c.e.init(kind, c.key, length)
	if length == longBucketLen && isBucket(kind) {
		c.e.set(flagLong)
	}
	s.index.add(c.hash, c.r, s.hashOf)
	c.fresh = true
	s.counts.entries[kind]++
	if s.hasPartner(c) {
		s.counts.blocked++
	}
}

// drop removes the cell's entry, and the claims on it.
func (s *shard) drop(c *cell) {
	if c.ns == limiters {
		s.dropClaims(c)
	}
	s.remove(c)
}

func (s *shard) remove(c *cell) {
	if s.hasPartner(c) {
		s.counts.blocked--
	}
	s.noteBlock(c.e, false)
	s.counts.entries[c.e.kind()]--
	s.changes.gone(c.e)
	s.freeState(c.e)
	s.limits.release(c.e.limit())
	s.wheel.unlink(&s.slab, c.r)
	of, slot, _ := s.index.find(c.hash, &s.slab, c.ns, c.key)
	s.index.remove(c.hash, of, slot, s.hashOf)
	s.slab.Free(c.r)
	*c = cell{hash: c.hash, key: c.key, ns: c.ns}
}

// hasPartner reports whether the key of a limiter has a block, or the other way.
func (s *shard) hasPartner(c *cell) bool {
	other := blocks
	switch {
	case c.ns == blocks:
		other = limiters
	case c.ns > blocks || s.counts.entries[kindBlock] == 0:
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
