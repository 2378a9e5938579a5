package engine

import (
	"slices"
	"strings"
)

// A block everywhere denies the decisions on its key, and on every key that ends in '|'
// and its key: one address stands behind the names of many routes and limits. Some write
// the address alone where others write "ip:" in front, so a block of "ip:A" holds for A
// as well. Like any block it is an entry under its key. Beside that, the table has all of
// them in one set that never changes, so that a decision on any shard finds it: an
// operation that changes the set holds all shards, and comes between those before and
// behind it in the log.
//
// A client may also be known by a user while its address is not in any key. An operation
// says in From which address it comes from, and a block everywhere of that denies it too.

// MaxBlocksEverywhere is how many blocks everywhere may be in force. A decision compares
// the length of its key's ends with theirs, and each change copies the set.
const MaxBlocksEverywhere = 1000

// MaxFromLen bounds Op.From: "ip:" and the /64 of an IPv6 address, with room.
const MaxFromLen = 64

// addressKind is what keys of addresses begin with, where they name what they are.
const addressKind = "ip:"

// blocksEverywhere is a set of blocks everywhere, never empty: without any there is none.
type blocksEverywhere struct {
	byKey map[string]blockEverywhere
	byEnd map[string]blockEverywhere // by the ends of keys they hold for: the last to end
	lens  []int                      // of these ends, each once
}

type blockEverywhere struct {
	key     string
	untilNs int64
	reason  string
}

// outlasts orders the blocks of one key, so that all tables name the same one.
func (b *blockEverywhere) outlasts(other *blockEverywhere) bool {
	return b.untilNs > other.untilNs || b.untilNs == other.untilNs && b.key > other.key
}

// on returns the block in force on a key that outlasts the others; none ends at 0.
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

// from returns when the block everywhere ends that has exactly this key; none ends at 0.
func (b *blocksEverywhere) from(key []byte, nowNs int64) (untilNs int64) {
	if len(key) == 0 {
		return 0
	}
	if x := b.byKey[string(key)]; x.untilNs > nowNs {
		return x.untilNs
	}
	return 0
}

// index makes what on needs.
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

// inForce counts the blocks that have not ended, but for that of one key.
func (b *blocksEverywhere) inForce(but []byte, nowNs int64) (n int) {
	for key, x := range b.byKey {
		if x.untilNs > nowNs && key != string(but) {
			n++
		}
	}
	return n
}
