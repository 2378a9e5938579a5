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

// traceEntry tells of an entry where somebody wants to know.
func (p *pipeline) traceEntry(sent proposal, err error) {
	if p.options.OnEntry != nil {
		p.options.OnEntry(Entry{Ops: sent.batch.Ops, Begun: sent.batch.Born, Proposed: sent.at, Settled: time.Now(), Err: err})
	}
}
