package engine

import (
	"hash/maphash"
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

// shardsOfHold adds the shards of the keys of a hold to a list.
func (t *Table) shardsOfHold(id []byte, list []int) []int {
	t.shards[t.shardNumber(id)].mu.Lock()
	defer t.shards[t.shardNumber(id)].mu.Unlock()
	return t.shardsOfOpenHold(id, list)
}

// shardsOfOpenHold is placesOfHold for who has locked the shard of the id.
func (t *Table) shardsOfOpenHold(id []byte, list []int) []int {
	if _, c := t.openHold(id); c.Ref != 0 {
		for _, p := range store.ReadHold(c.Entry.State()).Pairs {
			list = append(list, t.shardNumber(p.Key))
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
		for _, place := range t.shardsOfOpenHold(ops[i].Key, nil) {
			if _, ok := slices.BinarySearch(locked, place); !ok {
				return false
			}
		}
	}
	return true
}

// shardOf returns the shard of a key with this full hash: the leading bits choose it.
func (t *Table) shardOf(full uint64) *shard { return &t.shards[full>>(64-t.shardBits)] }

// find returns a name's hash within its shard, and the shard.
func (t *Table) find(name []byte) (uint64, *shard) {
	if name[0] == reservedPrefix[0] {
		if home := routingKey(name); len(home) < len(name) {
			return t.hashKey(name), t.shardOf(maphash.Bytes(t.seed, home))
		}
	}
	full := maphash.Bytes(t.seed, name)
	return full << t.shardBits, t.shardOf(full)
}

// shardNumber is the number of a name's shard.
func (t *Table) shardNumber(name []byte) int {
	return int(maphash.Bytes(t.seed, routingKey(name)) >> (64 - t.shardBits))
}

// routingKey returns the key in whose shard a limiter has its place.
func routingKey(name []byte) []byte {
	if name[0] == reservedPrefix[0] {
		if _, _, key, ok := SplitName(name); ok {
			return key
		}
	}
	return name
}

// hashKey is the hash by which the index knows a name: the bits that choose the shard
// are shifted away. That of a policy's limiter follows from those of key and policy, so
// that a check, which knows both, need not read the name.
func (t *Table) hashKey(name []byte) uint64 {
	if name[0] == reservedPrefix[0] {
		if policy, limit, key, ok := SplitName(name); ok {
			return limiterHash(t.hashKey(key), t.hashPolicy(policy), limit)
		}
	}
	return maphash.Bytes(t.seed, name) << t.shardBits
}

// hashPolicy has a seed of its own: by the same one, the places of all keys that are called
// as their policy would be one.
func (t *Table) hashPolicy(name []byte) uint64 {
	return maphash.Bytes(t.policySeed, name) << t.shardBits
}

// limiterHash is the hash of the limiter of a policy's limit for a key. The limiters of one
// policy for one key are in neighbouring groups of one segment, two in each, with
// different tags: a check finds all in as much memory as one or two.
func limiterHash(key, policy uint64, limit int) uint64 {
	return key ^ policy ^ uint64(limit&1)<<store.TagShift ^ uint64(limit>>1)<<store.GroupShift
}
