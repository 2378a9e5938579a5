package engine

import (
	"bytes"
	"cmp"
	"math/bits"
	"strings"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/network"
)

// A block everywhere denies the decisions on its key, and on every key that ends in '|' and its key. So
// one block covers an address behind the names of many routes and limits. Some clients write the address
// alone and others write "ip:" before it, so a block of "ip:A" also applies to A.
//
// A block everywhere is an entry under its key, like any block. In addition, the table keeps all blocks everywhere in
// one immutable set (everywhereset.go), so that a decision on any shard finds them without a lock. An operation that
// changes the set locks all shards. Replicas therefore apply the change in the order of the log, before and after the
// same decisions.
//
// The key of a block everywhere may be "ip:" and a network. Such a block denies every decision whose key, or what is
// behind the last '|' in it, is an address or a network in the blocked network, alone or behind "ip:". It begins to do
// so with RulesNetworks. A decision looks up one network for each length that the blocked networks have.
//
// A client may be identified by a user name, so that no key contains its address. Op.From then names the
// address, and a block everywhere of the address denies the operation.

// MaxBlocksEverywhere bounds the blocks everywhere in force, and oldMaxBlocksEverywhere by rules older than
// RulesManyBlocks.
const (
	MaxBlocksEverywhere    = 100_000
	oldMaxBlocksEverywhere = 1000
)

// MaxBlocksEverywhere returns how many blocks everywhere may be in force by the rules.
func (r Rules) MaxBlocksEverywhere() int64 {
	if r < RulesManyBlocks {
		return oldMaxBlocksEverywhere
	}
	return MaxBlocksEverywhere
}

// MostBlocks returns how many blocks everywhere may be in force, if the status is BlocksFull.
func (d *Decision) MostBlocks() int64 { return cmp.Or(d.Remaining, oldMaxBlocksEverywhere) }

// MaxFromLen bounds Op.From: "ip:" and the /64 of an IPv6 address, with spare bytes.
const MaxFromLen = 64

// addressKind is the prefix of a key like "ip:192.0.2.1". Other keys have the address alone.
const addressKind = "ip:"

// blockEverywhere is a block everywhere in the set. Only its place in the heap changes.
type blockEverywhere struct {
	key     string
	reason  string
	untilNs int64
	version uint64 // store.Block.Version
	slot    uint16
	network bool // it denies a network, see networkOf
	member  bool // it denies an address or a network, which BlocksEverywhere.Members has
	at      int  // the place in everywhereIndex.ends, which its lock guards
}

// outlasts orders the blocks that apply to one key, so that all tables name the same block. A nil block is none.
func (b *blockEverywhere) outlasts(other *blockEverywhere) bool {
	return other == nil || b.untilNs > other.untilNs || b.untilNs == other.untilNs && b.key > other.key
}

// end returns when the block ends, and 0 without a block.
func (b *blockEverywhere) end() int64 {
	if b == nil {
		return 0
	}
	return b.untilNs
}

// name returns the shortest key that the block applies to.
func (b *blockEverywhere) name() string { return nameOf(b.key) }

func nameOf[T string | []byte](key T) T {
	if len(key) > len(addressKind) && string(key[:len(addressKind)]) == addressKind {
		return key[len(addressKind):]
	}
	return key
}

// everywhereOn returns the block everywhere in force that denies the decisions on a key and outlasts the others, or
// nil.
func (t *Table) everywhereOn(key []byte, nowNs int64) (found *blockEverywhere) {
	all := t.everywhere.Load()
	if all == nil {
		return nil
	}
	for {
		found = all.on(t, key, nowNs, found)
		_, rest, bar := bytes.Cut(key, []byte{'|'})
		if !bar {
			return t.around(all, key, nowNs, found)
		}
		key = rest
	}
}

// everywhereFrom is everywhereOn for the decisions that come from an address. key is the key that a block of this
// address has, or empty.
func (t *Table) everywhereFrom(key []byte, nowNs int64) (found *blockEverywhere) {
	all := t.everywhere.Load()
	if all == nil || len(key) == 0 {
		return nil
	}
	if x := all.of(t, key); x.end() > nowNs {
		found = x
	}
	return t.around(all, key, nowNs, found)
}

// FromBlock describes the block everywhere that denies all decisions from an address.
type FromBlock struct {
	By     string // its key; empty: no block denies them
	LeftMs int64  // -1: it has no end
	Reason string
}

// FromBlock returns the block everywhere that denies the decisions from an address, or from all of a network. key is
// the key that a block of it has.
func (t *Table) FromBlock(at Stamp, key []byte) FromBlock {
	x := t.everywhereFrom(key, at.NowNs)
	switch x.end() {
	case 0:
		return FromBlock{}
	case Never:
		return FromBlock{x.key, -1, x.reason}
	}
	return FromBlock{x.key, arith.NsToMs(x.untilNs - at.NowNs), x.reason}
}

// on returns the block in force that applies to a suffix of a key, or found if that outlasts it.
func (b *blocksEverywhere) on(t *Table, suffix []byte, nowNs int64, found *blockEverywhere) *blockEverywhere {
	if !b.lens.has(len(suffix)) {
		return found
	}
	better := func(x *blockEverywhere) {
		if x.end() > nowNs && x.outlasts(found) {
			found = x
		}
	}
	for l := b.names.Of(t.keys.of(suffix)); l != nil; l = l.Next {
		if l.Value.name() == string(suffix) {
			better(l.Value)
		}
	}
	if len(nameOf(suffix)) < len(suffix) {
		better(b.of(t, suffix))
	}
	return found
}

// of returns the block of a key, which may have ended, or nil.
func (b *blocksEverywhere) of(t *Table, key []byte) *blockEverywhere {
	for l := b.names.Of(t.keys.of(nameOf(key))); l != nil; l = l.Next {
		if l.Value.key == string(key) {
			return l.Value
		}
	}
	return nil
}

// around returns the block in force of a network that contains the client of a text, or found if that outlasts it.
func (t *Table) around(b *blocksEverywhere, text []byte, nowNs int64, found *blockEverywhere) *blockEverywhere {
	if b.lengths == [2]uint64{} || t.Rules() < RulesNetworks {
		return found
	}
	client, ok := network.Parse(bytes.TrimPrefix(text, []byte(addressKind)))
	if !ok {
		return found
	}
	for lengths := b.lengths[arith.OneIf(client.V4)]; lengths != 0; lengths &= lengths - 1 {
		n := bits.TrailingZeros64(lengths)
		if n > client.Bits {
			break
		}
		in := client.Mask(n)
		for l := b.networks.Of(t.hashNetwork(in)); l != nil; l = l.Next {
			x := l.Value
			if its, _ := networkOf(x.key); its == in && x.untilNs > nowNs && x.outlasts(found) {
				found = x
			}
		}
	}
	return found
}

func (t *Table) hashNetwork(n network.Network) uint64 {
	b := n.Bytes()
	return t.keys.of(b[:])
}

// BlocksNetwork reports whether a block everywhere of a key denies the decisions of a whole network.
func BlocksNetwork(key []byte) bool {
	_, is := networkOf(string(key))
	return is
}

// networkOf returns the network that a block everywhere of a key denies, if it denies one.
func networkOf(key string) (n network.Network, is bool) {
	text, named := strings.CutPrefix(key, addressKind)
	if !named {
		return n, false
	}
	n, ok := network.Parse([]byte(text))
	return n, ok && n.IsSeveral() && n.Mask(n.Bits) == n
}
