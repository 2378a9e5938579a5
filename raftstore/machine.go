package raftstore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// errVoid is the machine's answer to an entry that ended up in another term than
// its stamp was made for. It was not applied, on any node.
var errVoid = fmt.Errorf("%w: the leader changed before it was proposed", failure.ErrTryAgain)

// machine applies committed entries to the table: a pure function of the log. The
// Raft library calls Apply, Snapshot and Restore from one goroutine.
type machine struct {
	options engine.Options
	source  persistence.Source
	images  *persistence.Images
	// answers returns the place for the answers to the entry with a nonce, nil when the entry is
	// not this node's.
	answers func(nonce uint64) []engine.Decision
	fatal   func(error)
	founded func(clusterConstants) // called when the cluster's constants are known
	differs func(difference)       // called when the leader's history is not this node's; must not block
	arrived func(index uint64) arrival
	// reloaded is told when an image has taken the place of the state.
	reloaded func()
	faults   faults.Set
	// reach is Node.reach.
	reach  func(faults.Point)
	newest byte // format of entries that can be read

	table   atomic.Pointer[engine.Table]
	decoder wire.Decoder
	scratch []engine.Decision

	// draining is held while changes go from the table to the images, and while the
	// table is emptied or replaced. hurry asks whoever drains to let go.
	draining sync.Mutex
	hurry    atomic.Bool
	pending  []engine.Change // taken at a standstill, not yet written; guarded by draining
	epoch    uint64          // of the table; guarded by draining

	// committed is the newest committed configuration; nil: none is known.
	committed atomic.Pointer[configuration]
	// whole is held while an entry is applied, and while the state is read as a whole.
	whole sync.Mutex

	mu      sync.Mutex // guards what follows; only the Raft library's goroutine writes
	state   state
	seen    arrival // of the entry that has the last stamp
	samples samples
	waiters []*appliedWaiter
	// passed is the last entry of any kind that is known to be carried out.
	passed uint64

	// standstill is how long the last snapshot held up entries, in nanoseconds.
	standstill atomic.Int64
	clamps     atomic.Int64 // entries whose stamp lay before the last one's
	// logBytes counts the entries applied since the last snapshot.
	logBytes, logEntries atomic.Int64
}

func newMachine(o engine.Options) *machine {
	o.TrackChanges, o.WhenFull = true, engine.Replica // the log decides what is evicted, not one node's memory
	m := &machine{options: o, newest: wire.Version}
	m.reloaded, m.reach = func() {}, func(faults.Point) {}
	m.arrived = func(index uint64) arrival { return arrival{index: index, rawNs: m.source.MonotonicNs()} }
	m.table.Store(engine.NewTable(o))
	return m
}

// last returns the stamp of the last entry applied, and when the entry arrived, on
// this node's monotonic clock.
func (m *machine) last() (at engine.Stamp, arrivedRawNs int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.At, m.seen.rawNs
}

// lastArrival returns the state at the last entry, and the arrival of its stamp.
func (m *machine) lastArrival() (state, arrival) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, m.seen
}

// written returns the newest form of the entries up to the last one applied.
func (m *machine) written() byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Format
}

// check returns the last index applied and the hash of the history up to there.
func (m *machine) check() (index, hash uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Index, m.state.History
}

// Apply carries out one entry.
func (m *machine) Apply(l *raft.Log) any {
	if l.Type != raft.LogCommand {
		return nil
	}
	m.reach(faults.BeforeApply)
	m.whole.Lock()
	defer m.whole.Unlock()
	h, body, err := wire.Split(l.Data, m.newest)
	if err != nil {
		m.unreadable(l.Index, err)
		return err
	}
	m.compare(h)
	next := m.state // nobody else writes it
	next.Index, next.Term = l.Index, l.Term
	next.History = fold(next.History, l)
	next.Format = max(next.Format, h.Format)
	var answer any
	seen := m.seen // only this goroutine writes it
	if h.Term == l.Term {
		next.advance(h.At, m)
		seen = m.arrived(l.Index)
		if err := m.carryOut(&next, h, body); err != nil {
			m.unreadable(l.Index, err)
			return err
		}
	} else {
		guards.VoidEntry.Hit()
		answer = errVoid
	}
	m.commit(next, seen)
	m.logBytes.Add(int64(len(l.Data)))
	m.logEntries.Add(1)
	return answer
}

// advance sets the state's time to the stamp of an entry, but never back. A stamp that
// goes back invalidates the note of the wall clocks.
func (s *state) advance(stamp engine.Stamp, m *machine) {
	if stamp.NowNs < s.At.NowNs {
		m.clamps.Add(1)
		guards.TimeBack.Hit()
		s.Walls = nil
		if !m.faults.Has(faults.NoClamp) {
			stamp.NowNs = s.At.NowNs
		}
	}
	s.At = stamp
}

func (m *machine) commit(next state, seen arrival) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.seen = next, seen
	m.samples.add(next.Index, next.History)
	m.passLocked(next.Index)
}

func (m *machine) carryOut(s *state, h wire.Header, body []byte) error {
	switch h.Kind {
	case wire.Decide:
		return m.decide(s, h, body)
	case wire.Tick:
		s.noted(body)
	case wire.Clear:
		return m.clear()
	case wire.Bootstrap:
		return m.found(s, body)
	}
	return nil
}

// decide carries out the calls of an entry, and leaves the answers in the batch if
// it is this node's.
func (m *machine) decide(s *state, h wire.Header, body []byte) error {
	var answers []engine.Decision
	if !m.faults.Has(faults.EarlyReply) {
		answers = m.answers(h.Nonce)
	}
	table := m.table.Load()
	m.decoder.Reset(body)
	for done := 0; ; {
		call, more, err := m.decoder.Next()
		if err != nil || !more {
			return err
		}
		out := m.answersFor(answers, done, len(call.Ops))
		if call.Atomic {
			table.DecideAtomic(s.At, call.Ops, out)
		} else {
			table.Decide(s.At, call.Ops, out)
		}
		if m.faults.Has(faults.OddDecisions) && len(out) > 0 {
			out[0].Remaining++
		}
		s.History = foldDecisions(s.History, out)
		done += len(call.Ops)
	}
}

// scratchOps is how many answers the scratch memory has at least: as many as most entries need.
const scratchOps = 1024

// answersFor is where n answers go, of which done were given before.
func (m *machine) answersFor(answers []engine.Decision, done, n int) []engine.Decision {
	if len(answers) >= done+n {
		return answers[done : done+n]
	}
	if len(m.scratch) < n {
		m.scratch = make([]engine.Decision, max(n, scratchOps))
	}
	return m.scratch[:n]
}

func (m *machine) clear() error {
	m.hurry.Store(true)
	m.draining.Lock()
	defer m.draining.Unlock()
	m.hurry.Store(false)
	m.replaced()
	m.table.Load().Clear()
	return m.images.Clear()
}

func (m *machine) found(s *state, body []byte) error {
	f, err := decodeFounding(body)
	if err != nil {
		return err
	}
	if s.Founding.ClusterID != "" {
		guards.SecondFounding.Hit()
		return nil // a second leader founded the same cluster again
	}
	s.Founding = f
	m.adopt(f)
	return nil
}

// adopt makes a new, empty table with the constants of the cluster.
func (m *machine) adopt(f clusterConstants) {
	m.options.IDLifetimeNs = f.IDLifetimeNs
	m.table.Store(engine.NewTable(m.options))
	m.founded(f)
}

// configuration is the nodes of the cluster from one entry on.
type configuration struct {
	index   uint64
	servers []raft.Server
}

func (m *configuration) ids() []string { return idsOf(m.servers) }

// StoreConfiguration takes note of a committed configuration, and of who left.
func (m *machine) StoreConfiguration(index uint64, c raft.Configuration) {
	defer m.passTo(index)
	now := &configuration{index, c.Clone().Servers}
	if before := m.committed.Swap(now); before != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.state.RemovedIDs = removedIDs(m.state.RemovedIDs, before.ids(), now.ids())
	}
}

// spent reports whether an id was that of a member that has left.
func (m *machine) spent(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.state.RemovedIDs, id)
}

// compare reports when the history of the node that proposed an entry is not this
// node's.
func (m *machine) compare(h wire.Header) {
	if h.CheckIndex == 0 {
		return
	}
	mine, ok := m.samples.at(h.CheckIndex)
	if ok && mine != h.CheckHash {
		m.differs(difference{index: h.CheckIndex, mine: mine, theirs: h.CheckHash})
	}
}

// historyAt returns the history at an entry; false when it is not applied yet or no
// longer remembered.
func (m *machine) historyAt(index uint64) (uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if index == m.state.Index {
		return m.state.History, true // also right after an image was loaded
	}
	return m.samples.at(index)
}

// unreadable ends the process: skipping an entry that others apply would be to
// diverge.
func (m *machine) unreadable(index uint64, err error) {
	reason := failure.ErrBadEntry
	if errors.Is(err, wire.ErrVersion) {
		reason = failure.ErrNewer
	}
	m.fatal(fmt.Errorf("%w: entry %d: %w", reason, index, err))
}

// configuration returns the entry of the newest committed configuration, 0 when none is
// known: a change that refers to it is refused when another came first. To be asked
// before the servers that the change is about are looked at.
func (m *machine) configuration() uint64 {
	if c := m.committed.Load(); c != nil {
		return c.index
	}
	return 0
}

// lastStamp returns the stamp of the last entry applied.
func (m *machine) lastStamp() engine.Stamp {
	at, _ := m.last()
	return at
}

// members returns the servers of the newest committed configuration, nil when none is known.
func (m *machine) members() []raft.Server {
	if c := m.committed.Load(); c != nil {
		return c.servers
	}
	return nil
}
