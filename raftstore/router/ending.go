package router

import (
	"errors"
	"os"
	"time"

	"github.com/weir-project/weir/raftstore"
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

// endGroups ends the groups that must end, until the node closes. When no group is left, it ends the process.
func (n *Node) endGroups() {
	for {
		select {
		case <-n.stop:
			return
		case e := <-n.endings:
			n.replace(e.group, n.standIn(e))
			n.closing.Go(func() { n.closeLater(e.group) })
			if err := noneLeft(n.all()); err != nil {
				n.fatal(err)
				continue
			}
			n.tell(e.group, e.why)
		}
	}
}

// tell logs the end of a group.
func (n *Node) tell(group int, why error) {
	n.options.Logger.Error("a group has ended on this node; the other groups serve", "group", group, "error", why,
		"restart", raftstore.RestartAdvice(why, false))
}

// closeLater closes a group when no call is in progress, and releases its memory.
func (n *Node) closeLater(group int) {
	select {
	case <-time.After(drain(n.options.MaxDecisionAge)):
	case <-n.stop:
	}
	if err := errors.Join(n.nodes[group].Close(), n.host.FreeLog()); err != nil {
		n.options.Logger.Warn("a group that has ended was not closed cleanly", "group", group, "error", err)
	}
	n.nodes[group] = nil
}

// fatal ends the process.
func (n *Node) fatal(err error) {
	if n.options.OnFatal != nil {
		n.options.OnFatal(err)
		return
	}
	alone := len(n.base().Topology().Nodes) <= 1
	n.options.Logger.Error("this node cannot go on", "error", err, "restart", raftstore.RestartAdvice(err, alone))
	os.Exit(1)
}

// noneLeft returns an error if every group has ended: the reason of the first group, joined with the first other
// reason.
func noneLeft(groups []Group) error {
	for _, g := range groups {
		if _, ok := g.(*ended); !ok {
			return nil
		}
	}
	first := groups[0].(*ended).why
	for _, g := range groups[1:] {
		if why := g.(*ended).why; !errors.Is(why, first) && why.Error() != first.Error() {
			return errors.Join(first, why)
		}
	}
	return first
}
