package raftstore

import (
	"cmp"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/host"
)

// founding returns the numbers of the node's cluster, or of the cluster that it would found.
func (n *Node) founding() Founding {
	if groups, replicas, ok := n.own.Identity.Founding(); ok {
		return Founding{groups, replicas}
	}
	return Founding{n.own.Options.Groups, n.own.Options.Replicas}
}

// Placed returns the nodes that found each group, by their ids in this group, which is the first one. It is nil while
// this node does not know them.
func (n *Node) Placed() [][]string {
	s, _ := n.fsm.LastArrival()
	return s.Founding.Placed
}

// Members returns the ids in the newest committed configuration that this node knows, or nil.
func (n *Node) Members() []string { return consensus.IDs(n.fsm.Members()) }

// Addrs returns the inter-node addresses of these members.
func (n *Node) Addrs() (addrs []string) {
	for _, s := range n.fsm.Members() {
		addrs = append(addrs, string(s.Address))
	}
	return addrs
}

// HearFrom asks the node at an address, which has the group, for its status. This node may learn that it was removed.
func (n *Node) HearFrom(addr string) {
	if s, err := n.membership.AskOnce(addr); err == nil {
		n.own.Peers.HearStranger(s)
	}
}

// Belongs asks the leader whether the cluster has a node; see host.FirstGroup.
func (n *Node) Belongs(id string) error { return n.membership.Belongs(id) }

// Joined reports whether the node has been in a committed configuration of its cluster.
func (n *Node) Joined() bool { return n.own.Identity.HasJoined() }

// Storage describes the log's disk, which decisions wait for.
func (n *Node) Storage() (limiter.Storage, bool) {
	s := StorageOf(&n.own.Options)
	s.Writes = n.logs.Writes.Snapshot()
	return s, true
}

// StorageOf describes the disk of a data directory. A group that has ended on a node still has its files there, and
// the directory of the first group has the shared log.
func StorageOf(o *Options) limiter.Storage {
	fs := cmp.Or(o.FS, vfs.Default)
	disk, _ := fs.GetDiskUsage(o.DataDir) // a file system without these figures leaves zeros
	return limiter.Storage{
		UsedBytes: uint64(host.UsedBytes(fs, o.DataDir)), FreeBytes: disk.AvailBytes, SizeBytes: disk.TotalBytes,
	}
}

// Consensus returns this node's counters since its start.
func (n *Node) Consensus() limiter.Consensus {
	applied, leadership := n.fsm, n.leadership
	return limiter.Consensus{
		LeaderChanges: n.leaderChanges.Load(), Clamps: applied.Clamps.Load(), Late: n.pipeline.Late.Load(),
		ColdStarts: leadership.ColdStarts.Load(), Uncredited: leadership.Uncredited.Load(),
		DowntimeCredit: time.Duration(leadership.DowntimeCredit.Load()),
		Entries:        n.pipeline.Entries.Load(), EntryOps: n.pipeline.EntryOps.Load(),
		LogBytes:  applied.LogBytes.Load(),
		Snapshots: n.snapshots.Took.Snapshot(), Standstill: time.Duration(applied.Standstill.Load()),
		Evicted: n.own.Port.Evicted(),
	}
}

// leads returns the groups that the host leads, in the status of the first group.
func (n *Node) leads() []host.Led {
	if n.own.Options.Leads == nil {
		return nil
	}
	return n.own.Options.Leads()
}

// Led describes the group, if this node leads it and serves.
func (n *Node) Led() (led host.Led, ok bool) {
	if n.leadership.Current.Load() == nil {
		return led, false
	}
	applied, commit := n.Progress()
	led = host.Led{
		Group: n.own.Options.Group, Leader: n.own.Options.NodeID, Term: n.raft.CurrentTerm(),
		Applied: applied, Commit: commit,
	}
	for _, m := range *n.own.Peers.Members.Load() {
		led.Members = append(led.Members, host.LedMember{
			ID: m.ID, Addr: m.RaftAddr, Voter: m.Voter, Up: m.Up, Lag: m.LagEntries,
		})
	}
	return led, true
}

// Reported is what a host has reported about the groups that it leads.
type Reported struct {
	Addr  string // of the host, as Options.RaftAddr
	At    time.Time
	Leads []host.Led
}

// Reports returns what the other hosts have reported last, from the exchange of status of this group, which is the
// first.
func (n *Node) Reports() (all []Reported) {
	for _, s := range n.raft.Servers() {
		if last, ok := n.own.Peers.Last(string(s.ID)); ok {
			all = append(all, Reported{last.RaftAddr, last.At, last.Leads})
		}
	}
	return all
}
