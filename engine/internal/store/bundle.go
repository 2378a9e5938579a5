package store

import (
	"iter"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// A bundle is an entry that holds several limiters of one policy for one key. A check of the policy then finds one
// entry, waits for its memory once, and marks one change. Four token buckets in a bundle take half the memory of four
// entries. A limiter in a bundle is a member. Its position changes no answer: Open finds it by its name, and it is
// hashed and listed like an entry of its own.
//
//	head(13) key count(1) member...
//	member = kind and flags(1) 0(1) limit(3) number(1) state
//
// The key is the name of the policy's limiter number 0. The number is the number of the limit in the policy, or
// removedMember. The first five bytes of a member are those of an entry whose key has length 0, so a member is viewed
// as an Entry.
//
// A bundle becomes idle when the last of its members does, and is then dropped as a whole. Limiters whose state has a
// chain, like logs, are never members. The only limiter of a policy and key with number 0 usually has an entry of its
// own.
const (
	memberHead     = 6
	memberNumber   = 5
	removedMember  = 0xff
	maxMemberState = 24
)

// bundled reports whether limiters of a kind may be members.
func bundled(kind uint8) bool {
	switch rule.Algorithm(kind) {
	case rule.TokenBucket, rule.LeakyBucket, rule.FixedWindow, rule.SlidingCounter:
		return true
	}
	return false
}

// MemberLen returns how many bytes of a bundle a limiter under a limit takes, or 0 if it cannot be a member.
func MemberLen(l *rule.Limit) int {
	if !bundled(uint8(l.Algorithm)) {
		return 0
	}
	return memberHead + LimitStateLen(l)
}

// BundleLen returns how many bytes a bundle takes whose members take room bytes.
func BundleLen(nameLen, room int) int { return EntryLen(nameLen, 1+room) }

// SiblingHash returns the hash of a policy's limiter from the hash of its limiter number 0 for the same key, and the
// reverse. These limiters are in nearby groups of one segment. Each group has two of them, with different tags.
func SiblingHash(h uint64, number int) uint64 {
	return h ^ uint64(number&1)<<TagShift ^ uint64(number>>1)<<siblingShift
}

// siblingShift is the lowest bit of a hash that always chooses another group.
const siblingShift = GroupShift + groupBits - 6

// location is where a policy's limiter is in a bundle, or would be.
type location struct {
	hash   uint64 // of the bundle
	name   []byte // of the bundle; valid until the next call of locate
	number int
	ref    arena.Ref // of the bundle; 0: there is none
	first  arena.Ref // the entry of limiter number 0 that a new bundle takes in, or 0
}

// locate returns the location of a cell. ok is false if its key is not the name of a policy's limiter.
func (s *Store) locate(c *Cell) (b location, ok bool) {
	_, number, _, ok := rule.SplitName(c.Key)
	if !ok || len(c.Key) > rule.MaxNameLen { // a damaged file may have a longer name
		return location{}, false
	}
	name := append(s.bundleName[:0], c.Key...)
	rule.Rename(name, 0)
	b = location{hash: SiblingHash(c.Hash, number), name: name, number: number}
	b.ref = s.FindBundle(b.hash, name)
	return b, true
}

// bundleFor returns the location of a limiter that create makes a member. ok is false for other limiters.
func (s *Store) bundleFor(c *Cell, kind uint8) (b location, ok bool) {
	if c.Space != Limiters || !bundled(kind) || !rule.Reserved(c.Key) {
		return location{}, false
	}
	if b, ok = s.locate(c); !ok {
		return location{}, false
	}
	if b.ref == 0 {
		b.first = s.ownFirst(&b)
	}
	return b, b.ref != 0 || b.number > 0 || c.Reserve > 0
}

// FindBundle returns the bundle with a hash and a name, or 0 if there is none.
func (s *Store) FindBundle(h uint64, name []byte) arena.Ref {
	if s.bundles == 0 {
		return 0
	}
	_, _, r := s.Index.find(h, &s.Slab, Bundles, name)
	return r
}

// openMember is Open for a limiter that has no entry of its own.
func (s *Store) openMember(c *Cell) {
	b, ok := s.locate(c)
	if !ok || b.ref == 0 {
		return
	}
	if m := Entry(s.Slab.At(b.ref)).member(b.number); m != nil {
		s.SetMember(c, b.ref, m)
	}
}

// member returns the member with a number, or nil.
func (e Entry) member(number int) Entry {
	for m := range e.members() {
		if m.Number() == number {
			return m
		}
	}
	return nil
}

// Number returns the number of a member.
func (e Entry) Number() int { return int(e[memberNumber]) }

// Members iterates over the members of a bundle.
func (s *Store) Members(bundle arena.Ref) iter.Seq[Entry] { return Entry(s.Slab.At(bundle)).members() }

// SetMember makes a member of a bundle the entry of a cell.
func (s *Store) SetMember(c *Cell, bundle arena.Ref, m Entry) {
	c.Ref, c.Entry, c.member = bundle, m, true
	c.Live = !s.idle(m)
}

// slots iterates over the members of a bundle and the removed ones.
func (e Entry) slots() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		at := e.State()
		n, m := at[0], Entry(at[1:])
		for ; n > 0; n-- {
			next := m[memberHead+stateLen(m):]
			if !yield(m) {
				return
			}
			m = next
		}
	}
}

// members iterates over the members of a bundle.
func (e Entry) members() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for m := range e.slots() {
			if m.Number() != removedMember && !yield(m) {
				return
			}
		}
	}
}

// memberCount returns how many members a bundle has.
func (e Entry) memberCount() (n int) {
	for range e.members() {
		n++
	}
	return n
}

// memberBytes returns how many bytes the members of a bundle take, and how many they take together with the removed
// ones.
func (e Entry) memberBytes() (present, all int) {
	for m := range e.slots() {
		size := memberHead + stateLen(m)
		if all += size; m.Number() != removedMember {
			present += size
		}
	}
	return present, all
}

// removedOf returns a removed member whose state has a length, or nil.
func (e Entry) removedOf(length int) Entry {
	for m := range e.slots() {
		if m.Number() == removedMember && stateLen(m) == length {
			return m
		}
	}
	return nil
}

// addMember adds a member with a zero state. The slot has room for it. It changes the bytes of no other member: the
// place of a removed member belongs to no cell.
func (e Entry) addMember(number int, kind uint8, length int) Entry {
	m := e.removedOf(length)
	if m == nil {
		_, all := e.memberBytes()
		at := e.State()
		m = at[1+all:]
		at[0]++
	}
	clear(m[:memberHead+length])
	m[0], m[memberNumber] = kind, byte(number)
	if length == LongBucketLen && IsBucket(kind) {
		m.set(flagLong)
	}
	return m
}

// bundleSlot returns the size of the slot that createMember allocates, or 0 if it allocates none. If the cell is a
// member, its place counts as removed.
func (s *Store) bundleSlot(c *Cell, b *location, length int) int {
	need, present, all := memberHead+length, 0, 0
	if b.ref != 0 {
		present, all = Entry(s.Slab.At(b.ref)).memberBytes()
	}
	if c.member {
		present -= memberHead + stateLen(c.Entry)
	}
	switch {
	case b.first != 0:
		present = memberHead + stateLen(s.Slab.At(b.first))
	case present == 0: // the bundle of a last member is removed with it
	case Entry(s.Slab.At(b.ref)).removedOf(length) != nil, EntryLen(len(b.name), 1+all+need) <= s.Slab.Len(b.ref):
		return 0
	}
	return EntryLen(len(b.name), 1+max(c.Reserve, present+need))
}

// createMember adds a limiter to its bundle, and makes the bundle if there is none. If it moves other limiters, it
// increments Moves: the cells of limiters of the same policy and key must then be opened again.
func (s *Store) createMember(c *Cell, b *location, kind uint8, length int) {
	switch n := s.bundleSlot(c, b, length); {
	case b.ref == 0:
		s.newBundle(b, n)
		c.fresh = true
	case n > 0:
		s.growBundle(b, n)
	}
	c.Ref, c.member = b.ref, true
	c.Entry = Entry(s.Slab.At(b.ref)).addMember(b.number, kind, length)
}

// newBundle makes an empty bundle in a slot of n bytes, or one with the limiter number 0 if that has an entry of its
// own. The caller adds a member and links the bundle.
func (s *Store) newBundle(b *location, n int) {
	b.ref = s.Slab.Alloc(n)
	e := Entry(s.Slab.At(b.ref))
	e.init(kindBundle, b.name, 1)
	s.Index.add(b.hash, b.ref, s.hashesOf)
	s.bundles++
	if b.first == 0 {
		return
	}
	from := Entry(s.Slab.At(b.first))
	e.addMember(0, from.Kind(), stateLen(from)).copyFrom(from)
	if s.Slab.IsDirty(b.first) {
		s.Changed(b.ref)
	}
	s.removeSlot(b.hash, Limiters, b.name, b.first)
	s.Moves++
}

// ownFirst returns the entry of limiter number 0 if that is not the limiter of the location, and could be a member.
func (s *Store) ownFirst(b *location) arena.Ref {
	if b.number == 0 {
		return 0
	}
	_, _, r := s.Index.find(b.hash, &s.Slab, Limiters, b.name)
	if r == 0 || !bundled(Entry(s.Slab.At(r)).Kind()) {
		return 0
	}
	return r
}

// copyFrom copies flags, limit and state of another view of the same kind.
func (e Entry) copyFrom(from Entry) {
	e[0] = from[0] & (1<<keyShift - 1)
	e.setLimit(from.Limit())
	copy(e.State()[:stateLen(from)], from.State())
}

// growBundle moves a bundle to a slot of n bytes, without the removed members.
func (s *Store) growBundle(b *location, n int) {
	of, slot, from := s.Index.find(b.hash, &s.Slab, Bundles, b.name)
	to := s.Slab.Alloc(n)
	old, e := Entry(s.Slab.At(from)), Entry(s.Slab.At(to))
	copy(e, old[:entryHead+old.keyLen()])
	e.State()[0] = 0
	for m := range old.members() {
		e.addMember(m.Number(), m.Kind(), stateLen(m)).copyFrom(m)
	}
	of.refs[slot] = to
	s.relink(from, to)
	b.ref = to
	s.Moves++
}

// removeMember removes a cell's limiter from its bundle, and the bundle if that has no other.
func (s *Store) removeMember(c *Cell) {
	e, number := Entry(s.Slab.At(c.Ref)), c.Entry.Number()
	c.Entry[memberNumber] = removedMember
	if e.memberCount() == 0 {
		s.removeBundle(SiblingHash(c.Hash, number), c.Ref, e)
		return
	}
	s.Wheel.unlink(&s.Slab, c.Ref) // the bundle may become idle earlier
	s.Wheel.link(&s.Slab, c.Ref, s.lastIdleNs(e))
}

func (s *Store) removeBundle(h uint64, r arena.Ref, e Entry) {
	s.removeSlot(h, Bundles, e.Key(), r)
	s.bundles--
}

// expireBundle drops a bundle whose members are idle, as one change.
func (s *Store) expireBundle(r arena.Ref, e Entry) {
	if e.clearStored() {
		s.changes.noteRemovalOf(StorageKinds[Bundles], e.Key())
	}
	s.eachMember(r, e, func(c *Cell) {
		s.dropAllocations(c)
		s.releaseContents(c)
		s.Counts.Expired++
	})
	s.removeBundle(s.hashOf(r), r, e)
}

// eachMember calls visit with the cells of a bundle's members. visit may remove its cell's member.
func (s *Store) eachMember(r arena.Ref, e Entry, visit func(c *Cell)) {
	var numbers [rule.MaxPolicyLimits]int
	n, h := 0, s.hashOf(r)
	for m := range e.members() {
		numbers[n] = m.Number()
		n++
	}
	name := append(s.memberName[:0], e.Key()...)
	for _, number := range numbers[:n] {
		rule.Rename(name, number)
		c := Cell{Hash: SiblingHash(h, number), Key: name, Ref: r, Entry: e.member(number), member: true}
		visit(&c)
	}
}

// lastIdleNs returns when the last member of a bundle becomes idle.
func (s *Store) lastIdleNs(e Entry) (last int64) {
	for m := range e.members() {
		last = max(last, s.IdleAtNs(m))
	}
	return last
}

// unfold returns a member as the entry that it would be outside of the bundle. It is valid until the next call.
func (s *Store) unfold(e, m Entry) Entry {
	to, key := Entry(s.unfolded[:]), e.Key()
	to.init(m.Kind(), key, 0)
	rule.Rename(to.Key(), m.Number())
	to[0] |= m[0] & (flagStored | flagLong)
	to.setLimit(m.Limit())
	copy(to.State(), m.State()[:stateLen(m)])
	return to
}

// CellBytes returns the memory of a cell's entry, index included. A member has its part of the bundle.
func (s *Store) CellBytes(c *Cell) int {
	n := s.Slab.Len(c.Ref) + IndexBytes
	if c.member {
		count := Entry(s.Slab.At(c.Ref)).memberCount()
		return (n + count - 1) / count
	}
	return n
}
