package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// catchUp brings an opened limiter of a policy to the definition that is in force for its key. A limiter of another
// algorithm than the policy has now, or had in between, becomes absent. Within a look, the cell gets a copy.
func (s *shard) catchUp(c *store.Cell) {
	set := s.t.policies.Load()
	if !set.moves || c.Entry == nil || c.Space != store.Limiters || !Reserved(c.Key) {
		return
	}
	name, number, key, ok := SplitName(c.Key)
	if p := set.Get(name); ok && p != nil && p.moves {
		s.catchUpUnder(c, p, number, key)
	}
}

func (s *shard) catchUpUnder(c *store.Cell, p *Policy, number int, key []byte) {
	old := s.Limits.At(c.Entry.Limit())
	limits, since := p.lookup(key, s.NowNs, true)
	if number >= len(limits) {
		s.bring(c, p, number, key, nil)
		return
	}
	l := limits[number].Limit
	if l.Since = l.Since.Later(since); l.Since != old.Since {
		s.bring(c, p, number, key, &l)
	}
}

// bring brings a limiter through all changes since its limit came into force, to the limit l. There is no limit if l
// is nil.
func (s *shard) bring(c *store.Cell, p *Policy, number int, key []byte, l *Limit) {
	old := *s.Limits.At(c.Entry.Limit())
	limitChanges := p.limitChanges(key, number, &old, s.NowNs)
	if len(limitChanges) == 0 && (l == nil || !sameLimit(&PolicyLimit{Limit: old}, &PolicyLimit{Limit: *l})) {
		return // an older version of weir has changed the policy: the limit counts from the next decision on
	}
	if l == nil || changesAlgorithm(&old, limitChanges) {
		s.Vanish(c)
		return
	}
	ends := s.endsHolds(limitChanges)
	if ends != nil {
		s.EndAllocations(c, ends.AtNs)
	}
	x := bringing{limit: old, state: readOutcome(c.Entry)}
	for i := range limitChanges {
		if !x.adopt(&limitChanges[i]) {
			s.Vanish(c)
			return
		}
	}
	s.Renew(c, l, ends == nil)
	if store.HasLog(c.Entry.Kind()) {
		s.CutLog(c.Entry, x.cutNs)
	} else {
		x.state.write(c.Entry)
	}
	s.Renewed(c)
}

// endsHolds returns the first change after which holds give nothing back, or nil. Those that have ended before give
// their units back.
func (s *shard) endsHolds(limitChanges []limitChange) *limitChange {
	for i := range limitChanges {
		if s.FewHolds || !limitChanges[i].sameWindows {
			return &limitChanges[i]
		}
	}
	return nil
}

// changesAlgorithm reports whether a limiter of a limit starts empty on the way.
func changesAlgorithm(old *Limit, limitChanges []limitChange) bool {
	for i := range limitChanges {
		if limitChanges[i].to == nil || limitChanges[i].to.Limit.Algorithm != old.Algorithm {
			return true
		}
	}
	return false
}

// bringing is the state of a limiter on its way through changes.
type bringing struct {
	limit Limit
	state outcome // for limiters without a log
	cutNs int64   // the units of a log up to this time no longer count
}

// adopt replaces the limit at a change: what was used stays used. It returns false if the limiter is idle then.
func (x *bringing) adopt(t *limitChange) bool {
	l := &t.to.Limit
	switch l.Algorithm {
	case TokenBucket, LeakyBucket:
		deficit := store.DeficitAt(arith.Uint128{Hi: x.state.a, Lo: x.state.b}, x.limit.Rate, t.AtNs)
		gone := store.GoneAt(l.Keep(deficit, &x.limit), l.Rate, t.AtNs)
		x.state = outcome{gone.Hi, gone.Lo, 0}
	case FixedWindow:
		w := store.FixedWindowOf(x.state.a, x.state.b)
		if w.Unused() || w.EndNs <= t.AtNs {
			return false
		}
		var ends *Calendar
		if t.to.Zone != nil {
			ends = t.to.Zone.Window(t.AtNs+t.offsetNs, l.Mode)
		}
		w = carryWindow(l, &x.limit, w, t.AtNs, t.offsetNs, ends)
		if t.to.Zone != nil { // its zone may be another one
			w.EndNs = windowEnd(l, t.AtNs, t.offsetNs, ends)
		}
		x.state.a, x.state.b = w.Numbers()
	case SlidingCounter:
		w := store.SlidingCounter{StartNs: int64(x.state.a), Prev: int64(x.state.b), Cur: int64(x.state.c)}
		if w.IdleAtNs(x.limit.WindowNs) <= t.AtNs {
			return false
		}
		w = carryCounter(l, &x.limit, w, t.AtNs, t.offsetNs)
		x.state = outcome{uint64(w.StartNs), uint64(w.Prev), uint64(w.Cur)}
	default:
		x.cutNs = max(x.cutNs, t.AtNs-x.limit.WindowNs)
	}
	x.limit = *l
	return true
}

// catchUpOnce brings all limiters of the shard to the definitions in force, unless it has done so since the last
// change.
func (s *shard) catchUpOnce(set *Policies) {
	ended := set.lastEnd(s.NowNs)
	if !set.moves || s.caughtUp == set && s.caughtUpNs == ended {
		return
	}
	s.caughtUp, s.caughtUpNs = set, ended
	var names [][]byte
	for g := range s.Index.Segments() {
		names = s.Names(g, names)
	}
	for _, name := range names {
		c := store.Cell{Hash: s.t.hashKey(name), Key: name}
		s.Open(&c)
		s.catchUp(&c)
	}
}

// lastEnd returns when the last override ended by its time to live, before a time.
func (s *Policies) lastEnd(nowNs int64) (lastNs int64) {
	for _, p := range s.All() {
		for i := range p.Overrides {
			if untilNs := p.Overrides[i].UntilNs; untilNs <= nowNs {
				lastNs = max(lastNs, untilNs)
			}
		}
	}
	return lastNs
}
