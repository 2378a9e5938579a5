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
		gauge("cluster_is_leader", "1 on the leader.", truth(t.Leads())),
		gauge("cluster_has_leader", "1 while this node knows a leader.", truth(t.Leader != "")),
		gauge("cluster_term", "Raft's term.", t.Term),
		gauge("cluster_applied_index", "The last entry of the log this node has applied.", t.AppliedIndex),
		gauge("cluster_commit_index", "The last entry of the log this node knows to be committed.", t.CommitIndex),
		gauge("cluster_stale_seconds", "How old the state may be that this node reads after READONLY: the time "+
			"since it was last known to have applied everything acknowledged. Each node checks this twice a second, "+
			"also the leader; it is a hundred years until the first check after a "+
			"start.", s.Replica.StaleFor().Seconds()),
		gauge("cluster_log_format", "The newest form of the log that every node which this one knows reads: what "+
			"needs a newer one is refused.", int(t.Format)),
		gauge("cluster_nodes", "Nodes of the cluster.", len(t.Nodes)),
		gauge("cluster_nodes_up", "Nodes of the cluster that are up, as this one sees it.", t.Count(limiter.IsUp)),
		gauge("cluster_voters", "Nodes of the cluster that vote.", t.Count(limiter.IsVoter)),
		gauge("cluster_voters_up", "Nodes that vote and are up, as this one sees it; decisions need more than half "+
			"of weir_cluster_voters.",
			t.Count(func(m *limiter.Member) bool { return limiter.IsVoter(m) && limiter.IsUp(m) })),
	}
	for i := range t.Nodes {
		ms = append(ms, memberMetrics(&t.Nodes[i])...)
	}
	if reporter, ok := s.Limiter.(limiter.ConsensusReporter); ok {
		ms = append(ms, consensusMetrics(reporter.Consensus())...)
	}
	return ms
}

// memberMetrics describe one node as this node sees it.
func memberMetrics(m *limiter.Member) []metric {
	return []metric{
		gauge("cluster_node_up", "1 for a node that is up, as this one sees it.", truth(m.Up)).with("node", m.ID),
		gauge("cluster_node_lag_entries", "Entries that this node knew to be committed and the node had not "+
			"applied, when it was last heard.", m.LagEntries).with("node", m.ID),
		gauge("cluster_node_clock_ahead_seconds", "How far the wall clock of a node is ahead of this one's, to "+
			"about a round trip.", m.ClockAhead.Seconds()).with("node", m.ID),
		gauge("cluster_node_log_format", "The newest form of the log that a node reads, 0 until it has said so. "+
			"While they differ the cluster is being upgraded.", int(m.Format)).with("node", m.ID),
	}
}

func consensusMetrics(c limiter.Consensus) []metric {
	return []metric{
		counter("cluster_leader_changes_total", "Times that this node saw a new leader.", c.LeaderChanges),
		counter("cluster_clock_clamps_total", "Entries with a time before the last entry's, which was used "+
			"instead.", c.Clamps),
		counter("cluster_cold_starts_total", "Full stops of the cluster after which this node was the first to "+
			"lead.", c.ColdStarts),
		counter("cluster_cold_starts_uncredited_total", "Full stops whose downtime refilled nothing, because there "+
			"was no recent note of a majority's wall clocks.", c.Uncredited),
		counter("cluster_downtime_credit_seconds_total", "Limiter time that this node gave for full stops of the "+
			"cluster.", c.DowntimeCredit.Seconds()),
		counter("cluster_late_answers_total", "Answers that came too late to be handed out, and became "+
			"UNKNOWN.", c.Late),
		counter("connections_evicted_total", evictedHelp, c.Evicted).with("port", "nodes"),
		gauge("cluster_log_bytes", "Entries applied since the last snapshot.", c.LogBytes),
		gauge("cluster_snapshot_standstill_seconds", "How long the last snapshot held up "+
			"decisions.", c.Standstill.Seconds()),
	}
}
