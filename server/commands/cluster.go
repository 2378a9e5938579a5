package commands

import (
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/resp"
)

const clusterDetails = "Cluster clients see one shard: the leader is the primary and owns every slot, the other " +
	"nodes are its replicas. Node ids are the SHA-1 of the " +
	"names of the nodes, the epoch is Raft's term. While no leader is known, the map shows the last leader and " +
	"`cluster_state` is `fail`."

func clusterCommands() []*command {
	accept := func(name, summary string) *command {
		return &command{name: name, arity: 1, summary: summary, group: groupCluster, flags: "loading stale fast",
			run: func(s *Session, _ [][]byte) { s.OK() }}
	}
	return []*command{
		{
			name: "CLUSTER", arity: -2, group: groupCluster, flags: "loading stale",
			summary: "Commands for cluster clients", details: clusterDetails,
			subs: []*command{
				{name: "INFO", arity: 2, summary: "The state of the cluster", run: func(s *Session, _ [][]byte) {
					s.Verbatim(info.ClusterState(s.srv.Replica))
				}},
				{name: "MYID", arity: 2, summary: "The id of this node", run: runClusterMyID},
				{name: "KEYSLOT", arity: 3, syntax: "key", summary: "The hash slot of a key",
					run: func(s *Session, args [][]byte) { s.Int(int64(hashslot.Of(args[2]))) }},
				clustered("NODES", "", 2, "The nodes, one a line", func(s *Session, t *limiter.Topology, _ [][]byte) {
					s.Verbatim(info.ClusterNodes(t))
				}),
				clustered("SLOTS", "", 2, "The leader and its replicas as owners of all slots", runClusterSlots),
				clustered("SHARDS", "", 2, "The one shard and its nodes", runClusterShards),
				clustered("LINKS", "", 2, "The other nodes that are up", runClusterLinks),
				countKeysCommand(),
			},
		},
		{name: "READONLY", arity: 1, summary: "Allow stale reads on this connection", group: groupCluster,
			flags: "loading stale fast",
			details: "From here on this node answers reads from its own state, also without a leader. The answers " +
				"may be stale. Maps show their age in `stale_ms`, " +
				"also the empty map of `RL.INSPECT` for an idle key. `READWRITE` and `RESET` end this. Decisions " +
				"and changes are not affected.", run: runReadonly},
		{name: "READWRITE", arity: 1, summary: "End stale reads on this connection", group: groupCluster,
			flags: "loading stale fast",
			details: "Reads of this connection are linearizable again: they show everything that any node " +
				"acknowledged before they were sent.", run: runReadwrite},
		accept("ASKING", "Accepted without effect"),
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

func countKeysCommand() *command {
	cmd := clustered("COUNTKEYSINSLOT", "slot", 3, "How many keys hash to a slot", runCountKeys)
	cmd.flags, cmd.bulky, cmd.cost = "readonly", true, "O(n) in the keys of the server"
	return cmd
}

func runCountKeys(s *Session, _ *limiter.Topology, args [][]byte) {
	slot, ok := arg.Int(args[2])
	if !ok || slot < 0 || slot >= hashslot.Count {
		s.fail(errBadSlot)
		return
	}
	found := keyList{keep: func(key []byte, _ engine.Algorithm) bool { return int64(hashslot.Of(key)) == slot }}
	n := 0
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = s.srv.Limiter.Scan(cursor, keysStep, found.visit)
		found.sift()
		n += found.n
		found.n, found.replies = 0, found.replies[:0]
	}
	s.Int(int64(n))
}

func runClusterMyID(s *Session, _ [][]byte) {
	if s.srv.Replica == nil {
		s.Bulk(s.srv.runID)
		return
	}
	s.Bulk(info.NodeID(s.srv.Replica.Topology().Self))
}

func runClusterSlots(s *Session, t *limiter.Topology, _ [][]byte) {
	nodes := info.Serving(t)
	if len(nodes) == 0 {
		s.Array(0)
		return
	}
	s.Array(1)
	s.Array(2 + len(nodes))
	s.Int(0)
	s.Int(hashslot.Count - 1)
	for _, m := range nodes {
		host, port, _ := m.HostPort()
		s.Array(4)
		s.Bulk(host)
		s.Int(int64(port))
		s.Bulk(info.NodeID(m.ID))
		s.Map(0) // further addresses
	}
}

func runClusterShards(s *Session, t *limiter.Topology, _ [][]byte) {
	nodes := info.Serving(t)
	if len(nodes) == 0 {
		s.Array(0)
		return
	}
	s.Array(1)
	s.Map(2)
	s.Bulk("slots")
	s.Array(2)
	s.Int(0)
	s.Int(hashslot.Count - 1)
	s.Bulk("nodes")
	s.Array(len(nodes))
	for i, m := range nodes {
		writeShardNode(&s.Writer, t, m, i == 0)
	}
}

func writeShardNode(w *resp.Writer, t *limiter.Topology, m *limiter.Member, primary bool) {
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

// runClusterLinks answers the fields of Redis that weir knows.
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
		writeMasterRole(&s.Writer, new(limiter.Topology))
		return
	}
	if t := s.srv.Replica.Topology(); t.Leads() {
		writeMasterRole(&s.Writer, t)
	} else {
		writeReplicaRole(&s.Writer, t)
	}
}

func writeMasterRole(w *resp.Writer, t *limiter.Topology) {
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

func writeReplicaRole(w *resp.Writer, t *limiter.Topology) {
	host, port, _ := t.Primary().HostPort()
	state := "connected"
	if t.Leader == "" {
		state = "connect"
	}
	w.Array(5)
	w.Bulk("slave")
	w.Bulk(host)
	w.Int(int64(port))
	w.Bulk(state)
	w.Int(int64(t.AppliedIndex))
}
