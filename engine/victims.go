package engine

// Victims names up to n limiters whose loss would forgive little, each the nearest
// to idle of a few: keys for OpForget, with which replicas give up the same entries
// although none of them decides by its own memory. Idle entries count as the nearest.
// Nothing is changed. No key is named twice in a call; it names fewer than n when the
// table has few. key is only valid during the call, which may use the table.
func (t *Table) Victims(at Stamp, n int, visit func(key []byte)) {
	named := make(map[string]struct{}, n)
	// Shards hold about equally many entries, so asking them in turn is fair.
	for tries := len(t.shards) + victimTries*n; tries > 0 && len(named) < n; tries-- {
		s := &t.shards[t.asked.Add(1)%uint64(len(t.shards))]
		key := s.victim(at)
		if _, again := named[string(key)]; key == nil || again {
			continue
		}
		named[string(key)] = struct{}{}
		visit(key)
	}
}

// victimTries bounds how often a shard is asked for each victim wanted: it may name
// one again, the more often the more of its limiters are wanted.
const victimTries = 4

// victim returns a copy of the key of the shard's victim, or nil.
func (s *shard) victim(at Stamp) []byte {
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	r := s.nearestIdle(0, true)
	if r == 0 {
		return nil
	}
	return append([]byte{}, entry(s.slab.at(r)).key()...)
}

// MemoryBytes is what entries, index and limits take, in bytes, free slots included:
// what Options.MaxMemoryBytes bounds. It waits for no lock.
func (t *Table) MemoryBytes() int64 { return t.used.Load() }

// FreeBytes is the part of MemoryBytes that new entries may take before memory grows,
// if they are of the sizes of those given up. Entries given up here and there free
// slots long before they free memory, so who gives up entries for room must look at
// the difference: MemoryBytes alone would not fall, and too many would go.
func (t *Table) FreeBytes() (n int64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.slab.bytes() - s.slab.taken
		s.mu.Unlock()
	}
	return n
}
