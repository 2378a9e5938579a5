package store

import (
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The stored form of a bundle is one change with all of its members. The key is a class byte and the key of the
// bundle. The heads come before the states, so that the values of two bundles of one policy begin alike, and a journal
// omits the heads of the second.
//
//	value = count(1) head... state...
//	head  = number(1) kind(1) limit
//
// The change has the effect of one change for each of its members: it says nothing about other limiters. A limiter that
// leaves its bundle is removed by a change of its own. A change without a value removes all limiters of the policy and
// the key that could be members. So a limiter that cannot be a member must not become one that can, unless its removal
// is recorded first. Ensure panics otherwise.

// bundleHeads are the encoded heads of the bundle that was encoded last. Most bundles of a drain have the same.
type bundleHeads struct {
	of      [rule.MaxPolicyLimits]uint64 // see headWord
	count   int
	encoded []byte
}

// headWord returns the kind, the limit and the number of a member.
func headWord(m Entry) uint64 {
	const mask = 1<<(8*memberHead) - 1
	return le.Uint64(m) & (mask &^ (1<<keyShift - 1<<kindBits))
}

// encodeBundle adds a bundle to a batch.
func (s *Store) encodeBundle(b *Batch, e Entry) {
	start := len(b.buf)
	b.buf = append(append(b.buf, StorageKinds[Bundles]), e.Key()...)
	value := len(b.buf)
	b.buf = append(b.buf, s.headsOf(e)...)
	for m := range e.members() {
		m.set(flagStored)
		b.buf = s.appendState(b.buf, m)
	}
	b.spans = append(b.spans, span{start, value, len(b.buf)})
}

// headsOf returns the encoded count and heads of a bundle. They are valid until the next call.
func (s *Store) headsOf(e Entry) []byte {
	h, n, same := &s.heads, 0, true
	for m := range e.members() {
		word := headWord(m)
		same = same && h.of[n] == word
		h.of[n] = word
		n++
	}
	if same && n == h.count {
		return h.encoded
	}
	h.count, h.encoded = n, append(h.encoded[:0], byte(n))
	for m := range e.members() {
		h.encoded = append(h.encoded, byte(m.Number()), m.Kind())
		h.encoded = s.Limits.At(m.Limit()).Append(h.encoded)
	}
	return h.encoded
}

// storedMember is a decoded head.
type storedMember struct {
	number int
	kind   uint8
	limit  rule.Limit
}

// readMembers decodes the heads of a stored bundle, and checks that the bundle can have such members.
func readMembers(d *codec.Decoder, room []storedMember) []storedMember {
	n := int(d.Byte())
	d.Bad = d.Bad || n < 1 || n > rule.MaxPolicyLimits
	for range n {
		if d.Bad {
			return nil
		}
		m := storedMember{number: int(d.Byte()), kind: d.Byte()}
		if d.Bad = d.Bad || m.number >= rule.MaxPolicyLimits || !bundled(m.kind); !d.Bad {
			m.limit = rule.ReadLimit(d, rule.Algorithm(m.kind))
			room = append(room, m)
		}
	}
	return room
}

// LoadBundle restores the members of a stored bundle. name is the name of limiter number 0, and h its hash. LoadBundle
// replaces the limiters that have the names of members. It skips idle members, and returns false if all are idle.
func (s *Store) LoadBundle(h uint64, name, value []byte) (loaded bool, err error) {
	var room [rule.MaxPolicyLimits]storedMember
	d := codec.Decoder{B: value}
	members := readMembers(&d, room[:0])
	if d.Bad {
		return false, ErrStored
	}
	reserve := 0
	for i := range members {
		reserve += MemberLen(&members[i].limit)
	}
	name = append(s.memberName[:0], name...)
	for i := range members {
		m := &members[i]
		rule.Rename(name, m.number)
		c := Cell{Hash: SiblingHash(h, m.number), Key: name, Reserve: reserve}
		s.Open(&c)
		s.Unload(&c)
		state := codec.Decoder{B: d.Bytes(int64(storedStateLen(m.kind)))}
		live, err := s.load(&c, m.kind, &m.limit, &state)
		if err != nil {
			return false, err
		}
		loaded = loaded || live
	}
	if d.Bad || len(d.B) > 0 {
		return false, ErrStored
	}
	return loaded, nil
}

// storedStateLen returns the length of the stored state of a member.
func storedStateLen(kind uint8) int {
	if IsBucket(kind) {
		return LongBucketLen
	}
	return StateLens[kind]
}

// UnloadBundle removes the limiters of a policy for a key that could be members of a bundle, without recording the
// removal. name is the name of limiter number 0, and h its hash.
func (s *Store) UnloadBundle(h uint64, name []byte) {
	if r := s.FindBundle(h, name); r != 0 {
		e := Entry(s.Slab.At(r))
		e.clearStored()
		s.eachMember(r, e, s.releaseContents)
		s.removeBundle(h, r, e)
	}
	c := Cell{Hash: h, Key: name}
	if s.Open(&c); c.Ref != 0 && bundled(c.Entry.Kind()) {
		s.Unload(&c)
	}
}

// clearStored clears the stored flag of all members. Their removal is then not recorded. clearStored reports whether a
// member had the flag.
func (e Entry) clearStored() (stored bool) {
	for m := range e.members() {
		stored = stored || m.has(flagStored)
		m.unset(flagStored)
	}
	return stored
}
