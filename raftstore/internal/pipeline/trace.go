package pipeline

import "time"
import "github.com/weir-project/weir/raftstore/internal/host"

// traceEntry passes an entry to Options.OnEntry, if it is set.
func (p *Pipeline) traceEntry(sent Proposal, err error) {
	if p.Options.OnEntry != nil {
		p.Options.OnEntry(host.Entry{Ops: sent.Batch.Ops, Begun: sent.Batch.Born, Proposed: sent.at,
			Settled: time.Now(),
			Err:     err})
	}
}
