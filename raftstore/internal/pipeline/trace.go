package pipeline

import "time"
import "github.com/weir-project/weir/raftstore/internal/host"

// traceEntry tells of an entry where somebody wants to know.
func (p *Pipeline) traceEntry(sent Proposal, err error) {
	if p.Options.OnEntry != nil {
		p.Options.OnEntry(host.Entry{Ops: sent.Batch.Ops, Begun: sent.Batch.Born, Proposed: sent.at, Settled: time.Now(),
			Err: err})
	}
}
