package router

import (
	"github.com/weir-project/weir/limiter"
)

// Storage describes the disk of all groups. They share one file system.
func (r *Router) Storage() (sum limiter.Storage, ok bool) {
	for i, g := range r.all() {
		s, has := g.Storage()
		if !has {
			return limiter.Storage{}, false
		}
		if i == 0 {
			sum = s
			continue
		}
		sum.Writes.Add(&s.Writes)
		sum.UsedBytes += s.UsedBytes
	}
	return sum, true
}

// Consensus returns the sums of the counters of all groups. Standstill and DowntimeCredit are the longest of any
// group, and Evicted counts for the whole host.
func (r *Router) Consensus() (sum limiter.Consensus) {
	for _, g := range r.all() {
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
