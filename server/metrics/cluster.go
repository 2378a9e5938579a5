package metrics

import (
	"github.com/weir-project/weir/limiter"
)

// clusterMetrics exist only on a node of a cluster.
func (s collector) clusterMetrics() []metric {
	if s.Replica == nil {
		return nil
	}
	t := s.Replica.Topology()
	ms := []metric{
		gauge("cluster_is_leader", "1 if this node leads a Raft group, else 0.", truth(t.Led() > 0)),
		gauge("cluster_has_leader", "1 if this node knows a leader of every Raft group, else 0.",
			truth(t.Leaderless() == 0)),
		gauge("cluster_groups", "Raft groups of the cluster, which share the hash slots.", len(t.Groups)),
		gauge("cluster_groups_led", "Raft groups that this node leads.", t.Led()),
		gauge("cluster_groups_leaderless", "Raft groups whose leader this node does not know.", t.Leaderless()),
		gauge("cluster_groups_ended", "Raft groups that have ended on this node, while other nodes serve them.",
			t.Ended()),
		gauge("cluster_groups_behind_entries", "Committed entries that this node has not applied, in the group with "+
			"the most of them.", t.Behind()),
		gauge("cluster_replicas", "Replicas that each Raft group shall have (--replicas); 0: one on every node.",
			t.Replicas),
		gauge("cluster_replicas_here", "Raft groups of which this node has a replica.", max(0, t.ReplicasOn(t.Self))),
		gauge("cluster_groups_below_replicas", "Raft groups with fewer voters that are up than weir_cluster_replicas.",
			t.BelowReplicas()),
		gauge("cluster_term", "Raft term of this node, in the first group.", t.Term),
		gauge("cluster_applied_index", "Log index of the last entry that this node has applied, in the first "+
			"group.", t.AppliedIndex),
		gauge("cluster_commit_index", "Log index of the last entry that this node knows to be "+
			"committed, in the first group.", t.CommitIndex),
		gauge("cluster_stale_seconds", "Upper bound on the age of the state that READONLY reads: the time since "+
			"this node last confirmed that it had applied every acknowledged entry. Every node checks this twice a "+
			"second. Before the first check after a start the value is a hundred "+
			"years.", s.Replica.StaleFor().Seconds()),
		gauge("cluster_log_format", "The newest log format that all known nodes can read. Commands that need a "+
			"newer format are rejected.", int(t.Format)),
		gauge("cluster_nodes", "Nodes in the cluster.", len(t.Nodes)),
		gauge("cluster_nodes_up", "Nodes in the cluster that this node sees as up.", t.Count(limiter.IsUp)),
		gauge("cluster_voters", "Voting nodes in the cluster.", t.Count(limiter.IsVoter)),
		gauge("cluster_voters_up", "Voting nodes that this node sees as up. Decisions need more than half of "+
			"weir_cluster_voters, with --replicas of the replicas of their group.",
			t.Count(func(m *limiter.Member) bool { return limiter.IsVoter(m) && limiter.IsUp(m) })),
	}
	for i := range t.Nodes {
		ms = append(ms, memberMetrics(&t.Nodes[i])...)
	}
	if reporter, ok := s.Limiter.Backend().(limiter.ConsensusReporter); ok {
		ms = append(ms, consensusMetrics(reporter.Consensus())...)
	}
	return ms
}

// memberMetrics describe one node as this node sees it.
func memberMetrics(m *limiter.Member) []metric {
	return []metric{
		gauge("cluster_node_up", "1 if this node sees the labeled node as up, else 0.", truth(m.Up)).with("node", m.ID),
		gauge("cluster_node_lag_entries", "Committed entries that the labeled node had not applied when this "+
			"node last heard from it.", m.LagEntries).with("node", m.ID),
		gauge("cluster_node_clock_ahead_seconds", "How far the wall clock of the labeled node is ahead of the "+
			"clock of this node. The error is about one round trip.", m.ClockAhead.Seconds()).with("node", m.ID),
		gauge("cluster_node_log_format", "The newest log format that the labeled node can read, 0 while it is "+
			"unknown. Different values mean that an upgrade is in progress.", int(m.Format)).with("node", m.ID),
	}
}

const silencesHelp = "Times that this node heard nothing from another node for --raft-heartbeat. If another node " +
	"confirms the silence, the groups that the silent node led elect other leaders. Unconfirmed silences suggest a " +
	"cut between two nodes. Always 0 with one Raft group."

func consensusMetrics(c limiter.Consensus) []metric {
	return []metric{
		counter("cluster_leader_changes_total", "Leader changes that this node observed.", c.LeaderChanges),
		counter("cluster_clock_clamps_total", "Log entries whose time was before the time of the previous entry. "+
			"Such an entry gets the time of the previous entry.", c.Clamps),
		counter("cluster_cold_starts_total", "Restarts of the whole cluster after which this node became the "+
			"first leader.", c.ColdStarts),
		counter("cluster_cold_starts_uncredited_total", "Restarts of the whole cluster whose downtime refilled "+
			"no limits, because no recent record of a majority's wall clocks existed.", c.Uncredited),
		counter("cluster_downtime_credit_seconds_total", "Downtime of the whole cluster that this node credited "+
			"to limits.", c.DowntimeCredit.Seconds()),
		counter("cluster_late_answers_total", "Decisions older than --max-decision-age. The client got UNKNOWN "+
			"instead.", c.Late),
		counter("cluster_entries_total", "Log entries with operations that this node proposed as the leader of their "+
			"Raft group.", c.Entries),
		counter("cluster_entry_operations_total", "Operations in these entries. Divided by "+
			"weir_cluster_entries_total, it is the number of decisions that share the cost of an entry.", c.EntryOps),
		counter("connections_evicted_total", evictedHelp, c.Evicted).with("port", "nodes"),
		counter("cluster_silences_total", silencesHelp, c.SilentNodes).with("confirmed", "yes"),
		counter("cluster_silences_total", silencesHelp, c.SilentHere).with("confirmed", "no"),
		gauge("cluster_log_bytes", "Bytes of log entries applied since the last snapshot.", c.LogBytes),
		gauge("cluster_snapshot_standstill_seconds", "How long the last snapshot blocked "+
			"decisions.", c.Standstill.Seconds()),
	}
}
