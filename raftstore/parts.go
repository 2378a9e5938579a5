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
func (n *Node) makeParts() {
	own, m := n.own, n.newMachine()
	o := &own.Options
	n.fsm = m
	n.confirms = &quorum.Rounds{
		Self: o.NodeID, Term: n.raft.Term, Voters: n.raft.Voters, Ask: own.Peers.Wake, Stop: own.Stop,
	}
	n.format = format.New(format.Config{
		Self: o.NodeID, Reads: o.Format, Raft: n.raft, Applied: m, Peers: own.Peers, Log: own.Log,
	})
	n.divergence = divergence.New(divergence.Config{
		Self: o.NodeID, Heartbeat: o.Heartbeat, Raft: n.raft, History: m, Peers: own.Peers, Life: own.Lifetime,
		Log: own.Log, Fatal: own.Fatal, Forbid: own.Identity.Forbid,
	})
	n.leadership = n.newLeadership(m)
	n.reads = readindex.New(readindex.Config{
		Self: o.NodeID, Heartbeat: o.Heartbeat, MaxAge: o.MaxDecisionAge, Raft: n.raft, FSM: m,
		Leadership: n.leadership, Transport: n.transport, StuckFor: n.logs.StuckFor, Confirms: n.confirms,
		Disputed: &n.divergence.UnderWay, Peers: own.Peers, Life: own.Lifetime, Log: own.Log, Faults: o.Faults,
	})
	n.pipeline = n.newPipeline(m)
	n.membership = n.newMembership(m)
	n.snapshots = snapshots.New(snapshots.Config{
		Self: o.NodeID, SnapshotBytes: o.SnapshotBytes, Wanted: &n.wanted, Raft: n.raft, Trailing: n.raft, FSM: m,
		Images: n.images, Permit: &o.Host.Snapshots, ClockFrom: n.leadership.ClockFrom, Life: own.Lifetime,
		Log: own.Log,
	})
	n.watchdog = watchdog.New(watchdog.Config{
		Self: o.NodeID, Heartbeat: o.Heartbeat, Raft: n.raft, Committed: m.Committed.Load, Writes: n.logs,
		Handover: &n.leadership.Handover, Identity: own.Identity, Peers: own.Peers, Closing: own.Closing,
		Fatal: own.Fatal,
	})
	m.Differs, m.Reloaded, m.Grown = n.divergence.Differs, n.reads.Freshness.Reset, n.pipeline.Memory.Grown
}

func (n *Node) newLeadership(m *fsm.FSM) *leadership.Leadership {
	own, o := n.own, &n.own.Options
	return leadership.New(leadership.Config{
		Self: o.NodeID, Group: o.Group, Groups: o.Groups, Heartbeat: o.Heartbeat, StalledAfter: o.StalledAfter,
		Downtime:     persistence.Downtime{Credit: o.MaxDowntimeCredit, Step: o.MaxCalendarStep},
		IDLifetimeNs: o.IDLifetimeNs(), EventsBytes: o.EventsBytes(), TestClock: o.TestClock,
		Replicas: o.Replicas, Place: n.placer(),
		Raft: n.raft, FSM: m, Queue: n.queue, Confirms: n.confirms, AppendTime: n.logs.Times.Median,
		Agree: func() byte {
			n.format.Agree()
			return byte(n.format.Agreed.Load())
		},
		Status: n.status, HasCluster: own.Identity.HasCluster, Peers: own.Peers,
		Members: func() []limiter.Member { return *own.Peers.Members.Load() },
		Source:  o.Source, Life: own.Lifetime, Log: own.Log,
		Fatal: own.Fatal, Faults: o.Faults, Reach: own.Reach,
	})
}

func (n *Node) newPipeline(m *fsm.FSM) *pipeline.Pipeline {
	own, o := n.own, &n.own.Options
	return pipeline.New(pipeline.Config{
		Heartbeat: o.Heartbeat, MaxAge: o.MaxDecisionAge, MaxMemory: o.Table.MaxMemoryBytes,
		DenyWhenFull: o.DenyWhenFull(), OnEntry: o.OnEntry,
		Raft: n.raft, FSM: m, Queue: n.queue, Leadership: n.leadership, Confirms: n.confirms, Reads: n.reads,
		Format: n.format, Agreed: &n.format.Agreed, Disputed: &n.divergence.UnderWay, Budget: own.Budget(),
		Peers: own.Peers, Life: own.Lifetime, Log: own.Log, Faults: o.Faults,
		Reach: own.Reach,
	})
}

func (n *Node) newMembership(m *fsm.FSM) *membership.Membership {
	own, o := n.own, &n.own.Options
	return membership.New(membership.Config{
		Self: o.NodeID, RaftAddr: o.RaftAddr, JoinAddrs: o.Join, Expect: o.Expect, Groups: o.Groups,
		Replicas: o.Replicas, Zone: o.Zone,
		Reads: o.Format, KeepsPromises: o.Durability != identity.Memory, First: o.First,
		Raft: n.raft, FSM: m, Leadership: n.leadership, Format: n.format, ReadIndex: n.reads.ReadIndex,
		Identity: own.Identity, Peers: own.Peers, Dial: own.Dial, Life: own.Lifetime, Log: own.Log, Fatal: own.Fatal,
	})
}

// placer returns the function that places the groups of a new cluster, on the first of several groups. It returns nil
// while this node does not know the zone of a member.
func (n *Node) placer() func() [][]string {
	own, o := n.own, &n.own.Options
	if o.Group > 0 {
		return nil
	}
	return func() [][]string {
		members, zones := n.raft.Servers(), map[string]string{}
		for _, s := range members {
			last, heard := own.Peers.Last(string(s.ID))
			if !heard && string(s.ID) != o.NodeID {
				return nil
			}
			zones[string(s.ID)] = last.Zone
		}
		zones[o.NodeID] = o.Zone
		return membership.Place(members, zones, o.Groups, o.Replicas)
	}
}
