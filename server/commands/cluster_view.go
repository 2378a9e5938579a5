package commands

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// The cluster in the forms that Redis' cluster clients read.

// nodeID is the id clients know a node by: they expect 40 hexadecimal digits. It
// is a name, no secret.
func nodeID(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

func runClusterMyID(s *Session, _ [][]byte) {
	if s.srv.Replica == nil {
		s.Bulk(s.srv.runID)
		return
	}
	s.Bulk(nodeID(s.srv.Replica.Topology().Self))
}

func runClusterInfo(s *Session, _ [][]byte) {
	t, slots, up, size, known := &limiter.Topology{}, 0, true, 0, 1
	if s.srv.Replica != nil {
		t, slots, size = s.srv.Replica.Topology(), keySlots, 1
		up, known = t.Leader != "", len(t.Nodes)
	}
	state, served := "ok", slots
	if !up {
		state, served = "fail", 0
	}
	var w infoWriter
	w.field("cluster_enabled", oneIf(s.srv.Replica != nil))
	w.field("cluster_state", state)
	w.field("cluster_slots_assigned", slots)
	w.field("cluster_slots_ok", served)
	w.field("cluster_slots_pfail", 0)
	w.field("cluster_slots_fail", slots-served)
	w.field("cluster_known_nodes", known)
	w.field("cluster_size", size)
	w.field("cluster_current_epoch", t.Term)
	w.field("cluster_my_epoch", t.Term)
	s.Verbatim(w.String())
}

// runClusterNodes writes id address@bus flags primary ping pong epoch link slots.
func runClusterNodes(s *Session, t *limiter.Topology, _ [][]byte) {
	var text strings.Builder
	now := time.Now()
	for i := range t.Nodes {
		text.WriteString(nodeLine(t, &t.Nodes[i], now))
	}
	s.Verbatim(text.String())
}

func nodeLine(t *limiter.Topology, m *limiter.Member, now time.Time) string {
	address := ":0"
	if host, port, ok := m.HostPort(); ok {
		address = service.RedisAddr(host, port)
	}
	primary := "-"
	if p := t.Primary(); p != nil && p != m {
		primary = nodeID(p.ID)
	}
	link, pongMs := "connected", now.Add(-m.LastHeard).UnixMilli()
	switch {
	case m.ID == t.Self:
		pongMs = 0
	case !m.Up:
		link = "disconnected"
	}
	line := fmt.Sprintf("%s %s@%s %s %s 0 %d %d %s", nodeID(m.ID), address, busPort(m), nodeFlags(t, m), primary, pongMs, t.Term, link)
	if m == t.Primary() {
		line += fmt.Sprintf(" 0-%d", keySlots-1)
	}
	return line + "\n"
}

// busPort is the port for the other nodes, in the place of Redis' cluster bus.
func busPort(m *limiter.Member) string {
	if at := strings.LastIndexByte(m.RaftAddr, ':'); at >= 0 {
		return m.RaftAddr[at+1:]
	}
	return "0"
}

func nodeFlags(t *limiter.Topology, m *limiter.Member) string {
	flags := "slave"
	if m == t.Primary() {
		flags = "master"
	}
	if m.ID == t.Self {
		flags = "myself," + flags
	} else if !m.Up {
		flags += ",fail"
	}
	if _, _, ok := m.HostPort(); !ok {
		flags += ",noaddr"
	}
	return flags
}

// serving are the nodes whose addresses are known, the primary first; none while
// its own is not.
func serving(t *limiter.Topology) (all []*limiter.Member) {
	first := t.Primary()
	if _, _, ok := first.HostPort(); !ok {
		return nil
	}
	all = append(all, first)
	for i := range t.Nodes {
		m := &t.Nodes[i]
		if _, _, ok := m.HostPort(); ok && m != first {
			all = append(all, m)
		}
	}
	return all
}

func runClusterSlots(s *Session, t *limiter.Topology, _ [][]byte) {
	nodes := serving(t)
	if len(nodes) == 0 {
		s.Array(0)
		return
	}
	s.Array(1)
	s.Array(2 + len(nodes))
	s.Int(0)
	s.Int(keySlots - 1)
	for _, m := range nodes {
		host, port, _ := m.HostPort()
		s.Array(4)
		s.Bulk(host)
		s.Int(int64(port))
		s.Bulk(nodeID(m.ID))
		s.Map(0) // further addresses
	}
}

func runClusterShards(s *Session, t *limiter.Topology, _ [][]byte) {
	nodes := serving(t)
	if len(nodes) == 0 {
		s.Array(0)
		return
	}
	s.Array(1)
	s.Map(2)
	s.Bulk("slots")
	s.Array(2)
	s.Int(0)
	s.Int(keySlots - 1)
	s.Bulk("nodes")
	s.Array(len(nodes))
	for i, m := range nodes {
		s.shardNode(t, m, i == 0)
	}
}

func (s *Session) shardNode(t *limiter.Topology, m *limiter.Member, primary bool) {
	host, port, _ := m.HostPort()
	role, health := "replica", "online"
	if primary {
		role = "master"
	}
	if !m.Up && m.ID != t.Self {
		health = "fail"
	}
	s.Map(7)
	s.Pair("id", nodeID(m.ID))
	s.PairInt("port", int64(port))
	s.Pair("ip", host)
	s.Pair("endpoint", host)
	s.Pair("role", role)
	s.PairInt("replication-offset", int64(m.AppliedIndex))
	s.Pair("health", health)
}

// runClusterLinks answers what is known of Redis' fields.
func runClusterLinks(s *Session, t *limiter.Topology, _ [][]byte) {
	others := t.Count(func(m *limiter.Member) bool { return m.Up && m.ID != t.Self })
	s.Array(others)
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.Up && m.ID != t.Self {
			s.Map(2)
			s.Pair("direction", "to")
			s.Pair("node", nodeID(m.ID))
		}
	}
}
