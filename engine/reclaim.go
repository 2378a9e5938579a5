package engine

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

// reclaim makes one step in the shard, and notes whether there was one to make.
func (s *shard) reclaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Exhausted.Store(!s.ReclaimSome())
}
