package engine

import "github.com/weir-project/weir/engine/internal/store"

// A look reads a shard at a stamp that may lie ahead of its last decision. Replicas
// are looked at at different times and must decide alike all the same, so a look
// leaves no trace: the shard's time is put back, and what logs and leases have yet
// to forget stays.

// look moves a locked shard to a stamp until unlock.
func (s *shard) look(at Stamp) {
	s.settleGone()
	s.BeginLook(at.NowNs, at.WallOffsetNs)
}

// unlock gives the shard back and ends a look.
func (s *shard) unlock() {
	s.EndLook()
	s.mu.Unlock()
}

// lookSegment calls visit with the shard and the segment of a full hash, locked at
// the stamp, and returns the first hash behind the segment; 0 when there is none.
func (t *Table) lookSegment(at Stamp, full uint64, visit func(*shard, *store.Segment)) (next uint64) {
	s := t.shardOf(full)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	g := s.Index.SegmentOf(full << t.shardBits)
	visit(s, g)
	depth := t.shardBits + int(g.Depth)
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
	c := store.Cell{Hash: h, Key: key}
	s.Open(&c)
	s.BringUp(&c)
	return c.Live
}
