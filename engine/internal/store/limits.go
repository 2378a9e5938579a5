package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// limitTable interns limits: it gives each limit in use a small number, so that an entry need not contain its
// limit. Number 0 means no limit.
type limitTable struct {
	slots  []limitSlot
	number map[rule.Limit]uint32
	vacant []uint32
	newest uint32       // the number that acquire returned last, because new entries often have the same limit
	used   *arena.Meter // bytes of limits
}

// storedLimit is a limit and its stored form.
type storedLimit struct {
	limit  rule.Limit
	stored []byte // empty: none was read
}

type limitSlot struct {
	limit rule.Limit
	refs  uint32
}

// limitBytes is the memory that the memory bound counts for one limit: its slot and its map entry, without steps.
const limitBytes = 256

// bytesOf returns the memory that the memory bound counts for a limit. Slot and map entry share the steps.
func bytesOf(l *rule.Limit) int64 { return limitBytes + int64(len(l.Steps)) }

func newLimitTable(used *arena.Meter) limitTable {
	return limitTable{slots: make([]limitSlot, 1), number: map[rule.Limit]uint32{}, used: used}
}

// Bytes returns the memory that the limits in use count for.
func (t *limitTable) Bytes() (n int64) {
	for l := range t.number {
		n += bytesOf(&l)
	}
	return n
}

// At returns the limit with this number. The pointer is valid until the next acquire.
func (t *limitTable) At(id uint32) *rule.Limit { return &t.slots[id].limit }

// has reports whether a limit is in use.
func (t *limitTable) has(l *rule.Limit) bool {
	_, ok := t.number[*l]
	return ok
}

// acquire returns the number of a limit and increments its reference count.
func (t *limitTable) acquire(l *rule.Limit) uint32 {
	id := t.newest
	if of := &t.slots[id]; of.refs == 0 || of.limit != *l {
		var ok bool
		if id, ok = t.number[*l]; !ok {
			id = t.add(*l)
		}
		t.newest = id
	}
	t.slots[id].refs++
	return id
}

func (t *limitTable) add(l rule.Limit) uint32 {
	id := uint32(len(t.slots))
	if n := len(t.vacant); n > 0 {
		id, t.vacant = t.vacant[n-1], t.vacant[:n-1]
	} else if id > limitMask {
		panic("engine: more than 16 million limits in one shard; use more shards")
	} else {
		t.slots = append(t.slots, limitSlot{})
	}
	t.slots[id] = limitSlot{limit: l}
	t.number[l] = id
	t.used.Add(bytesOf(&l))
	return id
}

// release decrements the reference count of a limit and removes an unused limit.
func (t *limitTable) release(id uint32) {
	if id == 0 {
		return
	}
	slot := &t.slots[id]
	if slot.refs--; slot.refs > 0 {
		return
	}
	delete(t.number, slot.limit)
	t.used.Add(-bytesOf(&slot.limit))
	*slot = limitSlot{}
	t.vacant = append(t.vacant, id)
}
