package pipeline

import (
	"slices"

	"github.com/weir-project/weir/engine"
)

// TellEnds begins to write the events of holds that have ended by themselves, if this node leads and there are any. The
// log decides when they are written, because each node notices an end at another moment. It does not block.
func (p *Pipeline) TellEnds() {
	if len(p.ends(1)) > 0 {
		p.telling.Go(p.Life.Go, p.tellEnds)
	}
}

// ends returns operations for about most ends that the leader must tell.
func (p *Pipeline) ends(most int) []engine.Op {
	if p.Leadership.Current.Load() == nil {
		return nil
	}
	return p.FSM.Table.Load().Ended(most)
}

// tellEnds puts one batch after the other into the log. As calls of other nodes do, a batch fails when this node no
// longer leads: the next leader finds the ends itself. After an error, or a batch that did nothing, the next check goes
// on.
func (p *Pipeline) tellEnds() {
	for ops := p.ends(engine.MaxEnds); len(ops) > 0; ops = p.ends(engine.MaxEnds) {
		out := make([]engine.Decision, len(ops))
		if p.submit(ops, out, false, true) != nil ||
			!slices.ContainsFunc(out, func(d engine.Decision) bool { return d.Allowed > 0 }) {
			return
		}
	}
}
