package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// A look at a limiter must show what holds that have ended gave back to it, and leave no
// trace: so it gives back to a copy.

// lend gives a look a copy of a limiter to change; unlock takes it back.
func (s *shard) lend(c *cell) {
	copied := append(entry(nil), c.e[:entryHead+c.e.keyLen()+stateLen(c.e)]...)
	if c.e.kind() == uint8(SlidingLog) {
		from, to := unitlog.Read(c.e.state()), unitlog.Log{}
		for r := range from.All(&s.slab) {
			to.Append(&s.slab, r.AtNs, r.Units)
		}
		to.Write(copied.state())
		s.lent = append(s.lent, copied)
	}
	c.e = copied
}

// takeBack frees what copies have beside themselves.
func (s *shard) takeBack() {
	for _, e := range s.lent {
		s.freeState(e)
	}
	s.lent = s.lent[:0]
}

// view returns an entry as a look sees it, and whether it is not idle.
func (s *shard) view(r arena.Ref) (entry, bool) {
	c := cell{r: r, e: s.slab.At(r)}
	c.live = !s.idle(c.e)
	if c.live && s.counts.entries[kindClaims] > 0 && namespaceOf(c.e.kind()) == limiters {
		c.hash, c.key = s.hashOf(r), c.e.key()
		s.bringUp(&c)
	}
	return c.e, c.live
}
