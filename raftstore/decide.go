package raftstore

import (
	"errors"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// Decide carries out a pipeline; see engine.Table.Decide. On a follower the leader
// does. If all operations are Dry, this node answers them from its own state: they are
// linearizable after a ReadIndex, else as old as StaleFor says. An error is for all
// operations: none of the answers may be used.
func (n *Node) Decide(ops []engine.Op, out []engine.Decision) error {
	return n.decide(ops, out, false)
}

// decide is Decide for a client of this node, or of another one.
func (n *Node) decide(ops []engine.Op, out []engine.Decision, foreign bool) error {
	if !slices.ContainsFunc(ops, func(op engine.Op) bool { return !op.Dry }) {
		n.machine.table.Load().Explain(n.lookStamp(), ops, out)
		return nil
	}
	start := time.Now()
	if !n.denials.likely() && !n.short() {
		return n.timely(start, n.submit(ops, out, false, foreign))
	}
	return n.timely(start, n.decideOrDeny(ops, out, foreign))
}

// DecideAtomic carries out ops as one step; see engine.Table.DecideAtomic.
func (n *Node) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	return n.decideAtomic(ops, out, false)
}

func (n *Node) decideAtomic(ops []engine.Op, out []engine.Decision, foreign bool) error {
	start := time.Now()
	if r := n.reign.Load(); r != nil && n.short() && n.refuseAll(ops, out) {
		return n.timely(start, n.stillLeads(r))
	}
	return n.timely(start, n.submit(ops, out, true, foreign))
}

// timely turns an answer that took too long into ErrUnknown: an admission that is
// handed out late is a burst on top of what was admitted since. It does the same while
// a divergence check of this node is under way.
func (n *Node) timely(start time.Time, err error) error {
	switch {
	case err != nil:
		return err
	case time.Since(start) > n.maxAge:
		n.counters.late.Add(1)
		guardLateAnswer.Hit()
		return ErrUnknown
	case n.divergence.underWay.Load():
		guardDisputedAnswer.Hit()
		return ErrUnknown // the operation is counted, but this node's state may be wrong
	}
	return nil
}

// place says where the answers of some operations will be.
type place struct {
	b        *batch
	from     int // in the batch
	low, end int // in the call
}

// submit puts operations into the log and waits for their answers. A call that does
// not fit an entry goes in parts, unless it is atomic; on a follower each waits for
// the one before, because what is on its way to the leader has no order.
func (n *Node) submit(ops []engine.Op, out []engine.Decision, atomic, foreign bool) error {
	if r := n.reign.Load(); r != nil && outdated(ops, r.clock.Now()) {
		return ErrTryAgain
	}
	if err := n.checkReadable(ops); err != nil {
		return err
	}
	var few [4]place
	places, outcomes := few[:0], outcome{}
	for low := 0; low < len(ops); {
		p := place{low: low, end: len(ops)}
		if !atomic {
			p.end = low + fitting(ops[low:])
		}
		var err error
		if p.b, p.from, err = n.queue.add(ops[low:p.end], atomic, foreign); err != nil {
			outcomes.add(err)
			break
		}
		if places, low = append(places, p), p.end; low < len(ops) && n.reign.Load() == nil {
			if <-p.b.done; p.b.err != nil {
				break
			}
		}
	}
	for _, p := range places {
		<-p.b.done
		if outcomes.add(p.b.err); p.b.err == nil {
			copy(out[p.low:p.end], p.b.out[p.from:])
		}
	}
	if outcomes.err() != nil {
		return outcomes.err()
	}
	n.denials.learn(ops, out)
	return nil
}

// outdated reports whether an operation carries calendar windows that have both
// passed: the node that took it is behind. To begin such a window would be to begin a
// new one for every request.
func outdated(ops []engine.Op, now engine.Stamp) bool {
	for i := range ops {
		if c := ops[i].Calendar; c != nil && c.NextEndNs <= now.NowNs+now.WallOffsetNs {
			return true
		}
	}
	return false
}

// fitting is how many leading operations fit one entry: at least one.
func fitting(ops []engine.Op) int {
	bytes := 0
	for i := range ops {
		if bytes += wire.Estimate(&ops[i]); i > 0 && (bytes > maxEntryBytes || i >= maxEntryOps) {
			return i
		}
	}
	return len(ops)
}

// outcome is what became of a call in several parts.
type outcome struct {
	ok    bool
	first error
	mixed bool
}

func (o *outcome) add(err error) {
	switch {
	case err == nil:
		o.ok = true
	case o.first == nil:
		o.first = err
	case !errors.Is(err, o.first):
		o.mixed = true
	}
}

// err is nil when every part was carried out, and says that nothing was counted
// only if that is so of every part.
func (o *outcome) err() error {
	if o.first != nil && (o.ok || o.mixed) {
		return ErrUnknown
	}
	return o.first
}

// Clear forgets everything, on all nodes.
func (n *Node) Clear() error {
	b, err := n.queue.special(wire.Clear)
	if err != nil {
		return err
	}
	<-b.done
	return b.err
}
