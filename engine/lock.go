package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/store"
)

// lock locks the shards of operations and returns which they are.
func (t *Table) lock(ops []Op, list []int) []int {
	list = t.involved(ops, list)
	t.lockShards(list)
	if t.holdsWithin(ops, list) {
		return list
	}
	// The hold was made anew on other keys while nothing was locked.
	t.unlock(list)
	list = t.everyShard(list[:0])
	t.lockShards(list)
	return list
}

func (t *Table) lockShards(list []int) {
	for _, i := range list {
		t.shards[i].mu.Lock()
	}
}

func (t *Table) unlock(list []int) {
	for _, i := range list {
		t.shards[i].mu.Unlock()
	}
}

func (t *Table) everyShard(list []int) []int {
	for i := range t.shards {
		list = append(list, i)
	}
	return list
}

// placesOfHold adds the shards of the keys of a hold to a list.
func (t *Table) placesOfHold(id []byte, list []int) []int {
	t.shards[t.placeOf(id)].mu.Lock()
	defer t.shards[t.placeOf(id)].mu.Unlock()
	return t.places(id, list)
}

// places is placesOfHold for who has locked the shard of the id.
func (t *Table) places(id []byte, list []int) []int {
	if _, c := t.openHold(id); c.Ref != 0 {
		for _, p := range store.ReadHold(c.Entry.State()).Pairs {
			list = append(list, t.placeOf(p.Key))
		}
	}
	return list
}

// holdsWithin reports whether the holds that operations settle have all their keys in
// shards that are locked.
func (t *Table) holdsWithin(ops []Op, locked []int) bool {
	for i := range ops {
		if ops[i].Code != OpCommit && ops[i].Code != OpCancel {
			continue
		}
		for _, place := range t.places(ops[i].Key, nil) {
			if _, ok := slices.BinarySearch(locked, place); !ok {
				return false
			}
		}
	}
	return true
}
