package engine

// A look reads a shard at a stamp that may lie ahead of its last decision. Replicas
// are looked at at different times and must decide alike all the same, so a look
// leaves no trace: the shard's time is put back, and what logs and leases have yet
// to forget stays.

// look moves a locked shard to a stamp until unlock.
func (s *shard) look(at Stamp) {
	s.settleGone()
	s.looking, s.resume = true, Stamp{s.nowNs, s.offsetNs}
	s.nowNs, s.offsetNs = max(s.nowNs, at.NowNs), at.WallOffsetNs
}

// unlock gives the shard back and ends a look.
func (s *shard) unlock() {
	if s.looking {
		s.takeBack()
		s.looking = false
		s.nowNs, s.offsetNs = s.resume.NowNs, s.resume.WallOffsetNs
	}
	s.mu.Unlock()
}

// lookSegment calls visit with the shard and the segment of a full hash, locked at
// the stamp, and returns the first hash behind the segment; 0 when there is none.
func (t *Table) lookSegment(at Stamp, full uint64, visit func(*shard, *segment)) (next uint64) {
	s := t.shardOf(full)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	g := s.index.segmentOf(full << t.shardBits)
	visit(s, g)
	depth := t.shardBits + int(g.depth)
	if depth == 0 {
		return 0
	}
	// The segment covers all hashes with its leading bits.
	span := uint64(1) << (64 - depth)
	return full&^(span-1) + span
}

// Has reports whether key has a limiter that is not idle.
func (t *Table) Has(at Stamp, key []byte) bool {
	h, s := t.find(key)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	c := cell{hash: h, key: key}
	s.open(&c)
	s.bringUp(&c)
	return c.live
}
