package servertest

import (
	"slices"
	"sync"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// remote are the groups that a FakeReplica does not have. It reads them from the common table, as if from another node.
type remote struct {
	mu     sync.Mutex
	groups []int
	err    error // of the reads
	good   int   // reads that succeed before err
	asked  int   // reads
	failed int   // reads that failed
}

// MoveAway makes groups be on other nodes only, as this node sees them.
func (r *FakeReplica) MoveAway(groups ...int) {
	r.away.mu.Lock()
	defer r.away.mu.Unlock()
	r.away.groups = groups
}

// FailReads makes the reads of groups on other nodes fail with err, after some good ones. With nil all succeed.
func (r *FakeReplica) FailReads(err error, good int) {
	r.away.mu.Lock()
	defer r.away.mu.Unlock()
	r.away.err, r.away.good, r.away.asked, r.away.failed = err, good, 0, 0
}

// RemoteReads returns how many reads of groups on other nodes there were since FailReads, and how many of them failed.
func (r *FakeReplica) RemoteReads() (asked, failed int) {
	r.away.mu.Lock()
	defer r.away.mu.Unlock()
	return r.away.asked, r.away.failed
}

func (r *FakeReplica) isAway(group int) bool {
	r.away.mu.Lock()
	defer r.away.mu.Unlock()
	return slices.Contains(r.away.groups, group)
}

// readAway reads a group that is on other nodes.
func (r *FakeReplica) readAway() error {
	r.away.mu.Lock()
	defer r.away.mu.Unlock()
	r.away.asked++
	if r.away.err == nil || r.away.asked <= r.away.good {
		return nil
	}
	r.away.failed++
	return r.away.err
}

var _ limiter.Spread = (*FakeReplica)(nil)

// Reading implements limiter.Spread.
func (r *FakeReplica) Reading(failed func(error)) limiter.State { return fakeReads{r, failed} }

// fakeReads reads all groups, or without failed those of the node.
type fakeReads struct {
	*FakeReplica
	failed func(error)
}

// reads asks for a group, and reports whether it can be read.
func (s fakeReads) reads(group int) bool {
	switch {
	case !s.isAway(group):
		return true
	case s.failed == nil:
		return false
	}
	err := s.readAway()
	if err != nil {
		s.failed(err)
	}
	return err == nil
}

func (s fakeReads) readsKey(key []byte) bool {
	return s.reads(s.Topology().NumberOf(engine.SlotOf(key)))
}

func (s fakeReads) Len(database int) (n int64) {
	for i, g := range s.Topology().Groups {
		if s.reads(i) {
			n += s.LenOf(g.Slots.First, database)
		}
	}
	return n
}

// RandomKey asks all groups how many keys they have, as the router does.
func (s fakeReads) RandomKey(database int) []byte {
	if s.Len(database) == 0 {
		return nil
	}
	return s.FakeCluster.RandomKey(database)
}

func (s fakeReads) Inspect(key []byte) (engine.Info, bool) {
	if !s.readsKey(key) {
		return engine.Info{}, false
	}
	return s.FakeCluster.Inspect(key)
}

// Scan visits one group after the other, as the router does.
func (s fakeReads) Scan(cursor uint64, count int, visit func([]byte, engine.Algorithm)) uint64 {
	t := s.Topology()
	group, own := int(cursor>>engine.CursorBits), cursor&(1<<engine.CursorBits-1)
	for ; group < len(t.Groups) && count > 0; group, own = group+1, 0 {
		if s.reads(group) {
			own = s.FakeCluster.Scan(own, count, func(key []byte, a engine.Algorithm) {
				if t.NumberOf(engine.SlotOf(key)) == group {
					count--
					visit(key, a)
				}
			})
		}
		if own != 0 {
			return uint64(group)<<engine.CursorBits | own
		}
		if s.isAway(group) || s.isAway(group+1) {
			count = 0
		}
	}
	if group == len(t.Groups) {
		return 0
	}
	return uint64(group) << engine.CursorBits
}

func (s fakeReads) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	if !s.readsKey(key) {
		return nil, 0
	}
	return s.FakeCluster.Holds(policy, key, cursor, count)
}

func (s fakeReads) Top(v engine.Verdict, n int) (top []engine.Heavy) {
	t := s.Topology()
	for i := range t.Groups {
		if !s.reads(i) {
			continue
		}
		for _, heavy := range s.FakeCluster.Top(v, n) {
			if t.NumberOf(engine.SlotOf(heavy.Key)) == i {
				top = append(top, heavy)
			}
		}
	}
	slices.SortStableFunc(top, func(a, b engine.Heavy) int { return int(b.Units - a.Units) })
	return top[:min(n, len(top))]
}

// Events reads the one log of the fake, whatever the group.
func (s fakeReads) Events(group int, after uint64, n int) (
	[]engine.Event, engine.EventsPosition, <-chan struct{},
) {
	if !s.reads(group) {
		return nil, engine.EventsPosition{First: 1}, nil
	}
	return s.FakeCluster.Events(group, after, n)
}

func (s fakeReads) EventsBefore(group int, atMs int64) uint64 {
	if !s.reads(group) {
		return 0
	}
	return s.FakeCluster.EventsBefore(group, atMs)
}

// The following methods read the groups that the node has.

func (r *FakeReplica) here() fakeReads { return fakeReads{r, nil} }

func (r *FakeReplica) Len(database int) int64                     { return r.here().Len(database) }
func (r *FakeReplica) RandomKey(database int) []byte              { return r.here().RandomKey(database) }
func (r *FakeReplica) Inspect(key []byte) (engine.Info, bool)     { return r.here().Inspect(key) }
func (r *FakeReplica) Top(v engine.Verdict, n int) []engine.Heavy { return r.here().Top(v, n) }
func (r *FakeReplica) EventsBefore(group int, atMs int64) uint64 {
	return r.here().EventsBefore(group, atMs)
}

func (r *FakeReplica) Scan(cursor uint64, count int, visit func([]byte, engine.Algorithm)) uint64 {
	return r.here().Scan(cursor, count, visit)
}

func (r *FakeReplica) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	return r.here().Holds(policy, key, cursor, count)
}

func (r *FakeReplica) Events(group int, after uint64, n int) (
	[]engine.Event, engine.EventsPosition, <-chan struct{},
) {
	return r.here().Events(group, after, n)
}
