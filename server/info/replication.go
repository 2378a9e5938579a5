package info

import (
	"fmt"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

func writeReplication(s *Server, w *writer) {
	if s.Replica == nil {
		writeMaster(new(limiter.Topology), s.RunID, w)
		return
	}
	t := s.Replica.Topology()
	if id := NodeID(t.ClusterID); IsPrimary(t) {
		writeMaster(t, id, w)
	} else {
		writeReplica(t, id, w)
	}
}

func writeMaster(t *limiter.Topology, id string, w *writer) {
	replicas := Replicas(t)
	w.field("role", "master")
	w.field("connected_slaves", len(replicas))
	for i, m := range replicas {
		host, port, _ := m.HostPort()
		w.field(fmt.Sprintf("slave%d", i), fmt.Sprintf("ip=%s,port=%d,state=online,offset=%d,lag=%d",
			host, port, m.AppliedIndex, int64(m.LastHeard.Seconds())))
	}
	w.field("master_replid", id)
	w.field("master_repl_offset", t.CommitIndex)
}

func writeReplica(t *limiter.Topology, id string, w *writer) {
	leader, up := Upstream(t)
	host, port, _ := leader.HostPort()
	link, heardSeconds := "up", int64(-1)
	if !up {
		link = "down"
	}
	if leader != nil && !leader.NeverHeard() {
		heardSeconds = int64(leader.LastHeard.Seconds())
	}
	w.field("role", "slave")
	w.field("master_host", host)
	w.field("master_port", port)
	w.field("master_link_status", link)
	w.field("master_last_io_seconds_ago", heardSeconds)
	w.field("master_sync_in_progress", 0)
	w.field("slave_repl_offset", t.AppliedIndex)
	w.field("slave_read_only", 0)
	w.field("connected_slaves", 0)
	w.field("master_replid", id)
	w.field("master_repl_offset", t.CommitIndex)
}

// writeRaft writes the state of the consensus. Leader, term and indexes are those of the first group.
func writeRaft(s *Server, w *writer) {
	t := s.Replica.Topology()
	w.field("raft_cluster_id", t.ClusterID)
	w.field("raft_node_id", t.Self)
	w.field("raft_leader_id", t.Leader)
	w.flag("raft_is_leader", t.Led() > 0)
	w.field("raft_term", t.Term)
	w.field("raft_applied_index", t.AppliedIndex)
	w.field("raft_commit_index", t.CommitIndex)
	w.field("raft_stale_ms", service.CeilMs(s.Replica.StaleFor()))
	w.field("raft_nodes", len(t.Nodes))
	w.field("raft_nodes_up", t.Count(limiter.IsUp))
	w.field("raft_voters", t.Count(limiter.IsVoter))
	w.field("raft_groups", len(t.Groups))
	w.field("raft_groups_led", t.Led())
	w.field("raft_groups_leaderless", t.Leaderless())
	w.field("raft_groups_ended", t.Ended())
	if t.Replicas > 0 {
		w.field("raft_replicas", t.Replicas)
		w.field("raft_replicas_here", max(0, t.ReplicasOn(t.Self)))
		w.field("raft_groups_below_replicas", t.BelowReplicas())
	}
}
