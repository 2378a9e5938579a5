package router

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// leastDrain is the least pause of drain. Reads end within it.
const leastDrain = 5 * time.Second

// drain returns the pause between the last call to a group that ends and its close. A decision in progress ends within
// maxAge, which is Options.MaxDecisionAge.
func drain(maxAge time.Duration) time.Duration { return max(leastDrain, maxAge+time.Second) }

// ending is a group that must end on this node, and the reason.
type ending struct {
	group int
	why   error
}

// endSoon asks for the end of a group. It returns at once, because a goroutine of the group calls it.
func (n *Node) endSoon(group int, why error) {
	if !n.ending[group].Swap(true) {
		n.endings <- ending{group, why} // endings has room for every group once
	}
}

// endGroups ends the groups that must end, until the node closes. The last one ends the process instead.
func (n *Node) endGroups() {
	for {
		select {
		case <-n.stop:
			return
		case e := <-n.endings:
			last := n.lastKnown(e.group, e.why)
			moved := e.group > 0 && n.replicas > 0 && errors.Is(e.why, failure.ErrRemoved)
			err := n.replace(e.group, func(m *replica) {
				if m.live = nil; !moved {
					m.why, m.last = e.why, last
				}
			})
			if err != nil {
				n.fatal(err)
				continue
			}
			n.closing.Go(func() { n.closeLater(e.group, moved) })
			if moved {
				n.options.Logger.Info("a replica of a group has left this node", "group", e.group)
			} else {
				n.tell(e.group, e.why)
			}
		}
	}
}

// tell logs the end of a group.
func (n *Node) tell(group int, why error) {
	n.options.Logger.Error("a group has ended on this node; the other groups serve", "group", group, "error", why,
		"restart", failure.RestartAdvice(why, false))
}

// closeLater closes a group when no call is in progress, and releases its memory. The state of a replica that was moved
// is deleted.
func (n *Node) closeLater(group int, moved bool) {
	select {
	case <-time.After(drain(n.options.MaxDecisionAge)):
	case <-n.stop:
	}
	err := n.nodes[group].Load().Close()
	if moved {
		err = errors.Join(err, raftstore.DropState(n.options, group))
	}
	if err = errors.Join(err, n.freeLog()); err != nil {
		n.options.Logger.Warn("a group that has ended was not closed cleanly", "group", group, "error", err)
	}
	n.nodes[group].Store(nil)
	if moved {
		n.ending[group].Store(false)
	}
}

// freeLog removes the entries of groups that have ended or moved from the shared log. It does nothing while a replica
// is not open that may have promised a vote or an entry, because the log has them.
func (n *Node) freeLog() error {
	for i, m := range n.all() {
		if n.nodes[i].Load() != nil || m.why != nil {
			continue
		}
		if has, err := raftstore.ReplicaIn(n.options, i); err != nil || has.NodeID != "" && !has.Removed {
			return err
		}
	}
	return n.host.FreeLog()
}

// fatal ends the process.
func (n *Node) fatal(err error) {
	if n.options.OnFatal != nil {
		n.options.OnFatal(err)
		return
	}
	alone := len(n.base().Topology().Nodes) <= 1
	n.options.Logger.Error("this node cannot go on", "error", err, "restart", failure.RestartAdvice(err, alone))
	os.Exit(1)
}

// noneLeft returns an error if every group has ended or is away: the reason of the first group, joined with the first
// other reason.
func noneLeft(groups []replica) error {
	if slices.ContainsFunc(groups, func(m replica) bool { return m.live != nil }) {
		return nil
	}
	first := groups[0].why
	for _, m := range groups[1:] {
		if m.why != nil && !errors.Is(m.why, first) && m.why.Error() != first.Error() {
			return errors.Join(first, m.why)
		}
	}
	return first
}
