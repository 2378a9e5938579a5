package engine

import (
	"bytes"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// Load restores a stored entry and replaces an entry of the same key. It skips an entry that is idle at the
// stamp and returns false for it. An error means that Drain did not write the key or the value. Load does not
// mark the entry as changed. Many goroutines may call Load, but the calls for keys with one OrderKey must be in
// order.
func (t *Table) Load(at Stamp, key, value []byte) (bool, error) {
	if len(value) == 0 || !validStorageKey(key) {
		return false, ErrStored
	}
	switch key[0] {
	case policyClass:
		return t.loadPolicy(string(key[1:]), value)
	case orderClass:
		return true, t.order.load(value)
	case eventClass:
		return true, loadedEvent(t.events.Load(string(key[1:]), value))
	case store.StorageKinds[store.Bundles]:
		return t.loadBundle(at, key[1:], value)
	case store.AllocationBlocks:
		return t.loadBlock(at, key[1:], value)
	}
	kind, more := value[0]&^store.StoredMore, value[0]&store.StoredMore != 0
	if kind >= uint8(store.NumStoredKinds) || store.StorageKinds[store.SpaceOf(kind)] != key[0] ||
		more && !store.HasLog(kind) {
		return false, ErrStored
	}
	s, c, err := t.stored(key)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	s.NowNs = max(s.NowNs, at.NowNs)
	if !more && !s.Extends(&c, value[1:]) {
		s.Unload(&c)
	}
	return s.Load(&c, kind, value[1:])
}

// Unload removes an entry that was loaded: the effect of a Change without a value. It succeeds if the table has
// no such entry.
func (t *Table) Unload(key []byte) error {
	if !validStorageKey(key) {
		return ErrStored
	}
	switch key[0] {
	case policyClass:
		t.policyMu.Lock()
		defer t.policyMu.Unlock()
		t.policies.Store(t.policies.Load().without(string(key[1:])))
		return nil
	case orderClass:
		return nil
	case eventClass:
		t.events.Unload(string(key[1:]))
		return nil
	case store.StorageKinds[store.Bundles]:
		return t.unloadBundle(key[1:])
	case store.AllocationBlocks:
		_, err := t.loadBlock(Stamp{}, key[1:], nil)
		return err
	}
	s, c, err := t.stored(key)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.Unload(&c)
	return nil
}

// loadBlock is Load for a block of allocations, or Unload if the value is empty.
func (t *Table) loadBlock(at Stamp, key, value []byte) (bool, error) {
	name, number, ok := store.SplitBlockKey(key)
	if !ok {
		return false, ErrStored
	}
	h, s := t.find(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.NowNs = max(s.NowNs, at.NowNs)
	c := store.Cell{Hash: h, Key: name}
	if len(value) == 0 {
		s.UnloadBlock(&c, number)
		return false, nil
	}
	return true, s.LoadBlock(&c, number, value)
}

// loadBundle is Load for the limiters of a policy and a key that are stored together. name names limiter number 0.
func (t *Table) loadBundle(at Stamp, name, value []byte) (bool, error) {
	if !bundleName(name) {
		return false, ErrStored
	}
	h, s := t.find(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.NowNs = max(s.NowNs, at.NowNs)
	return s.LoadBundle(h, name, value)
}

// unloadBundle is Unload for limiters that are stored together.
func (t *Table) unloadBundle(name []byte) error {
	if !bundleName(name) {
		return ErrStored
	}
	h, s := t.find(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.UnloadBundle(h, name)
	return nil
}

// bundleName reports whether a policy's limiter number 0 has this name.
func bundleName(name []byte) bool {
	_, number, _, ok := SplitName(name)
	return ok && number == 0 && len(name) <= MaxNameLen
}

// OrderKey returns the part of a storage key that orders changes. If two changes have the same part, Load and Unload
// must be called in the order in which Drain handed them out. All limiters of a policy for one key have the same part,
// because they may be stored together or one by one. So have the allocations of a limiter.
func OrderKey(key []byte) []byte {
	if len(key) < 2 {
		return key
	}
	switch key[0] {
	case store.StorageKinds[store.Limiters], store.StorageKinds[store.Bundles]:
		return routingKey(key[1:])
	case store.StorageKinds[store.Allocations]:
		return key[1:]
	case store.AllocationBlocks:
		if name, _, ok := store.SplitBlockKey(key[1:]); ok {
			return name
		}
	}
	return key
}

func validStorageKey(key []byte) bool {
	return len(key) >= 2 && len(key) <= 1+2+MaxNameLen+MaxIDLen
}

// stored opens the entry of a storage key and locks its shard. If it returns an error, no shard is locked.
func (t *Table) stored(key []byte) (*shard, store.Cell, error) {
	ns := bytes.IndexByte(store.StorageKinds[:], key[0])
	if ns < 0 {
		return nil, store.Cell{}, ErrStored
	}
	c := store.Cell{Key: key[1:], Space: store.Space(ns)}
	shardKey := c.Key
	if c.Space == store.Tokens {
		var ok bool
		if shardKey, ok = store.KeyOfToken(c.Key); !ok {
			return nil, c, ErrStored
		}
	}
	s := &t.shards[t.shardNumber(shardKey)]
	c.Hash = t.hashKey(c.Key)
	s.mu.Lock()
	s.Open(&c)
	return s, c, nil
}

// Reserve prepares an empty table for about this many entries, so that loading them is faster.
func (t *Table) Reserve(entries int64) {
	t.eachShard(Stamp{}, func(s *shard) {
		if s.Keys() == 0 && s.Counts.Entries[store.KindToken] == 0 {
			s.Index.Reserve(entries / int64(len(t.shards)))
		}
	})
}

// StateHash returns a hash of all state that decisions at or after the stamp depend on: policies, and entries of
// all kinds that are not idle. Tables that carried out the same operations at the same stamps have the same
// hash. The number of shards, collection, storing and loading do not change it. Tables that differ in one entry
// have different hashes, except with a chance of 1 in 2^64.
//
// StateHash locks one segment at a time. To hash a consistent state, the caller must stop decisions meanwhile.
func (t *Table) StateHash(at Stamp) (sum uint64) {
	h := store.NewHasher()
	for full := uint64(0); ; {
		full = t.lookSegment(at, full, func(s *shard, g *store.Segment) {
			g.Each(func(r arena.Ref) {
				s.EachView(r, func(e store.Entry, live bool) {
					if live {
						sum += h.Entry(&s.Store, e)
					}
				})
			})
		})
		if full == 0 {
			return sum + hashPolicies(&h, t.policies.Load()) + t.order.hash(&h) + t.hashEvents(&h)
		}
	}
}

// Renew sets the dirty bits of entries that have not changed. It serves a store that keeps changes in order:
// after a whole rewrite pass, the store no longer needs the changes drained before the pass.
//
// A pass begins at cursor 0 and continues at the cursor that Renew returns, until that is 0. Each call renews
// at least the given number of entries. A pass may omit entries that are added or removed meanwhile, because
// Drain hands these out anyway. Renew must not run concurrently with itself.
func (t *Table) Renew(cursor uint64, entries int) (next uint64) {
	if cursor == 0 {
		t.renewPolicies()
		t.events.Renew(false)
	}
	for n := 0; ; n++ { // n counts a segment as one more entry, which bounds a walk over empty segments
		cursor = t.lookSegment(Stamp{}, cursor, func(s *shard, g *store.Segment) {
			n += g.Size()
			g.Each(s.renew)
		})
		if cursor == 0 || n >= entries {
			return cursor
		}
	}
}

// Usage returns the number of entries of all kinds in the table, idle entries included, and the bytes they
// take.
func (t *Table) Usage() (entries, bytes int64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, n := range s.Counts.Entries {
			entries += n
		}
		bytes += s.Slab.UsedBytes() + s.ListBytes()
		s.mu.Unlock()
	}
	return entries, bytes
}

// renew makes the next Drain hand out the whole entry.
func (s *shard) renew(r arena.Ref) {
	s.Unkeep(r)
	s.Changed(r)
}
