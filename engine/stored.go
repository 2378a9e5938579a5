package engine

import (
	"bytes"

	"github.com/weir-project/weir/engine/internal/store"
)

// Load puts a stored entry back, in place of one of the same key; an entry that is idle
// at the stamp is skipped and reported as false. An error means key or value is not
// something Drain wrote. Loading does not mark the entry as changed. It may run in many
// goroutines; what concerns one key comes in order.
func (t *Table) Load(at Stamp, key, value []byte) (bool, error) {
	if len(value) == 0 || !soundStorageKey(key) {
		return false, ErrStored
	}
	if key[0] == policyClass {
		return t.loadPolicy(string(key[1:]), value)
	}
	kind, more := value[0]&^store.StoredMore, value[0]&store.StoredMore != 0
	if kind >= uint8(store.NumKinds) || store.StorageKinds[store.SpaceOf(kind)] != key[0] || more && !store.HasLog(kind) {
		return false, ErrStored
	}
	s, c, err := t.stored(key)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	s.NowNs = max(s.NowNs, at.NowNs)
	if !more {
		s.Unload(&c)
	}
	return s.Load(&c, kind, value[1:])
}

// Unload takes a stored entry out again: a Change without a value. None of that key is
// as good.
func (t *Table) Unload(key []byte) error {
	if !soundStorageKey(key) {
		return ErrStored
	}
	if key[0] == policyClass {
		t.policyMu.Lock()
		defer t.policyMu.Unlock()
		t.policies.Store(t.policies.Load().without(string(key[1:])))
		return nil
	}
	s, c, err := t.stored(key)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.Unload(&c)
	return nil
}

func soundStorageKey(key []byte) bool {
	return len(key) >= 2 && len(key) <= 1+2+MaxNameLen+MaxIDLen
}

// stored opens the entry of a storage key and locks its shard, unless there is an error.
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
	s := &t.shards[t.placeOf(shardKey)]
	c.Hash = t.hashKey(c.Key)
	s.mu.Lock()
	s.Open(&c)
	return s, c, nil
}

// Reserve makes an empty table ready for about this many entries, which makes
// loading them faster.
func (t *Table) Reserve(entries int64) {
	t.eachShard(Stamp{}, func(s *shard) {
		if s.Keys() == 0 && s.Counts.Entries[store.KindToken] == 0 {
			s.Index.Reserve(entries / int64(len(t.shards)))
		}
	})
}
