package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Cell is a key during one operation, with the entry of the key if it has one. If Ref is 0, it has none.
type Cell struct {
	Hash   uint64
	Key    []byte
	Space  Space
	Ref    arena.Ref
	Entry  Entry
	Live   bool   // the entry is not idle
	Known  bool   // the entry is live and its limit is the operation's
	fresh  bool   // the entry is new and not in the wheel yet
	Relink bool   // the entry may become idle earlier than the wheel expects
	member bool   // Ref is a bundle, and Entry is a limiter in it
	kept   uint32 // if not 0, the limit of the limiter of which Entry is a copy: its allocations stay valid
	// Reserve is how many bytes a new bundle of the key reserves. If it is not 0, a new limiter is made in a bundle.
	Reserve int
}

// Open finds the key's entry.
func (s *Store) Open(c *Cell) {
	if _, _, c.Ref = s.Index.find(c.Hash, &s.Slab, c.Space, c.Key); c.Ref != 0 {
		c.Entry = s.Slab.At(c.Ref)
		c.Live = !s.idle(c.Entry)
	} else if s.bundles > 0 && c.Space == Limiters && rule.Reserved(c.Key) {
		s.openMember(c)
	}
}

// SetLimit makes l the limit of an entry.
func (s *Store) SetLimit(e Entry, l *rule.Limit) {
	id := s.Limits.acquire(l)
	s.Limits.release(e.Limit())
	e.setLimit(id)
	UnkeepLog(e)
}

// Ensure gives the cell an entry of a kind with a state of a length. The state is zero unless the entry was
// live. Ensure returns false if memory is exhausted. It panics if the entry is live and of another kind.
func (s *Store) Ensure(c *Cell, kind uint8, length int) bool {
	if c.Ref != 0 && c.Entry.Kind() == kind && s.fitsState(c, length) {
		if !c.Live {
			s.freeState(c.Entry)
			clear(c.Entry.State()[:max(length, stateLen(c.Entry))])
		}
		return true
	}
	if c.Ref != 0 && !c.Live { // this may free the memory
		s.Drop(c)
	}
	if n, keep := s.slotFor(c, kind, length); !s.AdmitBytes(n, keep) {
		return false
	}
	switch {
	case c.Ref == 0:
		s.create(c, kind, length)
	case c.Entry.Kind() == kind: // the entry of a block or a bucket is too short; the entry of a live hold never is
		s.replace(c, length)
	default:
		panic("store: a live entry would change its kind")
	}
	return true
}

// Stretch replaces the entry of a live cell if it is too short for a state of a length. The new state is zero.
// Stretch evicts nothing, because a check holds references to other entries. It returns false if memory is
// exhausted.
func (s *Store) Stretch(c *Cell, length int) bool {
	if s.fitsState(c, length) {
		return true
	}
	if n, _ := s.slotFor(c, c.Entry.Kind(), length); n > 0 && !s.Slab.HasSlot(n) && s.memory.closed() {
		return false
	}
	s.replace(c, length)
	return true
}

// replace replaces the cell's entry by one with a zero state. Drain hands out one change of the key, not a
// removal and an addition: a crash between the two would lose the key. The entry keeps its kind, because an entry of
// another kind may be stored under another key, and then nothing would remove the stored entry.
func (s *Store) replace(c *Cell, length int) {
	kind := c.Entry.Kind()
	stored := c.Entry.has(flagStored)
	c.Entry.unset(flagStored)
	s.Drop(c)
	if s.create(c, kind, length); stored {
		c.Entry.set(flagStored)
	}
}

// fitsState reports whether a state of a length fits the cell's entry.
func (s *Store) fitsState(c *Cell, length int) bool {
	if kind := c.Entry.Kind(); kind == KindBlock || kind == KindHold {
		return EntryLen(len(c.Key), length) <= s.Slab.Len(c.Ref)
	}
	return length <= stateLen(c.Entry)
}

// slotFor returns the size of the slot that create allocates, after the cell's entry was dropped, or 0 if it allocates
// none. keep is the slot that the caller must not evict before: that of the cell's entry, of the bundle that create
// uses, or of the limiter that a new bundle takes in. A cell with an entry of its own or in a bundle has no other such
// slot.
func (s *Store) slotFor(c *Cell, kind uint8, length int) (n int, keep arena.Ref) {
	if b, ok := s.bundleFor(c, kind); ok {
		return s.bundleSlot(c, &b, length), max(c.Ref, b.ref, b.first)
	}
	return EntryLen(len(c.Key), length), c.Ref
}

// create adds an entry for a cell that has none.
func (s *Store) create(c *Cell, kind uint8, length int) {
	if b, ok := s.bundleFor(c, kind); ok {
		s.createMember(c, &b, kind, length)
	} else {
		c.Ref = s.Slab.Alloc(EntryLen(len(c.Key), length))
		c.Entry = s.Slab.At(c.Ref)
		c.Entry.init(kind, c.Key, length)
		if length == LongBucketLen && IsBucket(kind) {
			c.Entry.set(flagLong)
		}
		s.Index.add(c.Hash, c.Ref, s.hashesOf)
		c.fresh = true
	}
	s.Counts.Entries[kind]++
	if s.hasPartner(c) {
		s.Counts.Blocked++
	} else if kind < KindToken {
		s.countElsewhere(c.Key, 1)
	}
}

// countElsewhere counts a key of a database other than 0.
func (s *Store) countElsewhere(name []byte, n int64) {
	if c := name[0]; c == 0 || c == rule.ReservedPrefix[0] {
		if database := rule.DatabaseOf(name); database > 0 {
			s.Counts.Elsewhere[database] += n
		}
	}
}

// Drop removes the cell's entry and its allocations.
func (s *Store) Drop(c *Cell) {
	if c.Space == Limiters {
		s.dropAllocations(c)
	}
	s.remove(c)
}

// remove removes the cell's entry.
func (s *Store) remove(c *Cell) {
	s.releaseContents(c)
	if c.member {
		s.removeMember(c)
	} else {
		s.removeSlot(c.Hash, c.Space, c.Key, c.Ref)
	}
	*c = Cell{Hash: c.Hash, Key: c.Key, Space: c.Space, Reserve: c.Reserve}
}

// releaseContents undoes what the store records about the cell's entry, except in wheel and index.
func (s *Store) releaseContents(c *Cell) {
	if s.hasPartner(c) {
		s.Counts.Blocked--
	} else if c.Entry.Kind() < KindToken {
		s.countElsewhere(c.Key, -1)
	}
	s.BlockChanged(c.Entry, false)
	s.Counts.Entries[c.Entry.Kind()]--
	s.changes.noteRemoval(c.Entry, c.Key)
	s.freeState(c.Entry)
	s.Limits.release(c.Entry.Limit())
}

// removeSlot removes a slot from wheel and index, and frees it.
func (s *Store) removeSlot(h uint64, ns Space, key []byte, r arena.Ref) {
	s.Wheel.unlink(&s.Slab, r)
	of, slot, _ := s.Index.find(h, &s.Slab, ns, key)
	s.Index.remove(h, of, slot, s.hashesOf)
	s.Slab.Free(r)
}

// hasPartner reports whether the key of a limiter has a block, or the key of a block has a limiter.
func (s *Store) hasPartner(c *Cell) bool {
	other := Blocks
	switch {
	case c.Space == Blocks:
		other = Limiters
	case c.Space > Blocks || s.Counts.Entries[KindBlock] == 0:
		return false
	}
	partner := Cell{Hash: c.Hash, Key: c.Key, Space: other}
	s.Open(&partner)
	return partner.Ref != 0
}

// Touched updates dirty bits and wheel after a change of an entry's state.
func (s *Store) Touched(c *Cell) {
	s.Changed(c.Ref)
	if c.Relink && !c.fresh {
		s.Wheel.unlink(&s.Slab, c.Ref)
	}
	if c.Relink || c.fresh {
		s.Wheel.link(&s.Slab, c.Ref, s.IdleAtNs(s.Slab.At(c.Ref)))
	}
}

// Reduced updates dirty bits and wheel after units were removed from an entry's state. The entry may become idle
// earlier than before. It is dropped if it is idle now.
func (s *Store) Reduced(c *Cell) {
	if s.idle(c.Entry) {
		s.Drop(c)
		return
	}
	c.Relink = true
	s.Touched(c)
}

// Keys returns the number of keys of a shard, including idle keys that were not collected.
func (s *Store) Keys() (n int64) {
	for kind, count := range s.Counts.Entries {
		if kind < int(KindToken) {
			n += count
		}
	}
	return n - s.Counts.Blocked
}

// KeysIn returns the number of keys of a database, as Keys does.
func (s *Store) KeysIn(database int) (n int64) {
	if database > 0 {
		return s.Counts.Elsewhere[database]
	}
	n = s.Keys()
	for _, others := range s.Counts.Elsewhere {
		n -= others
	}
	return n
}

// BlockChanged reports an entry that becomes or stops being a block everywhere.
func (s *Store) BlockChanged(e Entry, there bool) {
	if e.Kind() != KindBlock {
		return
	}
	if _, everywhere := ReadBlocks(e.State()); everywhere.UntilNs != 0 {
		s.onBlock(e, there)
	}
}
