package engine

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/network"
)

// A block everywhere denies the decisions on its key, and on every key that ends in '|' and its key. So
// one block covers an address behind the names of many routes and limits. Some clients write the address
// alone and others write "ip:" before it, so a block of "ip:A" also applies to A.
//
// A block everywhere is an entry under its key, like any block. In addition, the table keeps all blocks
// everywhere in one immutable set, so that a decision on any shard finds them. An operation that changes the
// set locks all shards. Replicas therefore apply the change in the order of the log, before and after the
// same decisions.
//
// The key of a block everywhere may be "ip:" and a network. Such a block denies every decision whose key, or what is
// behind the last '|' in it, is an address or a network in the blocked network, alone or behind "ip:". It begins to do
// so with RulesNetworks. A decision looks up one network for each length that the blocked networks have.
//
// A client may be identified by a user name, so that no key contains its address. Op.From then names the
// address, and a block everywhere of the address denies the operation.

// MaxBlocksEverywhere bounds the blocks everywhere in force. A decision looks up one suffix of its key for each
// length that the blocked keys have, and each change copies the set.
const MaxBlocksEverywhere = 1000

// MaxFromLen bounds Op.From: "ip:" and the /64 of an IPv6 address, with spare bytes.
const MaxFromLen = 64

// addressKind is the prefix of a key like "ip:192.0.2.1". Other keys have the address alone.
const addressKind = "ip:"

// blocksEverywhere is an immutable set of blocks everywhere. It is never empty: a table without blocks
// everywhere has no set.
type blocksEverywhere struct {
	byKey map[string]blockEverywhere
	byEnd map[string]blockEverywhere // by the key suffix they apply to: the block that ends last
	lens  []int                      // the lengths of these suffixes, each once

	networks map[network.Network]blockEverywhere // the block that ends last
	lengths  [2]uint64                           // of these networks, as bits: of IPv6 and of IPv4
}

type blockEverywhere struct {
	key     string
	untilNs int64
	reason  string
}

// outlasts orders the blocks that apply to one key, so that all tables name the same block.
func (b *blockEverywhere) outlasts(other *blockEverywhere) bool {
	return b.untilNs > other.untilNs || b.untilNs == other.untilNs && b.key > other.key
}

// everywhereOn returns the block everywhere in force that denies the decisions on a key and outlasts the others.
// Without one it returns the zero value.
func (t *Table) everywhereOn(key []byte, nowNs int64) (found blockEverywhere) {
	if all := t.everywhere.Load(); all != nil {
		found = all.on(key, nowNs)
		if len(all.networks) > 0 && t.Rules() >= RulesNetworks {
			all.around(key[bytes.LastIndexByte(key, '|')+1:], nowNs, &found)
		}
	}
	return found
}

// everywhereFrom is everywhereOn for the decisions that come from an address. key is the key that a block of this
// address has, or empty.
func (t *Table) everywhereFrom(key []byte, nowNs int64) (found blockEverywhere) {
	all := t.everywhere.Load()
	if all == nil || len(key) == 0 {
		return found
	}
	if x := all.byKey[string(key)]; x.untilNs > nowNs {
		found = x
	}
	if len(all.networks) > 0 && t.Rules() >= RulesNetworks {
		all.around(key, nowNs, &found)
	}
	return found
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
	switch x.untilNs {
	case 0:
		return FromBlock{}
	case Never:
		return FromBlock{x.key, -1, x.reason}
	}
	return FromBlock{x.key, arith.NsToMs(x.untilNs - at.NowNs), x.reason}
}

// on returns the block in force on a key, or on a suffix of it, that outlasts the others.
func (b *blocksEverywhere) on(key []byte, nowNs int64) (found blockEverywhere) {
	for _, n := range b.lens {
		at := len(key) - n
		if at < 0 || at > 0 && key[at-1] != '|' {
			continue
		}
		if x, there := b.byEnd[string(key[at:])]; there && x.untilNs > nowNs && x.outlasts(&found) {
			found = x
		}
	}
	return found
}

// around replaces found by a block in force that outlasts it, of a network that contains the client of a text.
func (b *blocksEverywhere) around(text []byte, nowNs int64, found *blockEverywhere) {
	client, ok := network.Parse(bytes.TrimPrefix(text, []byte(addressKind)))
	if !ok {
		return
	}
	for lengths := b.lengths[arith.OneIf(client.V4)]; lengths != 0; lengths &= lengths - 1 {
		n := bits.TrailingZeros64(lengths)
		if n > client.Bits {
			return
		}
		if x, there := b.networks[client.Mask(n)]; there && x.untilNs > nowNs && x.outlasts(found) {
			*found = x
		}
	}
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

// has reports whether a key has a block everywhere, which may have ended.
func (b *blocksEverywhere) has(key []byte) bool {
	_, there := b.byKey[string(key)]
	return there
}

// index builds the indexes of suffixes and networks.
func (b *blocksEverywhere) index() {
	b.byEnd = make(map[string]blockEverywhere, len(b.byKey))
	add := func(end string, x blockEverywhere) {
		if old, there := b.byEnd[end]; !there {
			b.lens = append(b.lens, len(end))
		} else if old.outlasts(&x) {
			return
		}
		b.byEnd[end] = x
	}
	for key, x := range b.byKey {
		add(key, x)
		if addr, ok := strings.CutPrefix(key, addressKind); ok && addr != "" {
			add(addr, x)
		}
		b.addNetwork(&x)
	}
	slices.Sort(b.lens)
	b.lens = slices.Compact(b.lens)
}

func (b *blocksEverywhere) addNetwork(x *blockEverywhere) {
	n, is := networkOf(x.key)
	if old, there := b.networks[n]; !is || there && old.outlasts(x) {
		return
	}
	if b.networks == nil {
		b.networks = map[network.Network]blockEverywhere{}
	}
	b.networks[n] = *x
	b.lengths[arith.OneIf(n.V4)] |= 1 << n.Bits
}

// inForce counts the blocks that have not ended, except the block of the key but.
func (b *blocksEverywhere) inForce(but []byte, nowNs int64) (n int) {
	for key, x := range b.byKey {
		if x.untilNs > nowNs && key != string(but) {
			n++
		}
	}
	return n
}
