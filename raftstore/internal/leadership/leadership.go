package leadership

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// tickAfter is the idle time after which a leader commits a tick. It bounds the limiter time, and so the refill,
	// that a failover can lose.
	tickAfter = time.Second
)

// Term is a term in which this node leads and serves. Its clock is set once: the last stamp that this node applied,
// plus the time on its own monotonic clock since that entry arrived (raftlog.Arrivals). The entry was stamped before
// it arrived. So the clock is never ahead of the real time since then, whichever node stamped the entry.
type Term struct {
	Number uint64
	Clock  persistence.Clock
}

// Leadership manages this node's role as the leader of its group. It follows the Raft library, keeps the clock that
// stamps entries, and transfers leadership to other nodes.
type Leadership struct {
	Config

	Current   atomic.Pointer[Term] // nil: this node does not lead, or does not serve yet
	LastEntry atomic.Int64         // uptime at the last proposal
	lastNote  atomic.Int64         // uptime when wall clocks were last noted
	Handover  handoverWatch
	advancing sync.Mutex // held while a test clock is moved

	leaving  timers.Single // transfers leadership because of lagging or slowDisk, which no other goroutine uses then
	lagging  stallCheck
	slowDisk slowDisk

	// ColdStarts counts the cold starts after which this node was the first leader. Uncredited counts those whose
	// downtime refilled no limiter. DowntimeCredit is the limiter time credited, in nanoseconds.
	ColdStarts, Uncredited, DowntimeCredit atomic.Int64
}

// Run follows the Raft library's changes of leadership until the node closes.
func (l *Leadership) Run() {
	for {
		select {
		case leads := <-l.Raft.LeaderCh():
			l.Current.Store(nil)
			l.Confirms.Abandon()
			if leads {
				l.BecomeLeader()
			}
		case <-l.Life.Stop:
			l.Current.Store(nil)
			return
		}
	}
}

// BecomeLeader lets this node serve as the leader of its term, after it has applied everything that earlier leaders
// committed.
func (l *Leadership) BecomeLeader() {
	for l.Raft.State() == raft.Leader {
		term := l.Raft.CurrentTerm()
		barrier := l.Raft.Barrier(timers.ElectionTimeout(l.Heartbeat))
		err := l.Raft.Await(barrier)
		l.Handover.Observe(err, l.Raft.CurrentTerm())
		if err != nil {
			if !l.Peers.NoQuorumExplained() {
				l.Log.Warn("this node was elected but cannot serve yet", "term", term, "error", err)
			}
			time.Sleep(timers.LeaderlessPause)
			continue
		}
		if entry, ok := barrier.(interface{ Index() uint64 }); ok {
			l.FSM.MarkApplied(entry.Index()) // the FSM does not receive the library's barrier entry
		}
		r := &Term{Number: term, Clock: l.resumeClock()}
		if !l.HasCluster() && !l.Bootstrap(r) {
			continue
		}
		l.Reach(faults.BeforeLeadership)
		if l.Raft.CurrentTerm() != term {
			guards.ElectedTwice.Hit()
			continue
		}
		l.LastEntry.Store(int64(l.Life.Uptime()))
		// The note of the wall clocks is the first entry of the term. So no later entry of the term is without one.
		l.apply(r, wire.Tick, l.NoteWalls(r), wire.Oldest)
		l.Current.Store(r)
		l.Log.Info("this node is the leader", "term", term)
		return
	}
}

// ClockFrom returns a clock that continues from a stamp, plus the time since its entry arrived here.
func (l *Leadership) ClockFrom(at engine.Stamp, arrivedRawNs int64) persistence.Clock {
	if at.NowNs == 0 {
		at.NowNs = min(max(l.Source.WallNs(), int64(time.Second)), maxFirstNs)
	} else if !l.TestClock {
		at.NowNs += max(l.Source.MonotonicNs()-arrivedRawNs, 0)
	}
	if l.TestClock {
		return persistence.StartTestClock(at)
	}
	return persistence.StartClock(l.Source, at)
}

// maxFirstNs bounds the first limiter time of a cluster whose wall clock is wrong to the range of package engine.
const maxFirstNs = int64(1) << 61

// Stamp returns the stamp of an entry that is proposed now.
func (l *Leadership) Stamp(r *Term) engine.Stamp {
	if l.Faults.Has(faults.WallClock) {
		return engine.Stamp{NowNs: l.Source.WallNs()}
	}
	return r.Clock.Now()
}

// StampOf returns the stamp of a batch that is proposed now. A batch that moves a test clock continues from the last
// entry, because an entry with an unknown outcome may have moved limiter time beyond r's clock.
func (l *Leadership) StampOf(b *queue.Batch, r *Term) engine.Stamp {
	at := l.Stamp(r)
	if b.MoveNs > 0 {
		at.NowNs = max(at.NowNs, l.FSM.LastStamp().NowNs)
		at.NowNs += min(b.MoveNs, max(maxFirstNs-at.NowNs, 0))
	}
	return at
}

// Bootstrap proposes the cluster's first entry: the constants that every node takes from the log and not from its
// flags. It reports whether the entry was applied.
func (l *Leadership) Bootstrap(r *Term) bool {
	id, err := identity.NewClusterID()
	if err != nil {
		l.Fatal(err)
		return false
	}
	f := fsm.ConstantsOf(l.Group, l.Groups)
	f.ClusterID, f.IDLifetimeNs, f.TestClock, f.HashSeed = id, l.IDLifetimeNs, l.TestClock, engine.NewHashSeed()
	f.Replicas = l.Replicas
	// A new cluster begins with the newest rules that its members know.
	agreed := l.Agree()
	if agreed >= wire.Growing {
		f.EventsBytes = l.EventsBytes
	}
	if err := l.propose(r, f, agreed); err != nil {
		l.Log.Warn("the cluster could not be founded yet", "error", err)
		return false
	}
	return true
}

// Seed proposes a seed for the tables of a cluster that an older version founded. Older versions ignore the entry and
// forget the seed, so Seed waits until every member reads the newest format. A node without the seed that becomes the
// leader proposes another seed, which then replaces the first on every node. In the same way Seed proposes the bound of
// the events, unless the cluster has one. Bootstrap often cannot, because not every member has said yet what it reads.
// And it places the groups of a new cluster, once every founder has said in which zone it is.
func (l *Leadership) Seed(agreed byte) {
	r := l.Current.Load()
	if r == nil || agreed < wire.Version {
		return
	}
	state, _ := l.FSM.LastArrival()
	switch f := state.Founding; {
	case f.ClusterID == "":
	case f.HashSeed == (engine.HashSeed{}):
		f.HashSeed = engine.NewHashSeed()
		_ = l.propose(r, f, wire.Oldest) // the next check proposes it again
	case f.EventsBytes == 0 && l.EventsBytes != 0:
		f.EventsBytes = l.EventsBytes
		_ = l.propose(r, f, wire.Growing)
	case f.Replicas > 0 && f.Placed == nil && l.Place != nil:
		if f.Placed = l.Place(); f.Placed != nil {
			_ = l.propose(r, f, wire.Growing)
		}
	}
}

// propose proposes the cluster's constants in an entry of a format, and waits until they are applied.
func (l *Leadership) propose(r *Term, f fsm.Constants, format byte) error {
	future := l.apply(r, wire.Bootstrap, f.Encode(), max(format, f.Form()))
	if err := l.Raft.Await(future); err != nil {
		return err
	}
	err, _ := future.Response().(error)
	return err
}

// apply hands an entry without operations to the Raft library.
func (l *Leadership) apply(r *Term, kind wire.Kind, body []byte, format byte) raft.ApplyFuture {
	data := append(make([]byte, wire.HeaderLen), body...)
	wire.Header{Kind: kind, Format: format, Term: r.Number, At: r.Clock.Now()}.Put(data)
	return l.Raft.Apply(data, timers.ElectionTimeout(l.Heartbeat))
}

// KeepTime commits limiter time while the leader is idle, so that the next leader's clock is close behind.
func (l *Leadership) KeepTime() {
	r := l.Current.Load()
	if r == nil {
		return
	}
	r.Clock.Slew()
	now := l.Life.Uptime()
	if now-time.Duration(l.LastEntry.Load()) > tickAfter || now-time.Duration(l.lastNote.Load()) > noteEvery {
		l.Queue.Special(wire.Tick) // a queue that is closed needs no ticks
	}
}

// AdvanceHere moves limiter time by ns with a Tick, and then sets the test clock of this leader to that time. Calls
// run one at a time, because each continues from the last entry.
func (l *Leadership) AdvanceHere(ns int64) error {
	l.advancing.Lock()
	defer l.advancing.Unlock()
	r := l.Current.Load()
	if r == nil {
		return limiter.ErrNotLeader
	}
	b, err := l.Queue.Moving(wire.Tick, ns)
	if err != nil {
		return err
	}
	if <-b.Done; b.Err == nil {
		r.Clock.Advance(time.Duration(l.FSM.LastStamp().NowNs - r.Clock.Now().NowNs))
	}
	return b.Err
}
