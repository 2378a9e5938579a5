package info

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
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

// ClusterState returns the reply to CLUSTER INFO.
func ClusterState(replica limiter.Replica) string {
	t, slots, up, size, known := &limiter.Topology{}, 0, true, 0, 1
	if replica != nil {
		t, slots, size = replica.Topology(), hashslot.Count, 1
		up, known = t.Leader != "", len(t.Nodes)
	}
	state, served := "ok", slots
	if !up {
		state, served = "fail", 0
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
	w.field("cluster_current_epoch", t.Term)
	w.field("cluster_my_epoch", t.Term)
	return w.String()
}

// ClusterNodes returns the reply to CLUSTER NODES: id address@bus flags primary ping pong epoch link slots.
func ClusterNodes(t *limiter.Topology) string {
	var text strings.Builder
	now := time.Now()
	for i := range t.Nodes {
		text.WriteString(nodeLine(t, &t.Nodes[i], now))
	}
	return text.String()
}

func nodeLine(t *limiter.Topology, m *limiter.Member, now time.Time) string {
	address := ":0"
	if host, port, ok := m.HostPort(); ok {
		address = service.RedisAddr(host, port)
	}
	primary := "-"
	if p := t.Primary(); p != nil && p != m {
		primary = NodeID(p.ID)
	}
	link, pongMs := "connected", now.Add(-m.LastHeard).UnixMilli()
	switch {
	case m.ID == t.Self:
		pongMs = 0
	case !m.Up:
		link = "disconnected"
	}
	line := fmt.Sprintf("%s %s@%s %s %s 0 %d %d %s", NodeID(m.ID), address, busPort(m), nodeFlags(t, m),
		primary, pongMs, t.Term, link)
	if m == t.Primary() {
		line += fmt.Sprintf(" 0-%d", hashslot.Count-1)
	}
	return line + "\n"
}

// busPort returns the inter-node port, in place of Redis' cluster bus port.
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

// Serving returns the nodes with a known address, the primary first. It returns none while the primary's address is
// unknown.
func Serving(t *limiter.Topology) (all []*limiter.Member) {
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

// Replicas returns the other nodes that are up and have a client address.
func Replicas(t *limiter.Topology) (all []*limiter.Member) {
	for i := range t.Nodes {
		m := &t.Nodes[i]
		if _, _, ok := m.HostPort(); ok && m.Up && m.ID != t.Self {
			all = append(all, m)
		}
	}
	return all
}
