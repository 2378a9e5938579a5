package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/detector"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/peer"
)

// The kinds of messages between hosts.
const (
	pingKind byte = 'p' // the body is the inter-node address of the sender
	askKind  byte = 'q' // a question about a silent host
)

// watch starts the failure detector of this host.
func (n *Node) watch() error {
	n.detector = detector.New(detector.Config{
		Self: n.options.RaftAddr, Limit: cmp.Or(n.options.Heartbeat, host.DefaultHeartbeat), Members: n.otherHosts,
		Network: (*hosts)(n), Groups: (*replicas)(n), Log: n.options.Logger, Faults: n.options.Faults,
	})
	var err error
	n.hosts, err = n.host.Hub.Open(peer.HostGroup, peer.PortConfig{Self: n.identity, Logger: n.options.Logger},
		n.serveHosts)
	if err != nil {
		return err
	}
	n.hosts.AnswerShared(n.answerHost)
	ctx, end := context.WithCancel(context.Background())
	n.unwatch = end
	n.tasks.Go(func() { n.detector.Run(ctx) })
	return nil
}

// identity returns the identity of this node in the first group.
func (n *Node) identity() peer.Identity {
	t := n.base().Topology()
	return peer.Identity{NodeID: t.Self, ClusterID: t.ClusterID}
}

// otherHosts returns the other nodes of the first group.
func (n *Node) otherHosts() (others []detector.Host) {
	t := n.base().Topology()
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.ID != t.Self {
			others = append(others, detector.Host{Addr: m.RaftAddr, ID: m.ID})
		}
	}
	return others
}

// answerHost answers a message of another host.
func (n *Node) answerHost(kind byte, body []byte, _ <-chan struct{}) ([]byte, error) {
	switch kind {
	case pingKind:
		n.detector.Hear(string(body))
		return nil, nil
	case askKind:
		return n.detector.Answer(body)
	}
	return nil, fmt.Errorf("this version of weir does not know messages of hosts of kind %q", kind)
}

// Consensus returns the sums of the counters of all groups, and the counters of the host.
func (n *Node) Consensus() limiter.Consensus {
	c := n.Router.Consensus()
	c.SilentNodes, c.SilentHere = n.detector.Confirmed.Load(), n.detector.Unconfirmed.Load()
	return c
}

// hosts is the network of the failure detector: the connections that all groups share.
type hosts Node

// Ping implements detector.Network. A host that refuses the message lives, and has no detector.
func (n *hosts) Ping(ctx context.Context, to detector.Host) error {
	_, err := n.hosts.AskShared(ctx, peer.Message{
		Addr: to.Addr, To: to.ID, Kind: pingKind, Patient: true, Body: []byte(n.options.RaftAddr),
	})
	if errors.Is(err, peer.ErrNotShared) || errors.Is(err, peer.ErrRefused) {
		return fmt.Errorf("%w: %w", detector.ErrNoDetector, err)
	}
	return err
}

// Ask implements detector.Network.
func (n *hosts) Ask(ctx context.Context, to detector.Host, question []byte) ([]byte, error) {
	return n.hosts.AskShared(ctx, peer.Message{Addr: to.Addr, To: to.ID, Kind: askKind, Body: question})
}

// replicas are the groups of this host, as the failure detector sees them.
type replicas Node

// elector is a group as the failure detector uses it.
type elector interface {
	Group
	LastIndex() uint64
	Elect(ctx context.Context, old string)
}

// LedBy implements detector.Groups.
func (n *replicas) LedBy(addr string) (groups []int) {
	for i, g := range n.live() {
		if t := g.Topology(); addrOf(t, t.Leader) == addr {
			groups = append(groups, i)
		}
	}
	return groups
}

// View implements detector.Groups.
func (n *replicas) View(group int) (detector.View, bool) {
	if group < 0 || group >= len(n.all()) { // another host asks
		return detector.View{}, false
	}
	r, ok := n.Group(group).(elector)
	if !ok {
		return detector.View{}, false
	}
	t := r.Topology()
	v := detector.View{Leader: addrOf(t, t.Leader), Term: t.Term, Last: r.LastIndex()}
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.Voter {
			v.Voters = append(v.Voters, m.RaftAddr)
		}
	}
	return v, true
}

// Elect implements detector.Groups.
func (n *replicas) Elect(ctx context.Context, group int, old string) {
	if r, ok := n.Group(group).(elector); ok {
		r.Elect(ctx, old)
	}
}

// addrOf returns the inter-node address of a node, or "".
func addrOf(t *limiter.Topology, id string) string {
	if m := t.Member(id); m != nil {
		return m.RaftAddr
	}
	return ""
}
