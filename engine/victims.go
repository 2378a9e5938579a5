package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// Victims names entries that are nearest to idle among a few looked at, until they take so
// many bytes or are so many: limiters by their key, and remembered IDs by key and id. An
// OpForget with both drops them. It returns how many bytes they take. It changes nothing; the
// slices are visit's to keep.
func (t *Table) Victims(at Stamp, bytes int64, most int, visit func(key, id []byte)) (total int64) {
	named := make(map[string]struct{})
	// Shards hold about equally many entries, so asking them in turn is fair.
	without := 0 // shards in a row
	for tries := len(t.shards) + victimTries*most; tries > 0 && without < len(t.shards); tries-- {
		if len(named) == most || total >= bytes {
			break
		}
		s := &t.shards[t.asked.Add(1)%uint64(len(t.shards))]
		key, id, size := s.victim(at)
		if without++; key == nil {
			continue
		}
		without = 0
		name := string(key) + "\x00" + string(id)
		if _, again := named[name]; again {
			continue
		}
		named[name] = struct{}{}
		total += size
		visit(key, id)
	}
	return total
}

// victimTries bounds how often a shard is asked for each victim wanted: it may name
// one again, the more often the more of its entries are wanted.
const victimTries = 4

// victim returns copies of the key and the id of the shard's victim, and its bytes; a nil key
// if there is none.
func (s *shard) victim(at Stamp) (key, id []byte, size int64) {
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	r := s.NearestIdle(0)
	if r == 0 {
		return nil, nil, 0
	}
	e := store.Entry(s.Slab.At(r))
	name, size := append([]byte{}, e.Key()...), s.SlotBytes(r, e)
	if e.Kind() != store.KindToken {
		return name, nil, size
	}
	key, ok := store.KeyOfToken(name)
	if !ok {
		panic("engine: a token without its key")
	}
	return key, name[2+len(key):], size
}

// MemoryBytes is what entries, index and limits take, in bytes, free slots included:
// what Options.MaxMemoryBytes bounds. It waits for no lock.
func (t *Table) MemoryBytes() int64 { return t.memory.UsedBytes() }

// CompactBytes is what MemoryBytes would be if each length of slots had only the pages that
// it needs. Evictions here and there free slots long before they free pages, so a leader that
// evicts looks at this: MemoryBytes alone would not fall, and too many entries would go. It
// waits for the lock of every shard.
func (t *Table) CompactBytes() int64 {
	pages := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		pages += s.Slab.SurplusPages() + s.Slab.SparePages()
		s.mu.Unlock()
	}
	return t.memory.UsedBytes() - int64(pages)*arena.PageBytes
}
