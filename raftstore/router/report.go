package router

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// Storage describes the disk of all groups. They share one file system. The directory of a group that has ended stays.
func (n *Node) Storage() (sum limiter.Storage, ok bool) {
	for i, m := range n.all() {
		if m.live == nil && m.why == nil {
			continue // it is away
		}
		o := n.options
		o.DataDir = raftstore.GroupDir(o.DataDir, i)
		var s limiter.Storage
		if m.live != nil {
			s, _ = m.live.Storage()
		} else {
			s = raftstore.StorageOf(&o)
		}
		sum.Writes.Add(&s.Writes)
		sum.UsedBytes += s.UsedBytes
		sum.FreeBytes, sum.SizeBytes = s.FreeBytes, s.SizeBytes
	}
	return sum, true
}

// Stats returns the sums of the statistics of all groups. They may use the memory of a group that has ended.
func (n *Node) Stats() engine.Stats {
	sum := n.Router.Stats()
	sum.MaxMemoryBytes = n.options.Table.MaxMemoryBytes
	return sum
}

// Consensus returns the sums of the counters of all groups. Standstill and DowntimeCredit are the longest of any
// group, and Evicted counts for the whole host.
func (r *Router) Consensus() (sum limiter.Consensus) {
	for _, g := range r.live() {
		c := g.Consensus()
		sum.LeaderChanges += c.LeaderChanges
		sum.Clamps += c.Clamps
		sum.ColdStarts += c.ColdStarts
		sum.Uncredited += c.Uncredited
		sum.DowntimeCredit = max(sum.DowntimeCredit, c.DowntimeCredit)
		sum.Late += c.Late
		sum.Entries += c.Entries
		sum.EntryOps += c.EntryOps
		sum.LogBytes += c.LogBytes
		sum.Snapshots.Add(&c.Snapshots)
		sum.Standstill = max(sum.Standstill, c.Standstill)
		sum.Evicted = c.Evicted // of the port, which all groups share
	}
	return sum
}
