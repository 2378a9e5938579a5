package raftstore

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/wire"
)

// reign is one term in which this node leads and serves. Its clock is set once: it
// shows the last stamp this node applied plus the time that has passed on its own
// monotonic clock since that entry arrived (arrivals.go). The entry was stamped
// before it arrived, so the clock is never ahead of the real time since then,
// whichever node stamped it.
type reign struct {
	term  uint64
	clock persistence.Clock
}

// lead follows the Raft library's changes of leadership until the node closes.
func (n *Node) lead() {
	for {
		select {
		case leads := <-n.raft.LeaderCh():
			n.reign.Store(nil)
			n.confirms.abandon()
			if leads {
				n.ascend()
			}
		case <-n.stop:
			n.reign.Store(nil)
			return
		}
	}
}

// ascend begins a reign: what earlier leaders committed is applied first.
func (n *Node) ascend() {
	for n.raft.State() == raft.Leader {
		term := n.raft.CurrentTerm()
		barrier := n.raft.Barrier(n.electionTimeout())
		if err := n.await(barrier); err != nil {
			if !n.noQuorumExplained() {
				n.log.Warn("this node was elected but cannot serve yet", "term", term, "error", err)
			}
			time.Sleep(leaderlessPause)
			continue
		}
		if entry, ok := barrier.(interface{ Index() uint64 }); ok {
			n.machine.passTo(entry.Index()) // the library's barrier entry does not reach the machine
		}
		r := &reign{term: term, clock: n.resumeClock()}
		if !n.hasCluster() && !n.found(r) {
			continue
		}
		n.reach(BeforeLeadership)
		if n.raft.CurrentTerm() != term {
			guardElectedTwice.Hit()
			continue
		}
		n.lastEntry.Store(int64(n.uptime()))
		n.reign.Store(r)
		n.queue.special(wire.Tick) // notes the wall clocks; a closed queue needs no note
		n.log.Info("this node leads", "term", term)
		return
	}
}

// clockFrom returns a clock that goes on from a stamp, by the time since its entry arrived
// here.
func (n *Node) clockFrom(at engine.Stamp, arrivedRawNs int64) persistence.Clock {
	if at.NowNs == 0 {
		at.NowNs = min(max(n.source.WallNs(), int64(time.Second)), maxFirstNs)
	} else if !n.testClock {
		at.NowNs += max(n.source.MonotonicNs()-arrivedRawNs, 0)
	}
	if n.testClock {
		return persistence.StartTestClock(at)
	}
	return persistence.StartClock(n.source, at)
}

// maxFirstNs keeps a cluster that is founded with a senseless wall clock within
// what package engine computes with.
const maxFirstNs = int64(1) << 61

// stamp is the time of an entry proposed now.
func (n *Node) stamp(r *reign) engine.Stamp {
	if n.faults.WallClock {
		return engine.Stamp{NowNs: n.source.WallNs()}
	}
	return r.clock.Now()
}

// stampOf is the time of a batch that is proposed now. An entry that moves a test clock goes on
// from the last entry: an entry with an unknown end may have moved it beyond r's clock.
func (n *Node) stampOf(b *batch, r *reign) engine.Stamp {
	at := n.stamp(r)
	if b.moveNs > 0 {
		at.NowNs = max(at.NowNs, n.lastStamp().NowNs)
		at.NowNs += min(b.moveNs, max(maxFirstNs-at.NowNs, 0))
	}
	return at
}

// found writes the cluster's first entry: the constants that every node takes from
// the log and not from its flags.
func (n *Node) found(r *reign) bool {
	id, err := newClusterID()
	if err != nil {
		n.fatal(err)
		return false
	}
	f := founding{ClusterID: id, IDLifetimeNs: n.idLifetimeNs, TestClock: n.testClock}
	data := append(make([]byte, wire.HeaderLen), f.encode()...)
	wire.Header{Kind: wire.Found, Term: r.term, At: r.clock.Now()}.Put(data)
	future := n.raft.Apply(data, n.electionTimeout())
	if err := n.await(future); err != nil {
		n.log.Warn("the cluster could not be founded yet", "error", err)
		return false
	}
	return future.Response() == nil
}

// clusterIDLen is the length of a cluster's id, in bytes before they are hexadecimal.
const clusterIDLen = 16

func newClusterID() (string, error) {
	var id [clusterIDLen]byte
	_, err := rand.Read(id[:])
	return hex.EncodeToString(id[:]), err
}

// keepTime lets limiter time go on in the log of an idle leader, so that the next
// leader's clock lacks little.
func (n *Node) keepTime() {
	r := n.reign.Load()
	if r == nil {
		return
	}
	r.clock.Slew()
	now := n.uptime()
	if now-time.Duration(n.lastEntry.Load()) > tickAfter || now-time.Duration(n.lastNote.Load()) > noteEvery {
		n.queue.special(wire.Tick) // a queue that is closed needs no ticks
	}
}
