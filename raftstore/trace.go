package raftstore

import "time"

// Entry is how a batch of operations went through the log of the node that led.
type Entry struct {
	Ops int
	// From Begun to Proposed it gathered operations, and waited for those before it; when
	// it was Settled a majority had it, it was applied and its callers were told.
	Begun, Proposed, Settled time.Time
	Err                      error
}

// told tells of an entry where somebody wants to know.
func (n *Node) told(p proposal, err error) {
	if n.options.OnEntry != nil {
		n.options.OnEntry(Entry{Ops: p.batch.ops, Begun: p.batch.born, Proposed: p.at, Settled: time.Now(), Err: err})
	}
}
