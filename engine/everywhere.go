package engine

import (
	"bytes"
	"maps"
	"slices"
)

// A block everywhere denies the decisions on its key, and on every key that ends in '|'
// and its key: one address stands behind the names of many routes and limits. Like any
// block it is an entry under its key. Beside that, the table has all of them in one set
// that never changes, so that a decision on any shard finds it: an operation that changes
// the set holds all shards, and comes between those before and behind it in the log.

// MaxBlocksEverywhere is how many blocks everywhere may be in force. A decision on a key
// with a '|' compares its end with their lengths, and each change copies the set.
const MaxBlocksEverywhere = 1000

// blocksEverywhere is a set of blocks everywhere, never empty: without any there is none.
type blocksEverywhere struct {
	byKey map[string]blockEverywhere
	lens  []int // of the keys, each once
}

type blockEverywhere struct {
	untilNs int64
	reason  string
}

// on returns the block in force on a key that ends in '|' and its own: of several the one
// that lasts longest, and of those the one with the longest key.
func (b *blocksEverywhere) on(key []byte, nowNs int64) (by string, found blockEverywhere) {
	if bytes.IndexByte(key, '|') < 0 {
		return "", found
	}
	for _, n := range b.lens {
		at := len(key) - n
		if at < 1 || key[at-1] != '|' {
			continue
		}
		x, there := b.byKey[string(key[at:])]
		if there && x.untilNs > nowNs && x.untilNs >= found.untilNs {
			by, found = string(key[at:]), x
		}
	}
	return by, found
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

// changeEverywhere replaces the set by one that differs as change says. The caller holds
// the shard of the key.
func (t *Table) changeEverywhere(change func(byKey map[string]blockEverywhere)) {
	t.everywhereMu.Lock()
	defer t.everywhereMu.Unlock()
	next := &blocksEverywhere{byKey: map[string]blockEverywhere{}}
	if old := t.everywhere.Load(); old != nil {
		next.byKey = maps.Clone(old.byKey)
	}
	change(next.byKey)
	for key := range next.byKey {
		next.lens = append(next.lens, len(key))
	}
	slices.Sort(next.lens)
	if next.lens = slices.Compact(next.lens); len(next.lens) == 0 {
		next = nil
	}
	t.everywhere.Store(next)
}

// noteBlock brings the set up to date with an entry that is a block, or ends being one.
func (s *shard) noteBlock(e entry, there bool) {
	if e.kind() != kindBlock || !isEverywhere(e.state()) {
		return
	}
	s.t.changeEverywhere(func(byKey map[string]blockEverywhere) {
		if delete(byKey, string(e.key())); there {
			untilNs, reason := readBlock(e.state())
			byKey[string(e.key())] = blockEverywhere{untilNs, string(reason)}
		}
	})
}

// forgetEverywhere takes the blocks of a shard that is emptied out of the set.
func (s *shard) forgetEverywhere() {
	if s.t.everywhere.Load() == nil {
		return
	}
	s.t.changeEverywhere(func(byKey map[string]blockEverywhere) {
		maps.DeleteFunc(byKey, func(key string, _ blockEverywhere) bool { return s.t.placeOf([]byte(key)) == s.number })
	})
}

// mayBlockEverywhere reports whether there is room for one more block everywhere. What
// counts is what is in force: tables collect what has ended at times of their own.
func (s *shard) mayBlockEverywhere(key []byte) bool {
	all := s.t.everywhere.Load()
	return all == nil || len(all.byKey) < MaxBlocksEverywhere || all.inForce(key, s.nowNs) < MaxBlocksEverywhere
}

// changesEverywhere reports whether an operation changes, or may change, what is blocked
// everywhere.
func (t *Table) changesEverywhere(op *Op) bool {
	return op.Code == OpBlockEverywhere || (op.Code == OpBlock || op.Code == OpUnblock) && t.everywhere.Load() != nil
}

// anyBlock reports whether a key of the shard may be blocked. Mostly none is.
func (s *shard) anyBlock() bool {
	return s.counts.entries[kindBlock] > 0 || s.t.everywhere.Load() != nil
}
