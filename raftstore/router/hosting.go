package router

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/away"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// The first group places the groups of a new cluster with --replicas, and each node then founds or joins those that are
// placed on it. From then on the directory of a group says whether this node has a replica of it. A node opens a
// replica anew only when a move tells it to.

// maxJoin bounds the addresses at which a new replica looks for its group.
const maxJoin = 64

// keepPlaced opens the replicas that this node shall have, and learns about the groups that are away, until the node
// closes.
func (n *Node) keepPlaced() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	for placed := false; ; {
		select {
		case <-n.stop:
			return
		case <-tick.C:
		}
		n.learn()
		if !placed {
			if placed = n.openPlaced(); placed {
				if err := n.freeLog(); err != nil {
					n.options.Logger.Warn("the log of groups that have moved away is not freed yet", "error", err)
				}
			}
		}
		n.enter()
		n.backups.Expire()
		for _, m := range n.all() {
			if m.away != nil {
				m.away.Expire()
			}
		}
	}
}

// learn takes the reports of other hosts about the groups that are away.
func (n *Node) learn() {
	first := n.nodes[0].Load()
	if first == nil {
		return
	}
	for _, r := range first.Reports() {
		for _, led := range r.Leads {
			if led.Group > 0 && led.Group < len(n.all()) && n.all()[led.Group].away != nil {
				n.all()[led.Group].away.Learn(r.Addr, r.At, led)
				n.hearIfRemoved(led.Group)
			}
		}
	}
}

// hearIfRemoved lets a replica without a leader hear from the node that leads the group without it. All members that
// the replica knows may have moved away while its node was down, and only they would tell it that it was removed.
func (n *Node) hearIfRemoved(group int) {
	m, node := n.all()[group], n.nodes[group].Load()
	if node == nil {
		return
	}
	t := node.Topology()
	if addr, ok := m.away.LeaderWithout(t.Self); ok && t.Leader == "" {
		run := func(ask func()) bool { n.sending.Go(ask); return true }
		n.hearing[group].Go(run, func() { node.HearFrom(addr) })
	}
}

// leads returns the groups that this host leads, for its status.
func (n *Node) leads() (all []host.Led) {
	for i := range n.nodes {
		if node := n.nodes[i].Load(); node != nil && i > 0 {
			if led, ok := node.Led(); ok {
				all = append(all, led)
			}
		}
	}
	return all
}

// toldEvery is the pause between two log lines about replicas that do not open.
const toldEvery = 30 * time.Second

// openPlaced opens the replicas that are placed on this node, and those of a move that the last stop has interrupted.
// It reports whether all are open.
func (n *Node) openPlaced() (all bool) {
	first := n.nodes[0].Load()
	if first == nil || first.Placed() == nil {
		return false
	}
	all = true
	tell := time.Since(n.toldOpening) > toldEvery
	for i, ids := range first.Placed() {
		if i == 0 || n.nodes[i].Load() != nil {
			continue
		}
		err := errOpening
		if n.opening.TryLock() {
			err = n.openIfPlaced(first, i, ids)
			n.opening.Unlock()
		}
		if err != nil {
			if all = false; tell {
				n.options.Logger.Info("a replica of a group is not open yet", "group", i, "because", err)
				n.toldOpening = time.Now()
			}
		}
	}
	return all
}

// errOpening is why a replica is not opened yet.
var errOpening = fmt.Errorf("%w: another replica is being opened", limiter.ErrTryAgain)

// openIfPlaced opens a replica of a group that was founded on the nodes with the given ids, if this node shall have it.
// The caller holds opening.
func (n *Node) openIfPlaced(first *raftstore.Node, group int, ids []string) error {
	self := first.Topology().Self
	has, err := raftstore.ReplicaIn(n.options, group)
	switch founds := slices.Contains(ids, self) && (has.NodeID == "" || has.NodeID == self); {
	case err != nil:
		return err
	case has.Removed, has.NodeID == "" && !founds:
		return nil
	case founds:
		join := addressesOf(first.Topology(), ids)
		if len(join) < len(ids) {
			return errors.New("the address of a node is not known")
		}
		return n.openReplica(group, self, join)
	}
	return n.joinReplica(first, group, has.NodeID)
}

// addressesOf returns the inter-node addresses of nodes.
func addressesOf(t *limiter.Topology, ids []string) (addrs []string) {
	for _, id := range ids {
		if m := t.Member(id); m != nil {
			addrs = append(addrs, m.RaftAddr)
		}
	}
	return addrs
}

// openReplica opens a replica of a group, which founds the group or joins it at the addresses. It serves once it has
// joined. The caller holds opening.
func (n *Node) openReplica(group int, id string, join []string) error {
	select {
	case <-n.stop:
		return net.ErrClosed // nothing would close the replica
	default:
	}
	if n.nodes[group].Load() != nil {
		return nil
	}
	o := n.ofGroup(group)
	o.Join, o.Expect, o.Incarnation = join, len(join), id
	node, err := raftstore.Open(o)
	if err != nil {
		return err
	}
	n.nodes[group].Store(node)
	return nil
}

// enter lets the replicas serve that have joined their groups.
func (n *Node) enter() {
	for i, m := range n.all() {
		node := n.nodes[i].Load()
		busy := m.live != nil || n.ending[i].Load() || n.rests(i)
		if busy || node == nil || !node.Joined() || node.Topology().Leader == "" {
			continue
		}
		_ = n.replace(i, func(m *replica) { // one more is left
			if !n.ending[i].Load() && !n.rests(i) {
				m.live = node
			}
		})
	}
}

// restFor is how long a replica that is about to be removed serves no clients of its node. If it is not removed by
// then, it serves again.
const restFor = 10 * time.Second

// rest sends the operations of this node's clients to other replicas of a group, and returns when this one has answered
// those that it has. Otherwise its removal would cut their answers off.
func (n *Node) rest(group int, node *raftstore.Node) error {
	if n.all()[group].away == nil {
		return fmt.Errorf("group %d does not move", group)
	}
	now := time.Now()
	n.resting[group].Store(&now)
	if err := n.replace(group, func(m *replica) { m.live = nil }); err != nil {
		return err
	}
	node.AwaitQuiet()
	return nil
}

// rests reports whether the replica of a group is about to be removed.
func (n *Node) rests(group int) bool {
	at := n.resting[group].Load()
	return at != nil && time.Since(*at) < restFor
}

// replace changes what this node has of a group. It returns the error of noneLeft, and changes nothing, if no group
// would be left.
func (n *Node) replace(group int, change func(*replica)) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	groups := slices.Clone(n.all())
	change(&groups[group])
	if err := noneLeft(groups); err != nil {
		return err
	}
	n.groups.Store(&groups)
	return nil
}

// newAway returns a group that is away. Until the node learns of the leader, it tries the nodes at the given addresses.
func (n *Node) newAway(group int, founders func() []string) *away.Group {
	return away.New(away.Config{
		Group: group, Groups: n.options.Groups, MaxAge: n.options.MaxDecisionAge, Network: n.clients,
		MaxValueBytes: n.options.MaxValueBytes, Window: n.host.Window, Life: n.life, Tasks: &n.sending,
		Founders: founders,
	})
}

// founders returns the addresses of the nodes on which a group was founded.
func (n *Node) founders(group int) []string {
	first := n.nodes[0].Load()
	if first == nil || group >= len(first.Placed()) {
		return nil
	}
	return addressesOf(first.Topology(), first.Placed()[group])
}

// serveHosts answers the calls of another host about groups that it lacks, until its connection ends.
func (n *Node) serveHosts(conn net.Conn, from peer.Identity) {
	peer.ServeCalls(conn, from, n.answerCall)
}

// answerCall answers a call about a group. calls.NotLeader tells that this node has no replica of it.
func (n *Node) answerCall(from peer.Identity, method byte, payload []byte) (byte, []byte) {
	group, what, body, ok := away.ReadHead(payload)
	if method != calls.Group || !ok {
		return calls.Refused, []byte("this version of weir does not know this call")
	}
	if group >= len(n.all()) {
		return calls.Refused, []byte(fmt.Sprintf("there is no group %d", group))
	}
	switch what {
	case calls.Host:
		id, err := n.hostReplica(group)
		return calls.Reply([]byte(id), err)
	case calls.Backup:
		return n.backups.Answer(body)
	}
	node := n.nodes[group].Load()
	if n.all()[group].live == nil || node == nil {
		return calls.NotLeader, nil
	}
	switch what {
	case calls.Rest:
		return calls.Reply(nil, n.rest(group, node))
	case calls.Read:
		return away.Answer(group, node, &n.backups, body)
	case calls.Follow:
		return calls.Reply(nil, n.followTo(node, body))
	}
	return node.AnswerGuest(from, what, body)
}

// hostReplica opens a new replica of a group, unless this node has one, and returns its id in the group. The replica
// waits until the group takes it in.
func (n *Node) hostReplica(group int) (id string, err error) {
	first := n.nodes[0].Load()
	if first == nil || n.options.Replicas == 0 || group == 0 {
		return "", fmt.Errorf("group %d does not move", group)
	}
	if !n.opening.TryLock() {
		return "", errOpening
	}
	defer n.opening.Unlock()
	n.resting[group].Store(nil)
	if n.nodes[group].Load() == nil {
		id := identity.NewIncarnation(n.options.NodeID)
		has, err := raftstore.ReplicaIn(n.options, group)
		if err == nil && has.Removed {
			err = raftstore.Renew(n.options, group, id)
		}
		if err == nil {
			err = n.joinReplica(first, group, id)
		}
		if err != nil {
			return "", err
		}
	}
	node := n.nodes[group].Load()
	if node == nil || n.ending[group].Load() || node.Joined() {
		return "", limiter.ErrTryAgain // until the replica that the group has removed is closed
	}
	return node.Topology().Self, nil
}

// followTo brings a group of this node to a version of the shared items.
func (n *Node) followTo(g *raftstore.Node, body []byte) error {
	if len(body) != 8 {
		return errors.New("a version of the shared items has 8 bytes")
	}
	version := binary.LittleEndian.Uint64(body)
	if g.SharedVersion() >= version {
		return nil
	}
	want, err := n.sharedAt(version)
	if err != nil {
		return err
	}
	return n.bring(g, want)
}

// joinReplica opens a replica of a group that exists, which joins the group at the addresses of other nodes. A node
// that has just started may know none of them yet. The caller holds opening.
func (n *Node) joinReplica(first *raftstore.Node, group int, id string) error {
	others := slices.DeleteFunc(first.Addrs(), func(addr string) bool { return addr == n.options.RaftAddr })
	if len(others) == 0 {
		return fmt.Errorf("%w: no other node is known yet", limiter.ErrTryAgain)
	}
	return n.openReplica(group, id, others[:min(len(others), maxJoin)])
}
