package engine

import "github.com/weir-project/weir/engine/internal/store"

// Drain hands out what changed since the last Drain, in chunks of at most
// maxChunk entries or a few megabytes, and forgets it: a later change of one key
// comes later. It stops at the first error of emit; the chunk that
// failed does not come again. The table's locks are never held while emit runs, and
// never for more than drainStep entries at once. One caller at a time.
func (t *Table) Drain(maxChunk int, emit func([]Change) error) error {
	var b store.Batch
	var out []Change
	flush := func() error {
		if b.Len() == 0 {
			return nil
		}
		out = b.Changes(out[:0])
		err := emit(out)
		b.Reset()
		return err
	}
	t.drainPolicies(&b)
	for i := range t.shards {
		s := &t.shards[i]
		for more := true; more; {
			more = s.drainSome(&b, maxChunk-b.Len())
			if b.Len() >= maxChunk || b.Full() {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// drainSome moves up to n changes into the batch and reports whether there are more.
func (s *shard) drainSome(b *store.Batch, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settleGone()
	return s.DrainBatch(b, n)
}
