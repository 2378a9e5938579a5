package engine

// Victims names up to n entries that are nearest to idle among a few looked at:
// limiters by their key, and remembered IDs by key and id. An OpForget with both
// drops them. It changes nothing; the slices are visit's to keep.
func (t *Table) Victims(at Stamp, n int, visit func(key, id []byte)) {
	named := make(map[string]struct{}, n)
	// Shards hold about equally many entries, so asking them in turn is fair.
	for tries := len(t.shards) + victimTries*n; tries > 0 && len(named) < n; tries-- {
		s := &t.shards[t.asked.Add(1)%uint64(len(t.shards))]
		key, id := s.victim(at)
		name := string(key) + "\x00" + string(id)
		if _, again := named[name]; key == nil || again {
			continue
		}
		named[name] = struct{}{}
		visit(key, id)
	}
}

// victimTries bounds how often a shard is asked for each victim wanted: it may name
// one again, the more often the more of its entries are wanted.
const victimTries = 4

// victim returns copies of the key and the id of the shard's victim, or nil.
func (s *shard) victim(at Stamp) (key, id []byte) {
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	r := s.nearestIdle(0)
	if r == 0 {
		return nil, nil
	}
	e := entry(s.slab.at(r))
	name := append([]byte{}, e.key()...)
	if e.kind() != kindToken {
		return name, nil
	}
	key, ok := keyOfToken(name)
	if !ok {
		panic("engine: a token without its key")
	}
	return key, name[2+len(key):]
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
