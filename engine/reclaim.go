package engine

import "github.com/weir-project/weir/engine/internal/arena"

// Reclaiming frees pages while memory is above the high level. It compacts pages, and evicts entries if too
// few slots are free for that. It runs between operations, because an operation keeps references to its
// entries and compaction moves entries. It works on the shard with the most memory, whichever shard the
// operation needs. So shards share the memory bound according to their need.

// reclaimPause is how many operations pass before a table that had nothing to reclaim is searched again. A
// search looks at every shard.
const reclaimPause = 1024

// reclaimReads bounds the entries that the steps before one operation read in vain, because holds need them: the step
// that reaches the bound is the last. So one operation does not search a whole table that is almost full of holds.
const reclaimReads = 8192

// reclaim makes one step towards freeing pages, and more steps while memory is above the urgent level. If much
// is set, it continues until memory is below the high level: the next operation may need much memory. It ends early if
// the steps read too many entries in vain. The caller holds no shard lock.
func (t *Table) reclaim(much bool) {
	if t.skips.Load() > 0 && t.skips.Add(-1) >= 0 {
		return
	}
	for inVain := int64(0); inVain < reclaimReads && t.memory.High(); {
		s := t.largest()
		if s == nil {
			t.skips.Store(reclaimPause)
			return
		}
		inVain += s.reclaim()
		if !much && !t.memory.Urgent() {
			return
		}
	}
}

// CompactAbove sets the sizes in bytes above which a Replica frees pages before each operation: above high it makes one
// step, and above urgent as many as it takes. They replace the sizes that follow from Options.MaxMemoryBytes.
func (t *Table) CompactAbove(high, urgent int64) { t.memory.SetHigh(high, urgent) }

// Compact makes at most a number of steps that free pages, while the table is above the size high of CompactAbove.
func (t *Table) Compact(steps int) {
	for ; steps > 0 && t.memory.High(); steps-- {
		s := t.largest()
		if s == nil {
			return
		}
		s.reclaim()
	}
}

// largest returns the shard with the most memory among the shards that may have memory to reclaim. If all are
// exhausted it returns nil and makes all of them candidates again.
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

// Victims selects entries for eviction: from each of several small samples, the entry nearest to idle. It stops
// when the selected entries have the given number of bytes, or visit was called most times. visit receives the key of a
// limiter, or the key and the ID of a remembered answer, and may keep the slices. An OpForget with this key and
// ID drops the limiter or the answer. All limiters of a bundle are victims together. Victims changes nothing and
// returns how many bytes the selected entries take.
func (t *Table) Victims(at Stamp, bytes int64, most int, visit func(key, id []byte)) (total int64) {
	named := make(map[string]struct{})
	// Shards have about the same number of entries, so round-robin is fair.
	without := 0 // consecutive shards without a victim
	visited := 0
	for tries := len(t.shards) + victimTries*most; tries > 0 && without < len(t.shards); tries-- {
		if visited == most || total >= bytes {
			break
		}
		s := &t.shards[t.asked.Add(1)%uint64(len(t.shards))]
		keys, id, size := s.victim(at)
		if without++; len(keys) == 0 {
			continue
		}
		without = 0
		name := string(keys[0]) + "\x00" + string(id)
		if _, again := named[name]; again {
			continue
		}
		if visited > 0 && visited+len(keys) > most {
			break
		}
		visited += len(keys)
		named[name] = struct{}{}
		total += size
		for _, key := range keys {
			visit(key, id)
		}
	}
	return total
}

// victimTries bounds how often a shard is asked for each victim. A shard may select one entry again, the more
// often the more victims are wanted.
const victimTries = 4

// MemoryBytes returns the bytes of entries, index and limits, free slots included. Options.MaxMemoryBytes
// bounds this number. MemoryBytes takes no lock.
func (t *Table) MemoryBytes() int64 { return t.memory.UsedBytes() }

// CompactBytes returns what MemoryBytes would be if each slot size had only the pages that it needs. Scattered
// evictions free slots long before they free pages. A leader that evicts must therefore look at CompactBytes.
// MemoryBytes falls too late, and the leader would evict too many entries. CompactBytes takes the lock of every
// shard.
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

// evictions returns a counter that grows with each eviction.
func (t *Table) evictions() int64 { return t.memory.Evicted() }
