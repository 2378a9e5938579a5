package commands

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// maxNodeIDBytes bounds the name of a node, which logs and tables show.
const maxNodeIDBytes = 64

func weirClusterCommand() *command {
	const flags = "admin noscript loading stale no_multi"
	sub := func(name, syntax string, arity int, summary, details string,
		run func(*Session, *limiter.Topology, [][]byte)) *command {
		cmd := clustered(name, syntax, arity, summary, run)
		cmd.flags, cmd.details = flags, details
		return cmd
	}
	status := sub("STATUS", "", 2, "The cluster as this node sees it", "", runClusterStatus)
	status.reply = "A map. Of the cluster: `cluster_id`, `node` (this node), `leader` (empty if unknown), " +
		"`last_leader`, `term`, `applied_index`, `commit_index`, `stale_ms`, `log_format` (the newest that all " +
		"known nodes read), `nodes`, and `groups`. " +
		"Of each node: `id`, `client_addr`, `raft_addr`, `voter`, `up`, `applied_index`, `heard_ms` (since its last " +
		"message), `lag_entries` (known as committed, not applied yet), `clock_ahead_ms` (relative to this node's " +
		"wall clock), `log_format` (the newest it reads; 0: unknown). " +
		"Of each Raft group, in the order of their slots: `first_slot`, " +
		"`last_slot`, `leader`, `last_leader`, `term`, `applied_index`, `commit_index`, `ended` (why it has ended on " +
		"this node while other nodes serve it, else empty). The other fields with these " +
		"names, and the fields of the nodes, are then of the first group. A `voter` votes in every group that it " +
		"shall have, and `lag_entries` is the greatest of any group. With `--replicas` the cluster also has " +
		"`replicas`. Each node then has `zone`, `replicas` (its groups; -1: unknown) and `leaders` (the groups that it " +
		"leads). Each group has `away` (1: this node lacks it), `replicas_up` (that vote) and `replicas`, each with `id`, " +
		"`voter`, `silent` (1: its group does not hear it) and `lag_entries`."
	return &command{
		name: "WEIR.CLUSTER", arity: -2, group: groupCluster, flags: flags,
		summary: "Show and change the cluster; `weir cluster` does the same from a shell",
		details: "Any node forwards a change to the leader. The command ends when a majority has agreed.",
		subs: []*command{
			status,
			sub("ADD", "id addr", 4, "Add a node",
				"It follows first, and votes once it has caught up. `addr` is its address for the other nodes.",
				runClusterAdd),
			sub("REMOVE", "id", 3, "Remove a node", "Stop it first: a removed node does not come back by itself.",
				runClusterRemove),
			sub("TRANSFER", "[id [GROUP n]]", -2, "Transfer leadership to a node, or to the best candidate",
				"With several Raft groups the node gets all groups in which it votes, or with `GROUP` the one "+
					"with this number, counted from 0. Without an id, the node that is asked gives away the groups "+
					"that it leads. The new leaders keep the groups for 10 minutes. Then the groups spread over the "+
					"nodes again.",
				runClusterTransfer),
			moveCommand(sub("MOVE", "group from to", 5, "Move a replica of a group to another node, one step a call",
				"For a cluster that was founded with `--replicas`. Each call looks at the group and makes the next "+
					"step: open a replica on `to`, let it catch up and vote, hand the leadership over, remove the "+
					"replica of `from`. Repeat the call until `done` is 1, on any node; nothing remembers a move. The "+
					"move in the other direction undoes an unfinished one. With `-` as `from` a group with too few "+
					"replicas gets one, with `-` as `to` a group with too many loses one.", runClusterMove)),
			sub("SNAPSHOT", "", 2, "Write a snapshot on this node, and shorten its log", "", runClusterSnapshot),
		},
	}
}

func runClusterStatus(s *Session, t *limiter.Topology, _ [][]byte) {
	spread := int(oneIf(t.Replicas > 0))
	s.Map(11 + spread)
	s.Pair("cluster_id", t.ClusterID)
	s.Pair("node", t.Self)
	s.Pair("leader", t.Leader)
	s.Pair("last_leader", t.LastLeader)
	s.PairInt("term", int64(t.Term))
	s.PairInt("applied_index", int64(t.AppliedIndex))
	s.PairInt("commit_index", int64(t.CommitIndex))
	s.PairInt("stale_ms", service.CeilMs(s.srv.Replica.StaleFor()))
	s.PairInt("log_format", int64(t.Format))
	if t.Replicas > 0 {
		s.PairInt("replicas", int64(t.Replicas))
	}
	s.Bulk("nodes")
	s.Array(len(t.Nodes))
	for i := range t.Nodes {
		m := &t.Nodes[i]
		s.Map(10 + 3*spread)
		writeNodeStatus(s.Reply, m)
		if t.Replicas > 0 {
			s.Pair("zone", m.Zone)
			s.PairInt("replicas", int64(t.ReplicasOn(m.ID)))
			s.PairInt("leaders", int64(t.LedBy(m.ID)))
		}
	}
	s.Bulk("groups")
	s.Array(len(t.Groups))
	for i := range t.Groups {
		g := &t.Groups[i]
		s.Map(8 + 3*spread)
		writeGroupStatus(s.Reply, g)
		if t.Replicas > 0 {
			writeReplicas(s.Reply, t, g)
		}
	}
}

// writeReplicas writes the fields that only a cluster has whose groups are on a part of its nodes.
func writeReplicas(w resp.Reply, t *limiter.Topology, g *limiter.Group) {
	w.PairInt("away", int64(oneIf(g.Away)))
	w.PairInt("replicas_up", int64(t.VotersUp(g)))
	w.Bulk("replicas")
	w.Array(len(g.Members))
	for _, m := range g.Members {
		w.Map(4)
		w.Pair("id", m.ID)
		w.PairInt("voter", int64(oneIf(m.Voter)))
		w.PairInt("silent", int64(oneIf(m.Silent)))
		w.PairInt("lag_entries", int64(m.LagEntries))
	}
}

func writeGroupStatus(w resp.Reply, g *limiter.Group) {
	w.PairInt("first_slot", int64(g.Slots.First))
	w.PairInt("last_slot", int64(g.Slots.Last))
	w.Pair("leader", g.Leader)
	w.Pair("last_leader", g.LastLeader)
	w.PairInt("term", int64(g.Term))
	w.PairInt("applied_index", int64(g.AppliedIndex))
	w.PairInt("commit_index", int64(g.CommitIndex))
	w.Pair("ended", g.Ended)
}

func writeNodeStatus(w resp.Reply, m *limiter.Member) {
	w.Pair("id", m.ID)
	w.Pair("client_addr", m.ClientAddr)
	w.Pair("raft_addr", m.RaftAddr)
	w.PairInt("voter", int64(oneIf(m.Voter)))
	w.PairInt("up", int64(oneIf(m.Up)))
	w.PairInt("applied_index", int64(m.AppliedIndex))
	w.PairInt("heard_ms", service.CeilMs(m.LastHeard))
	w.PairInt("lag_entries", int64(m.LagEntries))
	w.PairInt("clock_ahead_ms", m.ClockAhead.Milliseconds())
	w.PairInt("log_format", int64(m.Format))
}

func runClusterAdd(s *Session, _ *limiter.Topology, args [][]byte) {
	id, addr := args[2], args[3]
	switch {
	case !s.guarded(checkNodeID(id)):
	case !limiter.Reachable(string(addr)):
		s.fail(limits.Bad("addr", "must be the --raft-addr of the node, like 10.0.0.1:6390", addr))
	default:
		answerChange(s, "node added", s.srv.Replica.AddNode(string(id), string(addr)), "id", string(id),
			"raft", string(addr))
	}
}

func runClusterRemove(s *Session, _ *limiter.Topology, args [][]byte) {
	if s.guarded(checkNodeID(args[2])) {
		answerChange(s, "node removed", s.srv.Replica.RemoveNode(string(args[2])), "id", string(args[2]))
	}
}

func runClusterTransfer(s *Session, _ *limiter.Topology, args [][]byte) {
	to, group := "", allGroups
	if len(args) > 2 {
		to = string(args[2])
		if !s.guarded(checkNodeID(args[2])) {
			return
		}
	}
	if len(args) > 3 {
		n, ok := int64(0), false
		if len(args) == 5 && limits.Is(args[3], "GROUP") {
			n, ok = limits.Int(args[4])
		}
		if !ok || n < 0 || n >= int64(s.srv.Groups()) {
			s.fail(arg.ErrSyntax)
			return
		}
		group = int(n)
	}
	answerChange(s, "leadership handed over", transferLeadership(s.srv.Replica, to, group), "to", to)
}

func moveCommand(cmd *command) *command {
	cmd.reply = "A map: `done` (1 or 0), and `step`, what has begun or what the move waits for."
	return cmd
}

func runClusterMove(s *Session, _ *limiter.Topology, args [][]byte) {
	group, ok := limits.Int(args[2])
	if !ok || group < 0 || group >= int64(s.srv.Groups()) {
		s.fail(limits.Bad("group", fmt.Sprintf("must be a number from 0 to %d", s.srv.Groups()-1), args[2]))
		return
	}
	nodes := [2]string{}
	for i, id := range args[3:] {
		if string(id) == "-" {
			continue
		}
		if !s.guarded(checkNodeID(id)) {
			return
		}
		nodes[i] = string(id)
	}
	move, err := s.srv.Replica.MoveReplica(int(group), nodes[0], nodes[1])
	if err != nil {
		s.fail(s.srv.adminError(err))
		return
	}
	if !move.Done && !move.Waits {
		s.srv.Log.Info("a replica moves at a client's request", "group", group, "from", nodes[0], "to", nodes[1],
			"step", move.Step, "addr", s.about.Addr)
	}
	s.Map(2)
	s.PairInt("done", int64(oneIf(move.Done)))
	s.Pair("step", move.Step)
}

// allGroups is the number that transferLeadership takes for all groups.
const allGroups = -1

func transferLeadership(r limiter.Replica, to string, group int) error {
	if group != allGroups {
		return r.TransferGroup(group, to)
	}
	return r.TransferLeadership(to)
}

func runClusterSnapshot(s *Session, _ *limiter.Topology, _ [][]byte) {
	answerChange(s, "snapshot written", s.srv.Replica.Snapshot())
}

func checkNodeID(id []byte) error {
	if len(id) == 0 || len(id) > maxNodeIDBytes {
		return resp.Error(fmt.Sprintf("ERR id must be 1 to %d bytes, not %d", maxNodeIDBytes, len(id)))
	}
	return checkClientText("Node ids", id)
}

// answerChange answers a client's request to change the cluster. It logs the change if it succeeded.
func answerChange(s *Session, what string, err error, attrs ...any) {
	if err != nil {
		s.fail(s.srv.adminError(err))
		return
	}
	s.srv.Log.Info(what+" at a client's request", append(attrs, "addr", s.about.Addr)...)
	s.OK()
}

// adminError returns the reply to a failed change of the cluster. The reply redirects to the leader if its address is
// known. Otherwise it gives the reason in full, unlike the reply of a decision.
func (s *Shared) adminError(err error) error {
	if errors.Is(err, limiter.ErrNotLeader) {
		t := s.Replica.Topology()
		if to, ok := service.LeaderElsewhere(t).(service.Elsewhere); ok && !t.Leads() {
			return resp.Error("MOVED 0 " + string(to))
		}
		return err
	}
	for _, known := range []error{limiter.ErrTryAgain, limiter.ErrClusterDown, limiter.ErrOverloaded,
		limiter.ErrUnknownOutcome, limiter.ErrNoDisk} {
		if errors.Is(err, known) {
			return err
		}
	}
	return resp.Error("ERR " + err.Error())
}
