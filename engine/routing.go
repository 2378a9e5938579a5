package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/store"
)

// lock locks the shards of operations and returns their numbers.
func (t *Table) lock(ops []Op, list []int) []int {
	list = t.involved(ops, list)
	t.lockShards(list)
	if t.holdsWithin(ops, list) {
		return list
	}
	// A hold was recreated on other keys before the locks were taken.
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

// shardsOfHold appends the shards of a hold's keys to a list.
func (t *Table) shardsOfHold(id []byte, list []int) []int {
	s := &t.shards[t.shardNumber(id)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, c := t.openHold(id); c.Ref != 0 {
		for key := range store.KeysOfHold(c.Entry.State()) {
			list = append(list, t.shardNumber(key))
		}
	}
	return list
}

// ofHold reports whether the operation acts on the hold named Key.
func (op *Op) ofHold() bool {
	return op.Code == OpCommit || op.Code == OpCancel || op.Code == OpExtend || op.Code == OpEnd
}

// holdsWithin reports whether all keys of the holds that operations extend or end are in locked shards.
func (t *Table) holdsWithin(ops []Op, locked []int) bool {
	for i := range ops {
		if !ops[i].ofHold() {
			continue
		}
		_, c := t.openHold(ops[i].Key)
		if c.Ref == 0 {
			continue
		}
		for key := range store.KeysOfHold(c.Entry.State()) {
			if _, ok := slices.BinarySearch(locked, t.shardNumber(key)); !ok {
				return false
			}
		}
	}
	return true
}

// shardOf returns the shard of a key with this full hash, whose leading bits choose the shard.
func (t *Table) shardOf(full uint64) *shard { return &t.shards[full>>(64-t.shardBits)] }

// find returns the hash of a name in the index of its shard, and the shard.
func (t *Table) find(name []byte) (uint64, *shard) {
	if name[0] == reservedPrefix[0] {
		if home := routingKey(name); len(home) < len(name) {
			return t.hashKey(name), t.shardOf(t.keys.of(home))
		}
	}
	full := t.keys.of(name)
	return full << t.shardBits, t.shardOf(full)
}

// shardNumber returns the number of a name's shard.
func (t *Table) shardNumber(name []byte) int {
	return int(t.keys.of(routingKey(name)) >> (64 - t.shardBits))
}

// routingKey returns the key that determines the shard of a limiter.
func routingKey(name []byte) []byte {
	if name[0] == reservedPrefix[0] {
		if _, _, key, ok := SplitName(name); ok {
			return key
		}
	}
	return name
}

// hashKey returns the hash of a name in the index, without the bits that choose the shard. The hash of a
// policy's limiter is computed from the hashes of key and policy. A check has both, so it need not hash the
// name.
func (t *Table) hashKey(name []byte) uint64 {
	if name[0] == reservedPrefix[0] {
		if policy, limit, key, ok := SplitName(name); ok {
			return limiterHash(t.hashKey(key), t.hashPolicy(policy), limit)
		}
	}
	return t.keys.of(name) << t.shardBits
}

// hashPolicy returns the hash of a policy's name. It uses another function than hashKey: with the same one, the two
// hashes in limiterHash would cancel out for every key that equals the name of its policy. The bits that choose the
// shard, with any number of shards, are 0: so that number does not change the order of the limiters.
func (t *Table) hashPolicy(name []byte) uint64 {
	return t.policyNames.of(name) << maxShardBits >> maxShardBits << t.shardBits
}

// limiterHash returns the hash of the limiter of a policy's limit for a key. The limiters of one policy for one
// key are in neighbouring groups of one segment. Each group has two of them, with different tags. So a check
// reads about as much memory as one or two lookups.
func limiterHash(key, policy uint64, limit int) uint64 {
	return store.SiblingHash(key^policy, limit)
}
