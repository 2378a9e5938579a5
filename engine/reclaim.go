package engine

import "github.com/weir-project/weir/engine/internal/arena"

// Reclaim gives pages back once memory stands above the high level: by compaction, and where
// too few slots are free for that, by evictions. It runs between operations and not within
// one, because an operation keeps references to its entries, and compaction moves entries.
// It works on the shard that has most, whichever shard the operation needs: so shards share
// the bound as they need it.

// high reports whether memory is above the level from which on it is reclaimed.
func (t *Table) high() bool { return t.memory.High() }

// reclaimPause is how many operations go by before a table that had nothing to give is
// searched again: a search looks at every shard.
const reclaimPause = 1024

// reclaim makes one step towards giving pages back, as many as it takes where memory is
// urgent, or to the high level if an operation is to come that may need much. The caller
// holds no shard.
func (t *Table) reclaim(much bool) {
	if t.skips.Load() > 0 && t.skips.Add(-1) >= 0 {
		return
	}
	for t.high() {
		s := t.largest()
		if s == nil {
			t.skips.Store(reclaimPause)
			return
		}
		s.reclaim()
		if !much && !t.memory.Urgent() {
			return
		}
	}
}

// largest returns the shard that has most, of those that may have something to give. If none
// has, it makes all of them ones to be asked again.
func (t *Table) largest() (most *shard) {
	var bytes int64
	for i := range t.shards {
		s := &t.shards[i]
		if own := s.Used.Bytes(); own > bytes && !s.Exhausted.Load() {
			most, bytes = s, own
		}
	}
	if most == nil {
		for i := range t.shards {
			t.shards[i].Exhausted.Store(false)
		}
	}
	return most
}

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

// evictions grows whenever a limiter is given up for room.
func (t *Table) evictions() int64 { return t.memory.Evicted() }
