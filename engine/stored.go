package engine

import (
	"bytes"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// Load puts a stored entry back, in place of one of the same key; an entry that is idle
// at the stamp is skipped and reported as false. An error means key or value is not
// something Drain wrote. Loading does not mark the entry as changed. It may run in many
// goroutines; what concerns one key comes in order.
func (t *Table) Load(at Stamp, key, value []byte) (bool, error) {
	if len(value) == 0 || !validStorageKey(key) {
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
	if !validStorageKey(key) {
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

func validStorageKey(key []byte) bool {
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
	s := &t.shards[t.shardNumber(shardKey)]
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

// Drain hands out what changed since the last Drain, in chunks of at most
// maxChunk entries or a few megabytes, and forgets it: a later change of one key
// comes later. It stops at the first error of emit; the chunk that
// failed does not come again. The table's locks are never held while emit runs, and
// never for more than drainStep entries at once. One caller at a time.
func (t *Table) Drain(maxChunk int, emit func([]Change) error) error {
	var b store.Batch
	var out []Change
	flush := func() error {
		if b.Len() == 0 {
			return nil
		}
		out = b.Changes(out[:0])
		err := emit(out)
		b.Reset()
		return err
	}
	t.drainPolicies(&b)
	for i := range t.shards {
		s := &t.shards[i]
		for more := true; more; {
			more = s.drainSome(&b, maxChunk-b.Len())
			if b.Len() >= maxChunk || b.Full() {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// StateHash is a hash of everything that decisions at or after the stamp depend on:
// policies, and limiters, blocks and remembered IDs that are not idle. Tables that carried out the
// same operations at the same stamps have the same hash, whatever their shards, their
// collecting and their being stored and loaded again; tables that differ in one entry
// differ in it, but for one chance in 2^64. The table is locked a segment at a time:
// for the hash of one state nothing may be decided meanwhile.
func (t *Table) StateHash(at Stamp) (sum uint64) {
	h := store.NewHasher()
	for full := uint64(0); ; {
		full = t.lookSegment(at, full, func(s *shard, g *store.Segment) {
			g.Each(func(r arena.Ref) {
				if e, live := s.View(r); live {
					sum += h.Entry(&s.Store, e)
				}
			})
		})
		if full == 0 {
			return sum + hashPolicies(&h, t.policies.Load())
		}
	}
}

// Renew sets the dirty bits of entries that have not changed, for storage that keeps changes
// in the order in which they came: it no longer needs what was drained before a whole rewrite
// pass began. A pass begins at cursor 0 and goes on with the cursor returned, at least the
// given number of entries at a time, until that is 0. A pass may leave out entries that come
// or go meanwhile: Drain hands them out anyway. One caller at a time.
func (t *Table) Renew(cursor uint64, entries int) (next uint64) {
	if cursor == 0 {
		t.renewPolicies()
	}
	for n := 0; ; n++ { // a segment without entries costs a step as well
		cursor = t.lookSegment(Stamp{}, cursor, func(s *shard, g *store.Segment) {
			n += g.Size()
			g.Each(s.renew)
		})
		if cursor == 0 || n >= entries {
			return cursor
		}
	}
}

// Usage is how many entries of all kinds the table holds, those that are idle
// included, and the bytes they take.
func (t *Table) Usage() (entries, bytes int64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, n := range s.Counts.Entries {
			entries += n
		}
		bytes += s.Slab.TakenBytes()
		s.mu.Unlock()
	}
	return entries, bytes
}

// renew makes the next Drain hand an entry out, whole.
func (s *shard) renew(r arena.Ref) {
	store.UnkeepLog(s.Slab.At(r))
	s.Changed(r)
}
