package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/store"
)

// OpenHold is a hold that is open.
type OpenHold struct {
	ID         []byte
	Held, Used int64 // units: not reported as used, and reported (OpCommit with Keep)
	EndsMs     int64 // until it ends by itself, rounded up
	Keep       bool  // units that are held in the end count as used
}

// Holds lists the open holds on the limiters of a policy for a key. A listing starts at cursor 0. One call looks at
// about count allocations, and returns the next cursor, or 0 at the end. A hold that is open throughout is listed at
// least once; a hold that is extended meanwhile may be listed again. A cursor means the same to every replica.
//
// The cursor is the number of the policy's limit and that of an allocation. A hold is listed under the first limit of
// which it has units: a later limit may have it alone, because the window of an earlier limit has ended.
func (t *Table) Holds(at Stamp, policy, key []byte, cursor uint64, count int) (list []OpenHold, next uint64) {
	ids, next := t.holdIDs(at, policy, key, cursor, count)
	for _, id := range ids {
		if x, open := t.openHoldOf(at, id); open {
			list = append(list, x)
		}
	}
	return list, next
}

// holdIDs returns the ids of the holds that Holds lists.
func (t *Table) holdIDs(at Stamp, policy, key []byte, cursor uint64, count int) (ids [][]byte, next uint64) {
	_, s := t.find(key)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	var cells []store.Cell
	for limit := range MaxPolicyLimits {
		name := LimiterName(string(policy), limit, key)
		c := store.Cell{Hash: t.hashKey(name), Key: name}
		s.Open(&c)
		s.UpToDate(&c)
		from := cursor / MaxPolicyLimits
		switch first := int(cursor % MaxPolicyLimits); {
		case limit > first:
			from = 0
		case limit < first:
			cells = append(cells, c)
			continue
		}
		looked, seq := s.HoldsFrom(&c, from, count, func(id []byte) {
			if !slices.ContainsFunc(cells, func(c store.Cell) bool { return s.HasAllocation(&c, id) }) {
				ids = append(ids, slices.Clone(id))
			}
		})
		if seq != 0 {
			return ids, seq*MaxPolicyLimits + uint64(limit)
		}
		if count -= looked; count <= 0 && limit+1 < MaxPolicyLimits {
			return ids, uint64(limit + 1)
		}
		cells = append(cells, c)
	}
	return ids, 0
}

// openHoldOf returns a hold if it is open.
func (t *Table) openHoldOf(at Stamp, id []byte) (x OpenHold, open bool) {
	_, s := t.find(id)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	_, c := t.openHold(id)
	if !c.Live {
		return x, false
	}
	h := store.ReadHold(c.Entry.State())
	x = OpenHold{id, max(h.Total()-h.Actual, 0), h.Actual, s.SpanMs(h.EndsNs), h.Keep}
	return x, h.Phase == store.HoldOpen && s.NowNs < h.EndsNs
}
