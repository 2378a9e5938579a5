package pipeline

import (
	"time"

	"github.com/weir-project/weir/raftstore/internal/host"
)

// traceEntry passes an entry to Config.OnEntry.
func (p *Pipeline) traceEntry(sent Proposal, err error) {
	p.OnEntry(host.Entry{Ops: sent.Batch.Ops, Begun: sent.Batch.Born, Proposed: sent.at,
		Answered: time.Now(), Err: err})
}
