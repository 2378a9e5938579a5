package fsm

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/wire"
)

// errVoid is the FSM's answer to an entry that the log holds under another term than its stamp was made for. No node
// has applied it.
var errVoid = fmt.Errorf("%w: the leader changed before it was proposed", limiter.ErrTryAgain)

// FSM applies committed entries to the table, as a pure function of the log. The Raft library calls Apply, Snapshot
// and Restore from one goroutine, and only that goroutine writes State, seen and samples.
type FSM struct {
	options engine.Options
	Source  persistence.Source
	Images  *persistence.Images
	// Answers returns the slice for the answers to the entry with a nonce, or nil if another node proposed the entry.
	Answers func(nonce uint64) []engine.Decision
	Fatal   func(error)
	Founded func(Constants)  // called when the cluster's constants are known
	Differs func(Difference) // called when the leader's history is not this node's; must not block
	Arrived func(index uint64) raftlog.Arrival
	// Reloaded is called when an image has replaced the state.
	Reloaded func()
	Grown    func() // called after each entry; must not block
	Faults   faults.Set
	// Reach is host.Group.Reach.
	Reach  func(faults.Point)
	Newest byte // the newest format of entries that this node can read

	Table   atomic.Pointer[engine.Table]
	decoder wire.Decoder
	scratch []engine.Decision

	// draining is held while changes go from the table to the images, and while the table is emptied or replaced.
	// interrupt asks the holder of draining to stop.
	draining  sync.Mutex
	interrupt atomic.Bool
	pending   []engine.Change // copied at a standstill, not yet written; guarded by draining
	epoch     uint64          // counts how often the table was emptied or replaced; guarded by draining

	// Committed is the newest committed configuration; nil: none is known.
	Committed atomic.Pointer[Configuration]
	// Whole is held while an entry is applied, and while the state is read as a whole.
	Whole sync.Mutex

	Mu      sync.Mutex // guards the fields from State to passed
	State   State
	seen    raftlog.Arrival // of the entry that has the last stamp
	samples samples
	waiters []*appliedWaiter
	// passed is the last entry of any kind that is known to be applied.
	passed uint64

	// Standstill is how long the last snapshot delayed entries, in nanoseconds.
	Standstill atomic.Int64
	Clamps     atomic.Int64 // entries whose stamp was earlier than the stamp before it
	// LogBytes and LogEntries count the bytes and the entries that were applied since the last snapshot.
	LogBytes, LogEntries atomic.Int64
}

// New returns an FSM with an empty table, in a process with so many groups. The caller sets its exported fields before
// use.
func New(o engine.Options, groups int) *FSM {
	o.TrackChanges, o.WhenFull = true, engine.Replica // the log decides what is evicted, and not one node's memory
	m := &FSM{options: o, Newest: wire.Version, samples: make(samples, max(mostSamples/groups, leastSamples)),
		decoder: wire.Decoder{Checked: true}}
	m.Reloaded, m.Grown, m.Reach, m.Differs = func() {}, func() {}, func(faults.Point) {}, func(Difference) {}
	m.Arrived = func(index uint64) raftlog.Arrival {
		return raftlog.Arrival{Index: index, RawNs: m.Source.MonotonicNs()}
	}
	m.put(engine.NewTable(o), wire.Oldest)
	return m
}

// Last returns the stamp of the last entry applied, and the arrival of that entry on this node's monotonic clock.
func (m *FSM) Last() (at engine.Stamp, arrivedRawNs int64) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.State.At, m.seen.RawNs
}

// LastArrival returns the state at the last entry, and the arrival of the entry that set the state's stamp.
func (m *FSM) LastArrival() (State, raftlog.Arrival) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.State, m.seen
}

// Written returns the newest form of the entries up to the last one applied.
func (m *FSM) Written() byte {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.State.Format
}

// LastHistory returns the last index applied and the hash of the history up to it.
func (m *FSM) LastHistory() (index, hash uint64) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.State.Index, m.State.History
}

// Apply applies one entry.
func (m *FSM) Apply(l *raft.Log) any {
	if l.Type != raft.LogCommand {
		return nil
	}
	m.Reach(faults.BeforeApply)
	m.Whole.Lock()
	defer m.Whole.Unlock()
	h, body, err := wire.Split(l.Data, m.Newest)
	if err != nil {
		m.unreadable(l.Index, err)
		return err
	}
	m.compare(h)
	next := m.State // no other goroutine writes State
	next.Index, next.Term = l.Index, l.Term
	next.History = fold(next.History, l)
	next.Format = max(next.Format, h.Format)
	m.Table.Load().SetRules(wire.RulesOf(next.Format))
	var answer any
	seen := m.seen // only this goroutine writes it
	if h.Term == l.Term {
		next.advance(h.At, m)
		seen = m.Arrived(l.Index)
		if err := m.carryOut(&next, h, body); err != nil {
			m.unreadable(l.Index, err)
			return err
		}
	} else {
		guards.VoidEntry.Hit()
		answer = errVoid
	}
	m.commit(next, seen)
	m.LogBytes.Add(int64(len(l.Data)))
	m.LogEntries.Add(1)
	m.Grown()
	return answer
}

// advance sets the state's time to the stamp of an entry, but never back. An earlier stamp invalidates the WallNote,
// and so does a stamp of another term.
func (s *State) advance(stamp engine.Stamp, m *FSM) {
	s.dropOldNote()
	if stamp.NowNs < s.At.NowNs {
		m.Clamps.Add(1)
		guards.TimeBack.Hit()
		s.Walls = nil
		if !m.Faults.Has(faults.NoClamp) {
			stamp.NowNs = s.At.NowNs
		}
	}
	s.At = stamp
}

func (m *FSM) commit(next State, seen raftlog.Arrival) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.State, m.seen = next, seen
	m.samples.add(next.Index, next.History)
	m.passLocked(next.Index)
}

func (m *FSM) carryOut(s *State, h wire.Header, body []byte) error {
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

// decide decides the calls of an entry. If this node proposed the entry, decide writes the answers to the batch.
func (m *FSM) decide(s *State, h wire.Header, body []byte) error {
	var answers []engine.Decision
	if !m.Faults.Has(faults.EarlyReply) {
		answers = m.Answers(h.Nonce)
	}
	table := m.Table.Load()
	m.decoder.Reset(body)
	for done := 0; ; {
		call, more, err := m.decoder.Next()
		if err != nil || !more {
			return err
		}
		out := m.answersFor(answers, done, len(call.Ops))
		if m.Faults.Has(faults.AnyFollow) && len(call.Ops) > 0 && call.Ops[0].Code == engine.OpFollow {
			followAny(table, s.At, &call.Ops[0])
		}
		m.decideWithin(table, s, call, out)
		if m.Faults.Has(faults.WrongDecisions) && len(out) > 0 && call.Ops[0].Code == engine.OpTake {
			out[0].Remaining++
		}
		s.History = foldDecisions(s.History, out)
		done += len(call.Ops)
	}
}

// followAny makes an OpFollow one that the table carries out.
func followAny(table *engine.Table, at engine.Stamp, op *engine.Op) {
	if have := table.Shared(at); !op.Partial {
		op.WaitNs, op.TTLNs = int64(have.Version), int64(have.Steps)
		op.Cost = max(op.Cost, op.WaitNs)
	}
}

// decideWithin decides a call in a group that owns a range of slots. It refuses an atomic call as a whole if one of
// its operations is on a slot of another group. Of other calls it refuses only such operations.
func (m *FSM) decideWithin(table *engine.Table, s *State, call wire.Call, out []engine.Decision) {
	wrong := m.wrongGroup(s, call.Ops)
	switch {
	case call.Atomic && wrong < len(call.Ops):
		refuse(out)
	case call.Atomic:
		table.DecideAtomic(s.At, call.Ops, out)
	default:
		for ops := call.Ops; ; wrong = m.wrongGroup(s, ops) {
			table.Decide(s.At, ops[:wrong], out[:wrong])
			if wrong == len(ops) {
				return
			}
			refuse(out[wrong : wrong+1])
			ops, out = ops[wrong+1:], out[wrong+1:]
		}
	}
}

// wrongGroup returns the position of the first operation on a slot of another group, or len(ops).
func (m *FSM) wrongGroup(s *State, ops []engine.Op) int {
	owned := s.Founding.Owned()
	if owned == hashslot.All || m.Faults.Has(faults.NoSlotCheck) {
		return len(ops)
	}
	for i := range ops {
		if !ops[i].Within(owned) {
			return i
		}
	}
	return len(ops)
}

func refuse(out []engine.Decision) {
	for i := range out {
		out[i] = engine.Decision{Status: limiter.ErrWrongGroup.Status()}
	}
}

// scratchOps is the least number of answers in the scratch memory, which is enough for most entries.
const scratchOps = 1024

// answersFor returns the slice for the next n answers, after the first done answers. It is scratch memory if another
// node proposed the entry.
func (m *FSM) answersFor(answers []engine.Decision, done, n int) []engine.Decision {
	if len(answers) >= done+n {
		return answers[done : done+n]
	}
	if len(m.scratch) < n {
		m.scratch = make([]engine.Decision, max(n, scratchOps))
	}
	return m.scratch[:n]
}

func (m *FSM) clear() error {
	m.interrupt.Store(true)
	m.draining.Lock()
	defer m.draining.Unlock()
	m.interrupt.Store(false)
	m.replaced()
	m.Table.Load().Clear()
	return m.Images.Clear()
}

func (m *FSM) found(s *State, body []byte) error {
	f, err := decodeFounding(body)
	if err != nil {
		return err
	}
	if s.Founding.ClusterID == f.ClusterID && f.HashSeed != (engine.HashSeed{}) {
		s.Founding.HashSeed = f.HashSeed // see Leadership.Seed
		if f.EventsBytes != 0 {
			s.Founding.EventsBytes = f.EventsBytes
			m.Table.Load().BoundEvents(f.EventsBytes)
		}
		if s.Founding.Placed == nil {
			s.Founding.Placed = f.Placed
		}
		return nil
	}
	if s.Founding.ClusterID != "" {
		guards.SecondFounding.Hit()
		return nil // a second leader has proposed the first entry again
	}
	s.Founding = f
	m.adopt(f, s.Format)
	return nil
}

// put makes a table the state after a log whose newest entry has a format.
func (m *FSM) put(t *engine.Table, format byte) {
	t.SetRules(wire.RulesOf(format))
	m.Table.Store(t)
}

// adopt makes a new, empty table with the constants of the cluster.
func (m *FSM) adopt(f Constants, format byte) {
	m.options.IDLifetimeNs, m.options.HashSeed, m.options.EventsBytes = f.IDLifetimeNs, f.HashSeed, f.EventsBytes
	m.put(engine.NewTable(m.options), format)
	m.Founded(f)
}

// Configuration is the servers of the cluster from a log index on.
type Configuration struct {
	Index   uint64
	Servers []raft.Server
}

func (m *Configuration) Ids() []string { return consensus.IDs(m.Servers) }

// StoreConfiguration records a committed configuration and the ids that it removes.
func (m *FSM) StoreConfiguration(index uint64, c raft.Configuration) {
	defer m.MarkApplied(index)
	now := &Configuration{index, c.Clone().Servers}
	if before := m.Committed.Swap(now); before != nil {
		m.Mu.Lock()
		defer m.Mu.Unlock()
		m.State.RemovedIDs = identity.RemovedIDs(m.State.RemovedIDs, before.Ids(), now.Ids())
	}
}

// Spent reports whether an id belonged to a removed member, so that no new node may have it.
func (m *FSM) Spent(id string) bool {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return slices.Contains(m.State.RemovedIDs, id)
}

// compare calls Differs if this node's history differs from the history of the proposer of an entry.
func (m *FSM) compare(h wire.Header) {
	if h.CheckIndex == 0 {
		return
	}
	mine, ok := m.samples.at(h.CheckIndex)
	if ok && mine != h.CheckHash {
		m.Differs(Difference{Index: h.CheckIndex, Mine: mine, Theirs: h.CheckHash})
	}
}

// HistoryAt returns the history at an entry, or false if the entry is not applied yet or no longer remembered.
func (m *FSM) HistoryAt(index uint64) (uint64, bool) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if index == m.State.Index {
		return m.State.History, true // also right after an image was loaded
	}
	return m.samples.at(index)
}

// unreadable ends the process. If this node skipped an entry that other nodes apply, its state would diverge.
func (m *FSM) unreadable(index uint64, err error) {
	reason := failure.ErrBadEntry
	if errors.Is(err, wire.ErrVersion) {
		reason = failure.ErrNewer
	}
	m.Fatal(fmt.Errorf("%w: entry %d: %w", reason, index, err))
}

// Configuration returns the log index of the newest committed configuration, or 0 if none is known. The Raft library
// refuses a change that names this index if the configuration has changed since. Callers must call Configuration
// before they read the servers.
func (m *FSM) Configuration() uint64 {
	if c := m.Committed.Load(); c != nil {
		return c.Index
	}
	return 0
}

// LastStamp returns the stamp of the last entry applied.
func (m *FSM) LastStamp() engine.Stamp {
	at, _ := m.Last()
	return at
}

// Members returns the servers of the newest committed configuration, or nil if none is known.
func (m *FSM) Members() []raft.Server {
	if c := m.Committed.Load(); c != nil {
		return c.Servers
	}
	return nil
}
