package engine

import (
	"bytes"
	"cmp"
	"slices"
)

// weight is how many units a decision is about.
func (op *Op) weight(d *Decision) int64 {
	if op.Partial && d.Allowed > 0 {
		return d.Allowed
	}
	return op.Cost
}

// verdict is whether a decision admitted something.
func (d *Decision) verdict() Verdict {
	if d.Allowed > 0 {
		return Admitted
	}
	return Denied
}

// weighBlocked counts a check that an administrative block of a key denies.
func (s *shard) weighBlocked(h uint64, key []byte, op *Op) {
	if op.counts() {
		s.heavy.Weigh(s.NowNs, h, key, op.Cost, Denied)
	}
}

// Top returns up to n keys with the most units admitted or denied of late, the
// heaviest first. Limiters of policies stand there by their own names: a check counts
// once for each of its policies under the first limit when it is admitted, and under
// the limit that binds when it is denied. A key that is blocked counts by itself.
//
// It is a look, and what this table has decided itself: nothing of it is stored.
func (t *Table) Top(at Stamp, v Verdict, n int) []Heavy {
	var all []Heavy
	for i := range t.shards {
		all = t.shards[i].appendTop(all, at, v)
	}
	slices.SortFunc(all, func(a, b Heavy) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units), bytes.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

func (s *shard) appendTop(all []Heavy, at Stamp, v Verdict) []Heavy {
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	return s.heavy.AppendTo(all, s.NowNs, v)
}
