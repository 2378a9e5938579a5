package engine

import (
	"bytes"
	"slices"
	"sync"

	"github.com/weir-project/weir/engine/internal/store"
)

// Load carries out stored changes in order: it restores an entry and replaces an entry of the same key, or removes the
// entry if the change has no value. It skips an entry that is idle at the stamp. It does not mark entries as changed.
//
// An error means that Drain did not write a change. bad is its number in changes, and others may have been carried
// out. Many goroutines may call Load, but changes with one OrderKey must be loaded in order. A caller should pass
// LoadBatch changes: parallel calls wait for each other if all their changes are in one shard.
func (t *Table) Load(at Stamp, changes []Change) (bad int, err error) {
	b := loadBatches.Get().(*loadBatch)
	defer loadBatches.Put(b)
	for from := 0; from < len(changes); from += LoadBatch {
		bad, err := b.load(t, at, changes[from:min(from+LoadBatch, len(changes))])
		if err != nil {
			return from + bad, err
		}
	}
	return 0, nil
}

// LoadBatch is how many changes Load sorts together. Drain hands out the changes of one shard after another, up to tens
// of thousands on a busy server. A smaller batch would often have changes of a single shard.
const LoadBatch = 32 << 10

// loadBatch is a part of the changes of a Load, sorted by shard. The keys of a start come in no order, so nearly every
// change needs a part of the index that no cache has. A batch loads these parts side by side, as a shardBatch does.
type loadBatch struct {
	hash [LoadBatch]uint64
	next [LoadBatch]uint16 // the next change in the same lane
	// lanes are chains of changes, one for each shard, and behind them one of the changes that are in no shard.
	lanes []loadLane
}

// loadLane has the ends of a chain of changes. Both are noChange if the lane is empty.
type loadLane struct{ first, last uint16 }

const noChange = LoadBatch // ends a chain

// loadBatches keeps the memory of batches for the next Load.
var loadBatches = sync.Pool{New: func() any { return new(loadBatch) }}

func (b *loadBatch) load(t *Table, at Stamp, changes []Change) (bad int, err error) {
	if bad, err := b.sort(t, changes); err != nil {
		return bad, err
	}
	shared := b.lanes[len(t.shards)].first
	for ; shared != noChange; shared = b.next[shared] {
		if err := t.loadShared(&changes[shared]); err != nil {
			return int(shared), err
		}
	}
	// Several goroutines load batches, and each visits every shard. So a shard that another one uses is left for later.
	left := true
	for wait := false; left; wait = true {
		left = false
		for i := range t.shards {
			s, lane := &t.shards[i], &b.lanes[i]
			if lane.first == noChange {
				continue
			}
			if !s.enterLoad(at, wait) {
				left = true
				continue
			}
			bad, err := b.loadLane(s, lane.first, changes)
			if s.mu.Unlock(); err != nil {
				return bad, err
			}
			lane.first = noChange
		}
	}
	return 0, nil
}

// enterLoad locks the shard for a load at a stamp. It returns false if another goroutine has the lock, unless it may
// wait.
func (s *shard) enterLoad(at Stamp, wait bool) bool {
	if wait {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return false
	}
	s.NowNs = max(s.NowNs, at.NowNs)
	s.BeginLoad()
	return true
}

// sort puts the changes into lanes. It changes no table.
func (b *loadBatch) sort(t *Table, changes []Change) (bad int, err error) {
	b.lanes = slices.Grow(b.lanes[:0], len(t.shards)+1)[:len(t.shards)+1]
	for i := range b.lanes {
		b.lanes[i] = loadLane{noChange, noChange}
	}
	for i := range changes {
		h, s, err := t.shardOfStored(changes[i].Key)
		if err != nil {
			return i, err
		}
		b.hash[i], b.next[i] = h, noChange
		lane := &b.lanes[len(t.shards)]
		if s != nil {
			lane = &b.lanes[s.number]
		}
		if lane.first == noChange {
			lane.first = uint16(i)
		} else {
			b.next[lane.last] = uint16(i)
		}
		lane.last = uint16(i)
	}
	return 0, nil
}

// loadLane loads change i and those behind it in the lane of a shard, which is locked. bad is the number of the one
// that failed.
func (b *loadBatch) loadLane(s *shard, i uint16, changes []Change) (bad int, err error) {
	for i != noChange {
		for n := b.prefetch(s, i); n > 0; n-- {
			if err := s.load(b.hash[i], &changes[i]); err != nil {
				return int(i), err
			}
			i = b.next[i]
		}
	}
	return 0, nil
}

// prefetch loads what change i and others behind it read first into the cache, and returns how many changes these are.
func (b *loadBatch) prefetch(s *shard, i uint16) (n int) {
	var groups [prefetchAhead]store.Group
	for ; n < prefetchAhead && i != noChange; i = b.next[i] {
		groups[n] = s.Index.GroupOf(b.hash[i])
		s.fetched += groups[n].Read() + s.Index.SegmentOf(b.hash[i]).Prefetch()
		n++
	}
	for k := range n {
		if e := groups[k].First(); e != 0 {
			s.fetched += s.Slab.Prefetch(e)
		}
	}
	return n
}

// shardOfStored returns the shard that has the entry of a storage key, or nil, and its hash there.
func (t *Table) shardOfStored(key []byte) (h uint64, s *shard, err error) {
	if !validStorageKey(key) {
		return 0, nil, ErrStored
	}
	name := key[1:]
	var ok bool
	switch key[0] {
	case policyClass, orderClass, eventClass:
		return 0, nil, nil
	case store.StorageKinds[store.Bundles]:
		ok = bundleName(name)
	case store.AllocationBlocks:
		name, _, ok = store.SplitBlockKey(name)
	case store.StorageKinds[store.Tokens]:
		var of []byte
		if of, ok = store.KeyOfToken(name); !ok {
			return 0, nil, ErrStored
		}
		return t.hashKey(name), &t.shards[t.shardNumber(of)], nil
	default:
		ok = bytes.IndexByte(store.StorageKinds[:], key[0]) >= 0
	}
	if !ok {
		return 0, nil, ErrStored
	}
	h, s = t.find(name)
	return h, s, nil
}

// loadShared is Load for what is in no shard.
func (t *Table) loadShared(c *Change) error {
	name := string(c.Key[1:])
	switch {
	case c.Value != nil && len(c.Value) == 0:
		return ErrStored
	case c.Key[0] == policyClass && c.Value == nil:
		t.policyMu.Lock()
		defer t.policyMu.Unlock()
		t.policies.Store(t.policies.Load().without(name))
	case c.Key[0] == policyClass:
		return t.loadPolicy(name, c.Value)
	case c.Key[0] == eventClass && c.Value == nil:
		t.events.Unload(name)
	case c.Key[0] == eventClass:
		return loadedEvent(t.events.Load(name, c.Value))
	case c.Value != nil:
		return t.order.load(c.Value)
	}
	return nil
}

// load is Table.Load for an entry of this shard, which is locked.
func (s *shard) load(h uint64, change *Change) (err error) {
	value, removed := change.Value, change.Value == nil
	if !removed && len(value) == 0 {
		return ErrStored
	}
	c := store.Cell{Hash: h, Key: change.Key[1:]}
	switch class := change.Key[0]; {
	case class == store.AllocationBlocks:
		var number uint64
		c.Key, number, _ = store.SplitBlockKey(c.Key)
		if !removed {
			return s.LoadBlock(&c, number, value)
		}
		s.UnloadBlock(&c, number)
		return nil
	case class == store.StorageKinds[store.Bundles]:
		if !removed {
			_, err = s.LoadBundle(h, c.Key, value)
			return err
		}
		s.UnloadBundle(h, c.Key)
		return nil
	default:
		c.Space = store.Space(bytes.IndexByte(store.StorageKinds[:], class))
	}
	if s.Open(&c); removed {
		s.Unload(&c)
		return nil
	}
	kind, more := value[0]&^store.StoredMore, value[0]&store.StoredMore != 0
	if kind >= uint8(store.NumStoredKinds) || store.SpaceOf(kind) != c.Space || more && !store.HasLog(kind) {
		return ErrStored
	}
	if !more && !s.Extends(&c, value[1:]) {
		s.Unload(&c)
	}
	_, err = s.Store.Load(&c, kind, value[1:])
	return err
}

// bundleName reports whether a policy's limiter number 0 has this name.
func bundleName(name []byte) bool {
	_, number, _, ok := SplitName(name)
	return ok && number == 0 && len(name) <= MaxNameLen
}

func validStorageKey(key []byte) bool {
	return len(key) >= 2 && len(key) <= 1+2+MaxNameLen+MaxIDLen
}
