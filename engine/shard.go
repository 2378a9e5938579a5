package engine

import (
	"slices"
	"sync"

	"github.com/weir-project/weir/engine/internal/heavy"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/store"
)

// shard is an independently locked part of a table. mu guards all other fields.
type shard struct {
	mu sync.Mutex
	store.Store
	t            *Table
	number       int // the index in Table.shards
	heavy        heavy.Counter
	decided      decided
	scratch      [2 + MaxNameLen + MaxIDLen]byte // for the name of a token, see openToken
	caughtUp     *Policies                       // the policies of the last catchUpOnce
	caughtUpNs   int64                           // and the last end of an override before it
	forgotten    []forgottenUsage                // usage to remove before any other access
	flushed      uint16                          // databases to empty before any other access, as bits
	scriptBuffer []byte                          // memory for the byte string that a script reads
	fetched      uint64                          // keeps prefetches from being optimized away
	checker      checker                         // used by checks whose first key is in this shard
	told         []Event                         // of the operation that is carried out; see tell
}

// decided are the counters of Stats that decisions of this shard increment.
type decided struct {
	admitted, denied           [rule.NumAlgorithms]int64
	strikes, successes, delays int64 // successes counts the strikes of attempts that succeeded
	penalties, lockouts        int64 // begun by strikes
}

func (s *shard) init(t *Table) {
	s.t = t
	s.Reset(&t.memory, t.opts.TrackChanges, t.hashKey, s.noteBlock)
	s.OnCatchUp(s.catchUp, func() bool { return t.policies.Load().moves })
	s.decided = decided{}
	s.forgotten, s.flushed = nil, 0
	s.heavy = heavy.NewCounter()
}

// collectPerOp is how many wheel steps an operation makes. An entry needs at most one step per level of the
// wheel until it is collected. Four levels span 78 hours. So collection keeps up even if every operation adds an
// entry that becomes idle within that time.
const collectPerOp = 4

// arrive advances the shard's time to the stamp.
func (s *shard) arrive(at Stamp) {
	s.NowNs = max(s.NowNs, at.NowNs)
	s.OffsetNs = at.WallOffsetNs
}

// enter prepares the shard for an operation at the stamp.
func (s *shard) enter(at Stamp) {
	s.arrive(at)
	s.flushForgotten()
	if s.NowNs-store.IdleGraceNs >= s.Wheel.DueNs {
		s.Collect(collectPerOp)
	}
}

// A look reads a shard at a stamp that may be ahead of its last decision. Replicas are read at different
// times and must still decide alike, so a look leaves no trace. The shard's time is restored, and logs and
// leases keep their expired parts.

// look moves a locked shard to a stamp, until unlock.
func (s *shard) look(at Stamp) {
	s.flushForgotten()
	s.BeginLook(at.NowNs, at.WallOffsetNs)
}

// unlock ends a look, if one is in progress, and unlocks the shard.
func (s *shard) unlock() {
	if s.Looking {
		s.EndLook()
	}
	s.mu.Unlock()
}

// pause releases the lock for a moment, so that other callers can take it.
func (s *shard) pause() {
	s.mu.Unlock()
	s.mu.Lock()
}

func (s *shard) visit(at Stamp, visit func(*shard)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.NowNs = max(s.NowNs, at.NowNs)
	s.flushForgotten()
	visit(s)
}

// reclaim makes one reclaim step in the shard, and marks the shard as exhausted if there was none to make. It returns
// how many entries the step read in vain.
func (s *shard) reclaim() (inVain int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.SearchedInVain()
	s.Exhausted.Store(!s.ReclaimSome())
	return s.SearchedInVain() - before
}

// victim returns copies of the keys and the id of the shard's victim, and its size in bytes. A bundle has several keys.
// There is none if the shard has no victim.
func (s *shard) victim(at Stamp) (keys [][]byte, id []byte, size int64) {
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	r := s.NearestIdle(0)
	if r == 0 {
		return nil, nil, 0
	}
	e := store.Entry(s.Slab.At(r))
	s.EachCell(r, func(c *store.Cell) { keys = append(keys, slices.Clone(c.Key)) })
	if e.Kind() != store.KindToken {
		return keys, nil, s.SlotBytes(r, e)
	}
	name := keys[0]
	key, ok := store.KeyOfToken(name)
	if !ok {
		panic("engine: a token without its key")
	}
	return [][]byte{key}, name[2+len(key):], s.SlotBytes(r, e)
}
