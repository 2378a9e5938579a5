package engine

import (
	"slices"
	"strings"
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

// on returns the block in force on a key that outlasts the others. Without a block in force it returns the zero
// value.
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

// has reports whether a key has a block everywhere, which may have ended.
func (b *blocksEverywhere) has(key []byte) bool {
	_, there := b.byKey[string(key)]
	return there
}

// from returns when the block everywhere with exactly this key ends, or 0 if none is in force.
func (b *blocksEverywhere) from(key []byte, nowNs int64) (untilNs int64) {
	if len(key) == 0 {
		return 0
	}
	if x := b.byKey[string(key)]; x.untilNs > nowNs {
		return x.untilNs
	}
	return 0
}

// index builds the suffix index that on reads.
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
	}
	slices.Sort(b.lens)
	b.lens = slices.Compact(b.lens)
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
