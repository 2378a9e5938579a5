package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Cell is a key during one operation: its entry, if it has one.
type Cell struct {
	Hash   uint64
	Key    []byte
	Space  Space
	Ref    arena.Ref
	Entry  Entry
	Live   bool // the entry is not idle
	Known  bool // the entry is live and its limit is the operation's
	fresh  bool // the entry is new and not in the wheel yet
	Relink bool // the time at which it becomes idle may be nearer than the wheel has it
}

// Open finds the key's entry.
func (s *Store) Open(c *Cell) {
	if _, _, c.Ref = s.Index.find(c.Hash, &s.Slab, c.Space, c.Key); c.Ref != 0 {
		c.Entry = s.Slab.At(c.Ref)
		c.Live = !s.idle(c.Entry)
	}
}

// SetLimit makes l the limit an entry remembers.
func (s *Store) SetLimit(e Entry, l *rule.Limit) {
	id := s.Limits.acquire(l)
	s.Limits.release(e.Limit())
	e.setLimit(id)
	UnkeepLog(e)
}

// Ensure gives the cell an entry of a kind with a state of some length; it is zero
// unless the entry was live. It reports false when there is no room.
func (s *Store) Ensure(c *Cell, kind uint8, length int) bool {
	if c.Ref != 0 && c.Entry.Kind() == kind && s.fitsState(c, length) {
		if !c.Live {
			s.freeState(c.Entry)
			clear(c.Entry.State()[:max(length, stateLen(c.Entry))])
		}
		return true
	}
	n := EntryLen(len(c.Key), length)
	if c.Ref != 0 && !c.Live { // may make the room
		s.Drop(c)
	}
	if !s.AdmitBytes(n, c.Ref) {
		return false
	}
	if c.Ref != 0 { // a block or a bucket that needs a longer slot (a hold that is live never does)
		s.replace(c, kind, length)
	} else {
		s.create(c, kind, length)
	}
	return true
}

// Stretch sees to it that the state of a live entry may have some length. It evicts nothing:
// a check has found more entries than this one.
func (s *Store) Stretch(c *Cell, length int) bool {
	if s.fitsState(c, length) {
		return true
	}
	if !s.Slab.HasSlot(EntryLen(len(c.Key), length)) && s.memory.closed() {
		return false
	}
	s.replace(c, c.Entry.Kind(), length)
	return true
}

// replace gives the cell another entry, with a zero state, for the one it has. To a store
// that is a change and no removal: between the two a crash would forget the key.
func (s *Store) replace(c *Cell, kind uint8, length int) {
	stored := c.Entry.has(flagStored)
	c.Entry.unset(flagStored)
	s.Drop(c)
	if s.create(c, kind, length); stored {
		c.Entry.set(flagStored)
	}
}

// fitsState reports whether the cell's entry may have a state of some length.
func (s *Store) fitsState(c *Cell, length int) bool {
	if kind := c.Entry.Kind(); kind == KindBlock || kind == KindHold {
		return EntryLen(len(c.Key), length) <= s.Slab.Len(c.Ref)
	}
	return length <= stateLen(c.Entry)
}

// create adds an entry for a cell that has none.
func (s *Store) create(c *Cell, kind uint8, length int) {
	c.Ref = s.Slab.Alloc(EntryLen(len(c.Key), length))
	c.Entry = s.Slab.At(c.Ref)
	c.Entry.init(kind, c.Key, length)
	if length == LongBucketLen && IsBucket(kind) {
		c.Entry.set(flagLong)
	}
	s.Index.add(c.Hash, c.Ref, s.hashOf)
	c.fresh = true
	s.Counts.Entries[kind]++
	if s.hasPartner(c) {
		s.Counts.Blocked++
	}
}

// Drop removes the cell's entry, and the allocations on it.
func (s *Store) Drop(c *Cell) {
	if c.Space == Limiters {
		s.dropAllocations(c)
	}
	s.remove(c)
}

func (s *Store) remove(c *Cell) {
	if s.hasPartner(c) {
		s.Counts.Blocked--
	}
	s.BlockChanged(c.Entry, false)
	s.Counts.Entries[c.Entry.Kind()]--
	s.changes.noteRemoval(c.Entry)
	s.freeState(c.Entry)
	s.Limits.release(c.Entry.Limit())
	s.Wheel.unlink(&s.Slab, c.Ref)
	of, slot, _ := s.Index.find(c.Hash, &s.Slab, c.Space, c.Key)
	s.Index.remove(c.Hash, of, slot, s.hashOf)
	s.Slab.Free(c.Ref)
	*c = Cell{Hash: c.Hash, Key: c.Key, Space: c.Space}
}

// hasPartner reports whether the key of a limiter has a block, or the other way.
func (s *Store) hasPartner(c *Cell) bool {
	other := Blocks
	switch {
	case c.Space == Blocks:
		other = Limiters
	case c.Space > Blocks || s.Counts.Entries[KindBlock] == 0:
		return false
	}
	_, _, r := s.Index.find(c.Hash, &s.Slab, other, c.Key)
	return r != 0
}

// Touched is called when an entry's state has changed.
func (s *Store) Touched(c *Cell) {
	s.Changed(c.Ref)
	if c.Relink && !c.fresh {
		s.Wheel.unlink(&s.Slab, c.Ref)
	}
	if c.Relink || c.fresh {
		s.Wheel.link(&s.Slab, c.Ref, s.IdleAtNs(c.Entry))
	}
}

// Reduced is called when something was taken from an entry's state: it may be
// nearer to idle, or idle.
func (s *Store) Reduced(c *Cell) {
	if s.idle(c.Entry) {
		s.Drop(c)
		return
	}
	c.Relink = true
	s.Touched(c)
}

// Keys counts the keys of a shard, idle ones that have not been collected included.
func (s *Store) Keys() (n int64) {
	for kind, count := range s.Counts.Entries {
		if kind < int(KindToken) {
			n += count
		}
	}
	return n - s.Counts.Blocked
}

// BlockChanged tells of an entry that is a block everywhere, or ends being one.
func (s *Store) BlockChanged(e Entry, there bool) {
	if e.Kind() == KindBlock && IsEverywhere(e.State()) {
		s.onBlock(e, there)
	}
}
