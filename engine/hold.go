package engine

import "github.com/weir-project/weir/engine/internal/store"

// A hold takes units before the true cost of a request is known (OpReserve), and is
// settled once it is (OpCommit) or called off (OpCancel). It consists of a record under
// its id (this file) and of a claim in every limiter it took from (claims.go).
//
//	none ── OpReserve ─▶ held ─┬─ OpCommit ─▶ settled ───┐
//	                           ├─ OpCancel ─▶ cancelled ─┼─ IDLifetime ─▶ none
//	                           └─ its end ──▶ ended ─────┘
//
// Claims end by themselves: nothing has to be done for a hold at its end. One that has
// ended or was cancelled has given everything back. An OpCommit that comes then all the
// same takes its units anew and settles the hold: they were used, and a limit that did not
// count them would have let through too much.

// HoldBytes is what the policies and keys of an OpReserve take of MaxHoldBytes.
func (op *Op) HoldBytes() (n int) {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return n
		}
		n += store.HoldPairHead + len(pair.Policy) + len(pair.Key)
	}
}

// sameHold reports whether the hold was made on the terms of an OpReserve.
func sameHold(x *store.Hold, op *Op) bool {
	if x.Units != op.Cost || x.TTLNs != op.TTLNs || x.High != op.High || len(x.Pairs) != 1+len(op.Also) {
		return false
	}
	for i, p := range x.Pairs {
		asked := op.PairAt(i)
		if string(p.Policy) != string(asked.Policy) || string(p.Key) != string(asked.Key) {
			return false
		}
	}
	return true
}

// openHold finds the record of a hold, in the shard of its id.
func (t *Table) openHold(id []byte) (s *shard, c store.Cell) {
	h, s := t.find(id)
	c = store.Cell{Hash: h, Key: id, Space: store.Holds}
	s.Open(&c)
	return s, c
}
