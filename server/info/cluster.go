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
	if s.Replica == nil || IsPrimary(s.Replica.Topology()) {
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
	var shards []Shard
	if replica != nil {
		t, slots = replica.Topology(), hashslot.Count
		shards = Shards(t)
		size, known = max(1, len(shards)), len(t.Nodes)
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
	w.field("cluster_my_epoch", epochOf(t, shards, t.Member(t.Self)))
	return w.String()
}

// Owner is a range of slots, the node that cluster clients see as its primary, and the other nodes that serve it.
type Owner struct {
	Slots    hashslot.Range
	Primary  *limiter.Member
	Replicas []*limiter.Member // in order of their ids
	Term     uint64            // the greatest of its groups
}

// Owners returns the owners of all slots in the order of the slots. Ranges that follow each other and have the same
// nodes are one. There are no owners while this node knows no leader of any group.
func Owners(t *limiter.Topology) (all []Owner) {
	groups := t.Groups
	if !slices.ContainsFunc(groups, func(g limiter.Group) bool { return t.PrimaryOf(g) != nil }) {
		return nil
	}
	for i := range groups {
		g := &groups[i]
		p := primaryOf(t, g)
		if p == nil {
			continue
		}
		o := Owner{Slots: g.Slots, Primary: p, Term: g.Term}
		for i := range t.Nodes {
			if m := &t.Nodes[i]; m != p && t.Serves(g, m.ID) {
				o.Replicas = append(o.Replicas, m)
			}
		}
		if n := len(all); n > 0 && all[n-1].Primary == p && all[n-1].Slots.Last+1 == g.Slots.First &&
			slices.Equal(all[n-1].Replicas, o.Replicas) {
			all[n-1].Slots.Last, all[n-1].Term = g.Slots.Last, max(all[n-1].Term, g.Term)
		} else {
			all = append(all, o)
		}
	}
	return all
}

// primaryOf returns the node that cluster clients see as the primary of a group's slots. It may be nil. If the primary
// or its address is unknown, primaryOf returns this node, which executes or forwards commands. Some clients fail if
// the map has a gap. A node without the group stands in for no primary if another node can.
func primaryOf(t *limiter.Topology, g *limiter.Group) *limiter.Member {
	p, self := t.PrimaryOf(*g), t.Member(t.Self)
	if p != nil && (p.HasAddress() || !self.HasAddress()) && (g.Leader != "" || t.Serves(g, p.ID)) {
		return p
	}
	if !t.Serves(g, t.Self) {
		for i := range t.Nodes {
			if m := &t.Nodes[i]; m.HasAddress() && t.Serves(g, m.ID) {
				return m
			}
		}
	}
	return self
}

// Shard is a node that owns slots, with all of its ranges and the other nodes that serve all of them. A node that
// serves some of them only is no replica: clients that know nodes by shards would send it reads of the other ranges.
type Shard struct {
	Primary  *limiter.Member
	Slots    []hashslot.Range
	Replicas []*limiter.Member // in order of their ids
	Term     uint64            // the greatest of its groups
}

// Shards returns the nodes that own slots, in the order of their first slots. A node has one shard, because clients
// know a shard by its primary.
func Shards(t *limiter.Topology) (all []Shard) {
	for _, o := range Owners(t) {
		i := slices.IndexFunc(all, func(s Shard) bool { return s.Primary == o.Primary })
		if i < 0 {
			i, all = len(all), append(all, Shard{Primary: o.Primary, Replicas: o.Replicas})
		}
		all[i].Slots, all[i].Term = append(all[i].Slots, o.Slots), max(all[i].Term, o.Term)
		all[i].Replicas = slices.DeleteFunc(slices.Clone(all[i].Replicas), func(m *limiter.Member) bool {
			return !slices.Contains(o.Replicas, m)
		})
	}
	return all
}

func owns(shards []Shard, m *limiter.Member) bool {
	return slices.ContainsFunc(shards, func(s Shard) bool { return s.Primary == m })
}

// upstream returns the primary that a node which owns no slots replicates, as cluster clients see it: the first one
// whose slots it has. In fact it may replicate slots of all primaries. It returns nil for a node that owns slots or
// has those of no primary, and while no primary is known.
func upstream(t *limiter.Topology, shards []Shard, m *limiter.Member) *limiter.Member {
	if owns(shards, m) {
		return nil
	}
	for i := range shards {
		if t.Replicas == 0 || slices.Contains(shards[i].Replicas, m) {
			return shards[i].Primary
		}
	}
	return nil
}

// Upstream returns the primary of this node as CLUSTER NODES shows it. up reports whether that primary leads a group
// now. If not, it is the last known leader.
func Upstream(t *limiter.Topology) (p *limiter.Member, up bool) {
	p = upstream(t, Shards(t), t.Member(t.Self))
	return p, p != nil && t.LedBy(p.ID) > 0
}

// isMaster reports whether clients see a node as a master: one that owns slots, or one that has no replica to show,
// like an empty node of Redis.
func isMaster(t *limiter.Topology, shards []Shard, m *limiter.Member) bool {
	return len(shards) > 0 && upstream(t, shards, m) == nil
}

// IsPrimary reports whether this node answers as a master: it leads a group, or is an empty master. A node that owned
// slots until their leader was lost is none.
func IsPrimary(t *limiter.Topology) bool {
	if t.Led() > 0 || t.Replicas == 0 {
		return t.Led() > 0
	}
	shards, self := Shards(t), t.Member(t.Self)
	return isMaster(t, shards, self) && !owns(shards, self)
}

// epochOf returns the greatest term of the groups whose slots a node owns. A node that owns none has the epoch of its
// primary. While no primary is known, this node has the greatest term that it knows.
func epochOf(t *limiter.Topology, shards []Shard, m *limiter.Member) (epoch uint64) {
	if p := upstream(t, shards, m); p != nil {
		m = p
	}
	for i := range shards {
		if shards[i].Primary == m {
			return shards[i].Term
		}
	}
	if len(shards) == 0 && m == t.Member(t.Self) {
		for i := range t.Groups {
			epoch = max(epoch, t.Groups[i].Term)
		}
	}
	return epoch
}

// ClusterNodes returns the reply to CLUSTER NODES: id address@bus flags primary ping pong epoch link slots.
func ClusterNodes(t *limiter.Topology) string {
	return strings.Join(append(nodeLines(t, nil), ""), "\n")
}

// ReplicaLines returns the lines of CLUSTER NODES about the replicas of a node. It returns false if the node is no
// master.
func ReplicaLines(t *limiter.Topology, primary *limiter.Member) (lines []string, ok bool) {
	if !isMaster(t, Shards(t), primary) {
		return nil, false
	}
	return nodeLines(t, primary), true
}

// nodeLines returns the lines about the replicas of the primary of, or about all nodes if of is nil.
func nodeLines(t *limiter.Topology, of *limiter.Member) (lines []string) {
	now, shards := time.Now(), Shards(t)
	for i := range t.Nodes {
		if m := &t.Nodes[i]; of == nil || upstream(t, shards, m) == of {
			lines = append(lines, nodeLine(t, shards, m, now))
		}
	}
	return lines
}

func nodeLine(t *limiter.Topology, shards []Shard, m *limiter.Member, now time.Time) string {
	address := ":0"
	if host, port, ok := m.HostPort(); ok {
		address = service.RedisAddr(host, port)
	}
	primary := "-"
	if p := upstream(t, shards, m); p != nil {
		primary = NodeID(p.ID)
	}
	link, pongMs := "connected", now.Add(-m.LastHeard).UnixMilli()
	switch {
	case m.ID == t.Self:
		pongMs = 0
	case m.NeverHeard():
		link, pongMs = "disconnected", 0
	case !m.Up:
		link = "disconnected"
	}
	line := fmt.Sprintf("%s %s@%s %s %s 0 %d %d %s", NodeID(m.ID), address, busPort(m), nodeFlags(t, shards, m),
		primary, pongMs, epochOf(t, shards, m), link)
	for i := range shards {
		if shards[i].Primary != m {
			continue
		}
		for _, r := range shards[i].Slots {
			line += fmt.Sprintf(" %d-%d", r.First, r.Last)
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

func nodeFlags(t *limiter.Topology, shards []Shard, m *limiter.Member) string {
	flags := "slave"
	if isMaster(t, shards, m) {
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

// Serving returns the nodes with a known address: first the primary of a range of slots, then its replicas. It returns
// none while the primary's address is unknown.
func Serving(primary *limiter.Member, replicas []*limiter.Member) []*limiter.Member {
	if !primary.HasAddress() {
		return nil
	}
	all := append([]*limiter.Member{primary}, replicas...)
	return slices.DeleteFunc(all, func(m *limiter.Member) bool { return !m.HasAddress() })
}

// Replicas returns the other nodes that are up, have a client address and serve a group that this node leads.
func Replicas(t *limiter.Topology) (all []*limiter.Member) {
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.Up && m.ID != t.Self && m.HasAddress() &&
			slices.ContainsFunc(t.Groups, func(g limiter.Group) bool {
				return g.Leader == t.Self && t.Serves(&g, m.ID)
			}) {
			all = append(all, m)
		}
	}
	return all
}
