package engine

// turn is one caller's hold on the shards, one at a time, while it works through a
// batch.
type turn struct {
	s   *shard
	ops int
}

// turnOps is how many operations in a row a caller may do under one lock. A batch has
// up to a thousand, of which the dearest (a long list of leases) take tens of
// microseconds each; all of them at once would be felt by every other connection.
const turnOps = 64

// enter locks a shard and reports true, unless it is held already.
func (t *turn) enter(s *shard) (locked bool) {
	if s.t.high() {
		t.leave()
		s.t.reclaim(false)
	}
	t.ops++
	if s == t.s && t.ops <= turnOps {
		return false
	}
	t.leave()
	s.mu.Lock()
	t.s, t.ops = s, 1
	return true
}

// leave unlocks the shard that is held, if one is. Callers defer it, so that a panic
// leaves no shard locked.
func (t *turn) leave() {
	if t.s != nil {
		t.s.unlock()
		t.s = nil
	}
}
