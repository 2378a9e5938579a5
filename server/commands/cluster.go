package commands

import (
	"fmt"
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/resp"
)

const clusterDetails = "Each Raft group owns a range of slots. Cluster clients see its leader as the primary of the " +
	"range, and the other nodes that have the group as replicas. `CLUSTER SLOTS` names them for each range. " +
	"`CLUSTER SHARDS` has one shard for each primary, with the replicas of all of its ranges. " +
	"`CLUSTER NODES` shows a node that leads no group as a replica of the first primary whose ranges it has. " +
	"A node that has the ranges of no primary is a master without slots. Node ids are the SHA-1 of the " +
	"names of the nodes, the epoch is Raft's term. While a group has no known leader, the map shows its last leader " +
	"and `cluster_state` is `fail`. A node that has just started names itself for ranges " +
	"whose primary or address it does not know yet. Its map is complete, or empty while it knows no leader."

func clusterCommands() []*command {
	return []*command{
		{
			name: "CLUSTER", arity: -2, group: groupCluster, flags: "loading stale",
			summary: "Commands for cluster clients", details: clusterDetails,
			subs: append([]*command{
				{name: "INFO", arity: 2, summary: "The state of the cluster", run: func(s *Session, _ [][]byte) {
					s.Verbatim(info.ClusterState(s.srv.Replica))
				}},
				{name: "MYID", arity: 2, summary: "The id of this node", run: runClusterMyID},
				{name: "KEYSLOT", arity: 3, syntax: "key", summary: "The hash slot of a key",
					run: func(s *Session, args [][]byte) { s.Int(int64(hashslot.Of(args[2]))) }},
				clustered("NODES", "", 2, "The nodes, one a line", func(s *Session, t *limiter.Topology, _ [][]byte) {
					s.Verbatim(info.ClusterNodes(t))
				}),
				clustered("SLOTS", "", 2, "The owners of the slots and their replicas", runClusterSlots),
				clustered("SHARDS", "", 2, "The owners of slots with their ranges and replicas", runClusterShards),
				clustered("LINKS", "", 2, "The other nodes that are up", runClusterLinks),
				clustered("REPLICAS", "node-id", 3, "The nodes that replicate a node, one a line",
					runClusterReplicas),
			}, slotCommands()...),
		},
		{name: "READONLY", arity: 1, summary: "Allow stale reads on this connection", group: groupCluster,
			flags: "loading stale fast",
			details: "From here on this node answers reads of groups that it has from its own state, also without a " +
				"leader. The answers may be stale. Maps show their age in `stale_ms`, " +
				"also the empty map of `RL.INSPECT` for an idle key. `READWRITE` and `RESET` end this. Decisions " +
				"and changes are not affected.", run: runReadonly},
		{name: "READWRITE", arity: 1, summary: "End stale reads on this connection", group: groupCluster,
			flags: "loading stale fast",
			details: "Reads of this connection are linearizable again: they show everything that any node " +
				"acknowledged before they were sent.", run: runReadwrite},
		{name: "ASKING", arity: 1, summary: "Follow `ASK`", group: groupCluster,
			flags: "loading stale fast", run: func(s *Session, _ [][]byte) { s.OK() },
			noEffect: "weir never answers it"},
	}
}

// clustered makes a subcommand that a server without a cluster refuses.
func clustered(name, syntax string, arity int, summary string,
	run func(*Session, *limiter.Topology, [][]byte)) *command {
	return &command{name: name, arity: arity, syntax: syntax, summary: summary, run: func(s *Session, args [][]byte) {
		if s.srv.Replica == nil {
			s.fail(errNoCluster)
			return
		}
		run(s, s.srv.Replica.Topology(), args)
	}}
}

// slotCommands are the subcommands that search for the keys of a hash slot.
func slotCommands() []*command {
	commands := []*command{
		{name: "COUNTKEYSINSLOT", syntax: "slot", arity: 3, summary: "How many keys hash to a slot",
			read: slotState(runCountKeys)},
		{name: "GETKEYSINSLOT", syntax: "slot count", arity: 4, summary: "Keys that hash to a slot",
			params: []param{{"count", "the greatest number of keys to list, at most 10000"}},
			read:   slotState(runGetKeysInSlot)},
	}
	for _, cmd := range commands {
		cmd.flags, cmd.bulky, cmd.cost = "readonly", true, "O(n) in the keys of the server"
	}
	return commands
}

func runCountKeys(s *Session, v limiter.View, args [][]byte) {
	slot, err := clusterSlot(s.srv, args[2])
	if !s.guarded(err) {
		return
	}
	found := keysInSlot(slot)
	n := 0
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = v.Scan(cursor, keysStep, found.visit)
		found.sift()
		n += found.len()
		found.list, found.ends = found.list[:0], found.ends[:0]
	}
	s.Int(int64(n))
}

func runGetKeysInSlot(s *Session, v limiter.View, args [][]byte) {
	slot, err := clusterSlot(s.srv, args[2])
	if !s.guarded(err) {
		return
	}
	count, err := limits.Units("count", args[3], 0, maxKeysReply)
	if !s.guarded(err) {
		return
	}
	found := keysInSlot(slot)
	for cursor, more := uint64(0), true; more && int64(found.len()) < count; more = cursor != 0 {
		cursor = v.Scan(cursor, keysStep, found.visit)
		found.sift()
	}
	names := found.names()
	writeNames(s.Reply, names[:min(int64(len(names)), count)])
}

// clusterSlot reads a slot, for commands that a server without a cluster refuses.
func clusterSlot(srv *Shared, b []byte) (uint16, error) {
	if srv.Replica == nil {
		return 0, errNoCluster
	}
	return slotArg(b)
}

func slotArg(b []byte) (slot uint16, err error) {
	n, ok := limits.Int(b)
	if !ok || n < 0 || n >= hashslot.Count {
		return 0, errBadSlot
	}
	return uint16(n), nil
}

// keysInSlot returns a keyList that keeps the keys of a hash slot. The limiters of a policy belong to the slot of the
// key that they count, because the Raft group of this slot has them.
func keysInSlot(slot uint16) keyList {
	return keyList{keep: func(key []byte, _ engine.Algorithm) bool { return engine.SlotOf(key) == slot }}
}

func runClusterMyID(s *Session, _ [][]byte) {
	if s.srv.Replica == nil {
		s.Bulk(s.srv.runID)
		return
	}
	s.Bulk(info.NodeID(s.srv.Replica.Topology().Self))
}

func runClusterSlots(s *Session, t *limiter.Topology, _ [][]byte) {
	owners := slices.DeleteFunc(info.Owners(t), func(o info.Owner) bool { return !o.Primary.HasAddress() })
	s.Array(len(owners))
	for _, o := range owners {
		nodes := info.Serving(o.Primary, o.Replicas)
		s.Array(2 + len(nodes))
		s.Int(int64(o.Slots.First))
		s.Int(int64(o.Slots.Last))
		for _, m := range nodes {
			host, port, _ := m.HostPort()
			s.Array(4)
			s.Bulk(host)
			s.Int(int64(port))
			s.Bulk(info.NodeID(m.ID))
			s.Map(0) // further addresses
		}
	}
}

func runClusterShards(s *Session, t *limiter.Topology, _ [][]byte) {
	shards := slices.DeleteFunc(info.Shards(t), func(o info.Shard) bool { return !o.Primary.HasAddress() })
	s.Array(len(shards))
	for _, shard := range shards {
		s.Map(2)
		s.Bulk("slots")
		s.Array(2 * len(shard.Slots))
		for _, r := range shard.Slots {
			s.Int(int64(r.First))
			s.Int(int64(r.Last))
		}
		nodes := info.Serving(shard.Primary, shard.Replicas)
		s.Bulk("nodes")
		s.Array(len(nodes))
		for i, m := range nodes {
			writeShardNode(s.Reply, t, m, i == 0)
		}
	}
}

// runClusterReplicas answers the lines of CLUSTER NODES about the replicas of a node.
func runClusterReplicas(s *Session, t *limiter.Topology, args [][]byte) {
	at := slices.IndexFunc(t.Nodes, func(m limiter.Member) bool { return info.NodeID(m.ID) == string(args[2]) })
	if at < 0 {
		s.fail(resp.Error("ERR Unknown node " + quote.Printable(args[2], maxNodeIDBytes)))
		return
	}
	lines, ok := info.ReplicaLines(t, &t.Nodes[at])
	if !ok {
		s.fail(errNotMaster)
		return
	}
	s.Strings(lines)
}

func writeShardNode(w resp.Reply, t *limiter.Topology, m *limiter.Member, primary bool) {
	host, port, _ := m.HostPort()
	role, health := "replica", "online"
	if primary {
		role = "master"
	}
	if !m.Up && m.ID != t.Self {
		health = "fail"
	}
	w.Map(7)
	w.Pair("id", info.NodeID(m.ID))
	w.PairInt("port", int64(port))
	w.Pair("ip", host)
	w.Pair("endpoint", host)
	w.Pair("role", role)
	w.PairInt("replication-offset", int64(m.AppliedIndex))
	w.Pair("health", health)
}

// runClusterLinks answers only the fields of Redis whose values weir knows.
func runClusterLinks(s *Session, t *limiter.Topology, _ [][]byte) {
	others := t.Count(func(m *limiter.Member) bool { return m.Up && m.ID != t.Self })
	s.Array(others)
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.Up && m.ID != t.Self {
			s.Map(2)
			s.Pair("direction", "to")
			s.Pair("node", info.NodeID(m.ID))
		}
	}
}

func runRole(s *Session, _ [][]byte) {
	if s.srv.Replica == nil {
		writeMasterRole(s.Reply, new(limiter.Topology))
		return
	}
	if t := s.srv.Replica.Topology(); info.IsPrimary(t) {
		writeMasterRole(s.Reply, t)
	} else {
		writeReplicaRole(s.Reply, t)
	}
}

func writeMasterRole(w resp.Reply, t *limiter.Topology) {
	others := info.Replicas(t)
	w.Array(3)
	w.Bulk("master")
	w.Int(int64(t.CommitIndex))
	w.Array(len(others))
	for _, m := range others {
		host, port, _ := m.HostPort()
		w.Strings([]string{host, fmt.Sprint(port), fmt.Sprint(m.AppliedIndex)})
	}
}

func writeReplicaRole(w resp.Reply, t *limiter.Topology) {
	primary, up := info.Upstream(t)
	host, port, _ := primary.HostPort()
	state := "connected"
	if !up {
		state = "connect"
	}
	w.Array(5)
	w.Bulk("slave")
	w.Bulk(host)
	w.Int(int64(port))
	w.Bulk(state)
	w.Int(int64(t.AppliedIndex))
}
