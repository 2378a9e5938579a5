package raftstore

import (
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/divergence"
	"github.com/weir-project/weir/raftstore/internal/format"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/readindex"
	"github.com/weir-project/weir/raftstore/internal/snapshots"
	"github.com/weir-project/weir/raftstore/internal/watchdog"
)

// makeParts makes the parts around the state machine. The log and the transport must be open.
func (g *group) makeParts() {
	own, m := g.own, g.newMachine()
	o := &own.Options
	g.fsm = m
	g.confirms = &quorum.Check{
		Self: o.NodeID, Term: g.raft.Term, Voters: g.raft.Voters, Ask: own.Peers.Wake, Stop: own.Stop,
	}
	g.format = format.New(format.Config{
		Self: o.NodeID, Reads: o.Format, Raft: g.raft, Applied: m, Peers: own.Peers, Log: own.Log,
	})
	g.divergence = divergence.New(divergence.Config{
		Self: o.NodeID, Heartbeat: o.Heartbeat, Raft: g.raft, History: m, Peers: own.Peers, Life: own.Lifetime,
		Log: own.Log, Fatal: own.Fatal, Forbid: own.Identity.Forbid,
	})
	g.leadership = g.newLeadership(m)
	g.reads = readindex.New(readindex.Config{
		Self: o.NodeID, Heartbeat: o.Heartbeat, MaxAge: o.MaxDecisionAge, Raft: g.raft, FSM: m,
		Leadership: g.leadership, Transport: g.transport, StuckFor: g.logs.StuckFor, Confirms: g.confirms,
		Disputed: &g.divergence.UnderWay, Peers: own.Peers, Life: own.Lifetime, Log: own.Log, Faults: o.Faults,
	})
	g.pipeline = g.newPipeline(m)
	g.membership = g.newMembership(m)
	g.snapshots = snapshots.New(snapshots.Config{
		Self: o.NodeID, SnapshotBytes: o.SnapshotBytes, Wanted: &g.wanted, Raft: g.raft, Trailing: g.raft, FSM: m,
		Images: g.images, Permit: &o.Host.Snapshots, ClockFrom: g.leadership.ClockFrom, Life: own.Lifetime,
		Log: own.Log,
	})
	g.watchdog = watchdog.New(watchdog.Config{
		Self: o.NodeID, Heartbeat: o.Heartbeat, Raft: g.raft, Committed: m.Committed.Load, Log: g.logs,
		Handover: &g.leadership.Handover, Identity: own.Identity, Peers: own.Peers, Closing: own.Closing,
		Fatal: own.Fatal,
	})
	m.Differs, m.Reloaded, m.Grown = g.divergence.Differs, g.reads.Freshness.Reset, g.pipeline.Grown
}

func (g *group) newLeadership(m *fsm.FSM) *leadership.Leadership {
	own, o := g.own, &g.own.Options
	return leadership.New(leadership.Config{
		Self: o.NodeID, Group: o.Group, Groups: o.Groups, Heartbeat: o.Heartbeat, StalledAfter: o.StalledAfter,
		Downtime:     persistence.Downtime{Credit: o.MaxDowntimeCredit, Step: o.MaxCalendarStep},
		IDLifetimeNs: o.IDLifetimeNs(), TestClock: o.TestClock,
		Raft: g.raft, FSM: m, Queue: g.queue, Confirms: g.confirms, AppendTime: g.logs.Times.Median,
		Agree: func() byte {
			g.format.Agree()
			return byte(g.format.Agreed.Load())
		},
		Status: g.status, HasCluster: own.Identity.HasCluster, Peers: own.Peers,
		Members: func() []limiter.Member { return *own.Peers.Members.Load() },
		Source:  o.Source, Life: own.Lifetime, Log: own.Log,
		Fatal: own.Fatal, Faults: o.Faults, Reach: own.Reach,
	})
}

func (g *group) newPipeline(m *fsm.FSM) *pipeline.Pipeline {
	own, o := g.own, &g.own.Options
	return pipeline.New(pipeline.Config{
		Heartbeat: o.Heartbeat, MaxAge: o.MaxDecisionAge, MaxMemory: o.Table.MaxMemoryBytes,
		DenyWhenFull: o.DenyWhenFull(), OnEntry: o.OnEntry,
		Raft: g.raft, FSM: m, Queue: g.queue, Leadership: g.leadership, Confirms: g.confirms, Reads: g.reads,
		Format: g.format, Agreed: &g.format.Agreed, Disputed: &g.divergence.UnderWay, Budget: own.Budget(),
		Peers: own.Peers, Life: own.Lifetime, Log: own.Log, Faults: o.Faults,
		Reach: own.Reach,
	})
}

func (g *group) newMembership(m *fsm.FSM) *membership.Membership {
	own, o := g.own, &g.own.Options
	return membership.New(membership.Config{
		Self: o.NodeID, RaftAddr: o.RaftAddr, JoinAddrs: o.Join, Expect: o.Expect, Groups: o.Groups,
		Reads: o.Format, KeepsPromises: o.Durability != identity.Memory, First: o.First,
		Raft: g.raft, FSM: m, Leadership: g.leadership, Format: g.format, ReadIndex: g.reads.ReadIndex,
		Identity: own.Identity, Peers: own.Peers, Dial: own.Dial, Life: own.Lifetime, Log: own.Log, Fatal: own.Fatal,
	})
}
