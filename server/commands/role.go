package commands

import (
	"fmt"

	"github.com/weir-project/weir/limiter"
)

// How a node of a cluster shows itself to what was written for Redis replication:
// the leader as the master, every other node as its replica. While no leader is
// known all are replicas, and their link is down.

func (s *Shared) mode() string {
	if s.Replica != nil {
		return "cluster"
	}
	return "standalone"
}

// helloRole is the role in HELLO's words.
func (s *Shared) helloRole() string {
	if s.Leads() {
		return "master"
	}
	return "replica"
}

func runRole(s *Session, _ [][]byte) {
	if s.srv.Replica == nil {
		s.masterRole(new(limiter.Topology))
		return
	}
	if t := s.srv.Replica.Topology(); t.Leads() {
		s.masterRole(t)
	} else {
		s.replicaRole(t)
	}
}

func (s *Session) masterRole(t *limiter.Topology) {
	replicas := replicas(t)
	s.Array(3)
	s.Bulk("master")
	s.Int(int64(t.CommitIndex))
	s.Array(len(replicas))
	for _, m := range replicas {
		host, port, _ := m.HostPort()
		s.Strings([]string{host, fmt.Sprint(port), fmt.Sprint(m.AppliedIndex)})
	}
}

func (s *Session) replicaRole(t *limiter.Topology) {
	host, port, _ := t.Primary().HostPort()
	state := "connected"
	if t.Leader == "" {
		state = "connect"
	}
	s.Array(5)
	s.Bulk("slave")
	s.Bulk(host)
	s.Int(int64(port))
	s.Bulk(state)
	s.Int(int64(t.AppliedIndex))
}

// replicas are the other nodes that are up and have an address for clients.
func replicas(t *limiter.Topology) (all []*limiter.Member) {
	for i := range t.Nodes {
		m := &t.Nodes[i]
		if _, _, ok := m.HostPort(); ok && m.Up && m.ID != t.Self {
			all = append(all, m)
		}
	}
	return all
}
