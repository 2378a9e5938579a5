package raftstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// tickAfter is how long a leader stays silent before it commits the time: what a
	// failover may cost callers in refill.
	tickAfter = time.Second
)

// leaderTerm is one term in which this node leads and serves. Its clock is set once: it
// shows the last stamp this node applied plus the time that has passed on its own
// monotonic clock since that entry arrived (arrivals.go). The entry was stamped
// before it arrived, so the clock is never ahead of the real time since then,
// whichever node stamped it.
type leaderTerm struct {
	term  uint64
	clock persistence.Clock
}

// leadership is this node as the leader of its group, or as one that may become it: it follows
// the Raft library, keeps the clock that stamps entries, and hands over to another node.
type leadership struct {
	*host
	raft     *consensus.Raft
	machine  *fsm.FSM
	logs     *raftlog.Log
	queue    *queue.Queue
	confirms *quorum.Check
	// status describes this node.
	status func() status

	current   atomic.Pointer[leaderTerm] // nil: this node does not lead, or not yet
	lastEntry atomic.Int64               // uptime at the last proposal
	lastNote  atomic.Int64               // uptime when wall clocks were last noted
	handover  handoverWatch
	advancing sync.Mutex // held while a test clock is moved

	// coldStarts counts the full stops of the cluster after which this node was the first
	// leader, uncredited those of them whose downtime refilled nothing. downtimeCredit is
	// the limiter time given, in nanoseconds.
	coldStarts, uncredited, downtimeCredit atomic.Int64
}

// run follows the Raft library's changes of leadership until the node closes.
func (l *leadership) run() {
	for {
		select {
		case leads := <-l.raft.LeaderCh():
			l.current.Store(nil)
			l.confirms.Abandon()
			if leads {
				l.becomeLeader()
			}
		case <-l.stop:
			l.current.Store(nil)
			return
		}
	}
}

// becomeLeader lets this node serve as the leader of its term, once it has applied what earlier
// leaders committed.
func (l *leadership) becomeLeader() {
	for l.raft.State() == raft.Leader {
		term := l.raft.CurrentTerm()
		barrier := l.raft.Barrier(l.electionTimeout())
		if err := l.raft.Await(barrier); err != nil {
			if !l.peers.noQuorumExplained() {
				l.log.Warn("this node was elected but cannot serve yet", "term", term, "error", err)
			}
			time.Sleep(timers.LeaderlessPause)
			continue
		}
		if entry, ok := barrier.(interface{ Index() uint64 }); ok {
			l.machine.PassTo(entry.Index()) // the library's barrier entry does not reach the machine
		}
		r := &leaderTerm{term: term, clock: l.resumeClock()}
		if !l.identity.HasCluster() && !l.bootstrap(r) {
			continue
		}
		l.reach(faults.BeforeLeadership)
		if l.raft.CurrentTerm() != term {
			guards.ElectedTwice.Hit()
			continue
		}
		l.lastEntry.Store(int64(l.uptime()))
		l.current.Store(r)
		l.queue.Special(wire.Tick) // notes the wall clocks; a closed queue needs no note
		l.log.Info("this node leads", "term", term)
		return
	}
}

// clockFrom returns a clock that goes on from a stamp, by the time since its entry arrived
// here.
func (l *leadership) clockFrom(at engine.Stamp, arrivedRawNs int64) persistence.Clock {
	if at.NowNs == 0 {
		at.NowNs = min(max(l.source.WallNs(), int64(time.Second)), maxFirstNs)
	} else if !l.testClock {
		at.NowNs += max(l.source.MonotonicNs()-arrivedRawNs, 0)
	}
	if l.testClock {
		return persistence.StartTestClock(at)
	}
	return persistence.StartClock(l.source, at)
}

// maxFirstNs keeps a cluster that is founded with a senseless wall clock within
// what package engine computes with.
const maxFirstNs = int64(1) << 61

// stamp is the time of an entry proposed now.
func (l *leadership) stamp(r *leaderTerm) engine.Stamp {
	if l.faults.Has(faults.WallClock) {
		return engine.Stamp{NowNs: l.source.WallNs()}
	}
	return r.clock.Now()
}

// stampOf is the time of a batch that is proposed now. An entry that moves a test clock goes on
// from the last entry: an entry with an unknown end may have moved it beyond r's clock.
func (l *leadership) stampOf(b *queue.Batch, r *leaderTerm) engine.Stamp {
	at := l.stamp(r)
	if b.MoveNs > 0 {
		at.NowNs = max(at.NowNs, l.machine.LastStamp().NowNs)
		at.NowNs += min(b.MoveNs, max(maxFirstNs-at.NowNs, 0))
	}
	return at
}

// bootstrap writes the cluster's first entry: the constants that every node takes from
// the log and not from its flags.
func (l *leadership) bootstrap(r *leaderTerm) bool {
	id, err := identity.NewClusterID()
	if err != nil {
		l.fatal(err)
		return false
	}
	f := fsm.Constants{ClusterID: id, IDLifetimeNs: l.idLifetimeNs, TestClock: l.testClock}
	data := append(make([]byte, wire.HeaderLen), f.Encode()...)
	wire.Header{Kind: wire.Bootstrap, Term: r.term, At: r.clock.Now()}.Put(data)
	future := l.raft.Apply(data, l.electionTimeout())
	if err := l.raft.Await(future); err != nil {
		l.log.Warn("the cluster could not be founded yet", "error", err)
		return false
	}
	return future.Response() == nil
}

// keepTime lets limiter time go on in the log of an idle leader, so that the next
// leader's clock lacks little.
func (l *leadership) keepTime() {
	r := l.current.Load()
	if r == nil {
		return
	}
	r.clock.Slew()
	now := l.uptime()
	if now-time.Duration(l.lastEntry.Load()) > tickAfter || now-time.Duration(l.lastNote.Load()) > noteEvery {
		l.queue.Special(wire.Tick) // a queue that is closed needs no ticks
	}
}

// advanceHere moves the test clock of this leader to where a Tick has moved the log's time.
// Only one may be under way: the next goes on from the last entry.
func (l *leadership) advanceHere(ns int64) error {
	l.advancing.Lock()
	defer l.advancing.Unlock()
	r := l.current.Load()
	if r == nil {
		return failure.ErrNotLeader
	}
	b, err := l.queue.Moving(wire.Tick, ns)
	if err != nil {
		return err
	}
	if <-b.Done; b.Err == nil {
		r.clock.Advance(time.Duration(l.machine.LastStamp().NowNs - r.clock.Now().NowNs))
	}
	return b.Err
}
