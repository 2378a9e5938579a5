package info

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// Mode returns how the server runs, in the words of INFO and HELLO.
func Mode(s *service.Service) string {
	if s.Replica != nil {
		return "cluster"
	}
	return "standalone"
}

// Role returns the role of this node in the words of HELLO.
func Role(s *service.Service) string {
	if s.Leads() {
		return "master"
	}
	return "replica"
}

// NodeID returns the id by which clients know a node: they expect 40 hexadecimal digits. It is not secret.
func NodeID(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// ClusterState returns the reply to CLUSTER INFO. A group without a leader makes the state fail, as a slot without a
// primary does in Redis.
func ClusterState(replica limiter.Replica) string {
	t, slots, served, size, known, epoch := &limiter.Topology{}, 0, 0, 0, 1, uint64(0)
	if replica != nil {
		t, slots = replica.Topology(), hashslot.Count
		size, known = max(1, len(primaries(Owners(t)))), len(t.Nodes)
		for _, g := range t.Groups {
			if epoch = max(epoch, g.Term); g.Leader != "" {
				served += g.Slots.Len()
			}
		}
	}
	state := "ok"
	if replica != nil && served < slots {
		state = "fail"
	}
	var w writer
	w.flag("cluster_enabled", replica != nil)
	w.field("cluster_state", state)
	w.field("cluster_slots_assigned", slots)
	w.field("cluster_slots_ok", served)
	w.field("cluster_slots_pfail", 0)
	w.field("cluster_slots_fail", slots-served)
	w.field("cluster_known_nodes", known)
	w.field("cluster_size", size)
	w.field("cluster_current_epoch", epoch)
	w.field("cluster_my_epoch", epochOf(t, t.Member(t.Self)))
	return w.String()
}

// Owner is a range of slots and the node that cluster clients see as its primary.
type Owner struct {
	Slots   hashslot.Range
	Primary *limiter.Member
}

// Owners returns the owners of all slots in the order of the slots. Ranges that follow each other and have the same
// primary are one. There are no owners while this node knows no leader of any group.
func Owners(t *limiter.Topology) (all []Owner) {
	groups := t.Groups
	if !slices.ContainsFunc(groups, func(g limiter.Group) bool { return t.PrimaryOf(g) != nil }) {
		return nil
	}
	for _, g := range groups {
		p := primaryOf(t, g)
		if n := len(all); n > 0 && all[n-1].Primary == p && all[n-1].Slots.Last+1 == g.Slots.First {
			all[n-1].Slots.Last = g.Slots.Last
		} else if p != nil {
			all = append(all, Owner{g.Slots, p})
		}
	}
	return all
}

// primaryOf returns the node that cluster clients see as the primary of a group's slots. It may be nil. If the primary
// or its address is unknown, primaryOf returns this node, which executes or forwards commands. Some clients fail if
// the map has a gap.
func primaryOf(t *limiter.Topology, g limiter.Group) *limiter.Member {
	p, self := t.PrimaryOf(g), t.Member(t.Self)
	if p == nil || !p.HasAddress() && self.HasAddress() {
		return self
	}
	return p
}

// primaries returns the nodes that own slots, in the order of their first slots.
func primaries(owners []Owner) (all []*limiter.Member) {
	for _, o := range owners {
		if !slices.Contains(all, o.Primary) {
			all = append(all, o.Primary)
		}
	}
	return all
}

// Shard is a node that owns slots, with all of its ranges.
type Shard struct {
	Primary *limiter.Member
	Slots   []hashslot.Range
}

// Shards returns the nodes that own slots, in the order of their first slots.
func Shards(t *limiter.Topology) (all []Shard) {
	for _, o := range Owners(t) {
		i := slices.IndexFunc(all, func(s Shard) bool { return s.Primary == o.Primary })
		if i < 0 {
			i, all = len(all), append(all, Shard{Primary: o.Primary})
		}
		all[i].Slots = append(all[i].Slots, o.Slots)
	}
	return all
}

// upstream returns the primary that a node which owns no slots replicates, as cluster clients see it. In fact it
// replicates the slots of all primaries. It returns nil for a node that owns slots, and while no primary is known.
func upstream(owners []Owner, m *limiter.Member) *limiter.Member {
	if len(owners) == 0 || slices.Contains(primaries(owners), m) {
		return nil
	}
	return owners[0].Primary
}

// Upstream returns the primary of this node as CLUSTER NODES shows it. up reports whether that primary leads a group
// now. If not, it is the last known leader.
func Upstream(t *limiter.Topology) (p *limiter.Member, up bool) {
	p = upstream(Owners(t), t.Member(t.Self))
	return p, p != nil && slices.ContainsFunc(t.Groups, func(g limiter.Group) bool { return g.Leader == p.ID })
}

// epochOf returns the greatest term of the groups whose slots a node owns. A node that owns none has the epoch of its
// primary.
func epochOf(t *limiter.Topology, m *limiter.Member) (epoch uint64) {
	if p := upstream(Owners(t), m); p != nil {
		m = p
	}
	for _, g := range t.Groups {
		if primaryOf(t, g) == m {
			epoch = max(epoch, g.Term)
		}
	}
	return epoch
}

// ClusterNodes returns the reply to CLUSTER NODES: id address@bus flags primary ping pong epoch link slots.
func ClusterNodes(t *limiter.Topology) string {
	return strings.Join(append(nodeLines(t, nil), ""), "\n")
}

// ReplicaLines returns the lines of CLUSTER NODES about the replicas of a node. It returns false if the node owns no
// slots.
func ReplicaLines(t *limiter.Topology, primary *limiter.Member) (lines []string, ok bool) {
	if !slices.Contains(primaries(Owners(t)), primary) {
		return nil, false
	}
	return nodeLines(t, primary), true
}

// nodeLines returns the lines about the replicas of the primary of, or about all nodes if of is nil.
func nodeLines(t *limiter.Topology, of *limiter.Member) (lines []string) {
	now, owners := time.Now(), Owners(t)
	for i := range t.Nodes {
		if m := &t.Nodes[i]; of == nil || upstream(owners, m) == of {
			lines = append(lines, nodeLine(t, owners, m, now))
		}
	}
	return lines
}

func nodeLine(t *limiter.Topology, owners []Owner, m *limiter.Member, now time.Time) string {
	address := ":0"
	if host, port, ok := m.HostPort(); ok {
		address = service.RedisAddr(host, port)
	}
	primary := "-"
	if p := upstream(owners, m); p != nil {
		primary = NodeID(p.ID)
	}
	link, pongMs := "connected", now.Add(-m.LastHeard).UnixMilli()
	switch {
	case m.ID == t.Self:
		pongMs = 0
	case !m.Up:
		link = "disconnected"
	}
	line := fmt.Sprintf("%s %s@%s %s %s 0 %d %d %s", NodeID(m.ID), address, busPort(m), nodeFlags(t, owners, m),
		primary, pongMs, epochOf(t, m), link)
	for _, o := range owners {
		if o.Primary == m {
			line += fmt.Sprintf(" %d-%d", o.Slots.First, o.Slots.Last)
		}
	}
	return line
}

// busPort returns the inter-node port, in place of Redis' cluster bus port.
func busPort(m *limiter.Member) string {
	if at := strings.LastIndexByte(m.RaftAddr, ':'); at >= 0 {
		return m.RaftAddr[at+1:]
	}
	return "0"
}

func nodeFlags(t *limiter.Topology, owners []Owner, m *limiter.Member) string {
	flags := "slave"
	if slices.Contains(primaries(owners), m) {
		flags = "master"
	}
	if m.ID == t.Self {
		flags = "myself," + flags
	} else if !m.Up {
		flags += ",fail"
	}
	if !m.HasAddress() {
		flags += ",noaddr"
	}
	return flags
}

// Serving returns the nodes with a known address: first the given primary of a range of slots, then the other nodes. It
// returns none while the primary's address is unknown.
func Serving(t *limiter.Topology, first *limiter.Member) (all []*limiter.Member) {
	if !first.HasAddress() {
		return nil
	}
	all = append(all, first)
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m != first && m.HasAddress() {
			all = append(all, m)
		}
	}
	return all
}

// Replicas returns the other nodes that are up and have a client address.
func Replicas(t *limiter.Topology) (all []*limiter.Member) {
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.Up && m.ID != t.Self && m.HasAddress() {
			all = append(all, m)
		}
	}
	return all
}
