package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// An entry is one slot of a slab:
//
//	head(2) limit(3) next(4) prev(4) key state
//
// head is the kind, flags and the key's length. limit is a number in the shard's limit table. next and prev are
// the entry's neighbours in the wheel. The state's length follows from kind and flags. All fields are as short
// as possible, because they make up most of the memory of a table with many keys: a bucket with a key of 15 bytes
// takes 40 bytes.
const (
	entryHead = 13
	entryMin  = 8 * arena.WordsPerDirtyBit // no two entries share a dirty bit

	kindBits    = 4
	flagStored  = 1 << kindBits   // was handed out by Drain or came from Load
	flagLong    = flagStored << 1 // the state of the bucket has LongBucketLen bytes
	keyShift    = kindBits + 2
	MaxEntryKey = 1<<(16-keyShift) - 1

	limitBits = 24
	limitMask = 1<<limitBits - 1
)

// EntryLen returns how many bytes an entry takes.
func EntryLen(keyLen, stateLen int) int { return max(entryHead+keyLen+stateLen, entryMin) }

// The kind of an entry is the algorithm of a limiter, or one of these values. Stored values begin with a kind, so the
// numbers stay. A new algorithm needs a number above kindBundle.
const (
	KindBlock       = uint8(rule.NoAlgorithm) // an administrative block
	KindToken       = 10                      // the remembered answer to an ID
	KindHold        = 11                      // a hold, by its id
	kindAllocations = 12                      // the allocations of a limiter
	kindBundle      = 13                      // several limiters of a policy for one key; see bundle.go
	NumKinds        = 14
	NumStoredKinds  = kindBundle // no value begins with this kind or a later one

	_ = uint(KindToken - rule.NumAlgorithms) // does not compile if an algorithm has one of these numbers
)

// Space is the name space of a key: a limiter, its block, the ID of an operation, a hold, the allocations of a
// limiter, or a bundle.
type Space uint8

const (
	Limiters Space = iota
	Blocks
	Tokens
	Holds
	Allocations
	Bundles
)

// SpaceOf returns the name space of the keys of a kind of entry.
func SpaceOf(kind uint8) Space {
	switch kind {
	case KindBlock:
		return Blocks
	case KindToken:
		return Tokens
	case KindHold:
		return Holds
	case kindAllocations:
		return Allocations
	case kindBundle:
		return Bundles
	}
	return Limiters
}

// Entry is a view of the bytes of an entry, or of a limiter in a bundle. No key is empty, so a view with a key of
// length 0 is a limiter in a bundle.
type Entry []byte

// Kind returns the kind of the entry: an algorithm, or one of the other kinds.
func (e Entry) Kind() uint8         { return e[0] & (1<<kindBits - 1) }
func (e Entry) has(flag byte) bool  { return e[0]&flag != 0 }
func (e Entry) set(flag byte)       { e[0] |= flag }
func (e Entry) unset(flag byte)     { e[0] &^= flag }
func (e Entry) keyLen() int         { return int(le.Uint16(e) >> keyShift) }
func (e Entry) Limit() uint32       { return le.Uint32(e[2:]) & limitMask }
func (e Entry) next() arena.Ref     { return le.Uint32(e[5:]) }
func (e Entry) prev() arena.Ref     { return le.Uint32(e[9:]) }
func (e Entry) Key() []byte         { return e[entryHead : entryHead+e.keyLen()] }
func (e Entry) setLimit(id uint32)  { le.PutUint32(e[2:], le.Uint32(e[2:])&^limitMask|id) }
func (e Entry) setNext(r arena.Ref) { le.PutUint32(e[5:], r) }
func (e Entry) setPrev(r arena.Ref) { le.PutUint32(e[9:], r) }

// State returns the bytes from the state's first byte on.
func (e Entry) State() []byte {
	n := e.keyLen()
	if n == 0 {
		return e[memberHead:]
	}
	return e[entryHead+n:]
}

// bytes returns the bytes of the view, with the end of its state.
func (e Entry) bytes() []byte { return e[:len(e)-len(e.State())+stateLen(e)] }

// is reports whether the entry has this key in a name space.
func (e Entry) is(ns Space, key []byte) bool {
	return SpaceOf(e.Kind()) == ns && string(e.Key()) == string(key)
}

// init writes a new entry with a zero state, without links or limit.
func (e Entry) init(kind uint8, key []byte, stateLen int) {
	if len(key) > MaxEntryKey {
		panic("engine: a key longer than entries have")
	}
	le.PutUint16(e, uint16(kind)|uint16(len(key))<<keyShift)
	clear(e[2:entryHead])
	copy(e[entryHead:], key)
	clear(e.State()[:stateLen])
}
