package commands

import (
	"bytes"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
)

const clusterDetails = "Cluster clients see one shard: the leader is the primary and owns every slot, the other nodes are its replicas. Node ids are the SHA-1 of the " +
	"names of the nodes, the epoch is Raft's term. While no leader is known, the map shows the last leader and `cluster_state` is `fail`."

func clusterCommands() []*command {
	accept := func(name, summary string) *command {
		return &command{name: name, arity: 1, summary: summary, group: groupCluster, flags: "loading stale fast",
			run: func(s *Session, _ [][]byte) { s.OK() }}
	}
	return []*command{
		{
			name: "CLUSTER", arity: -2, group: groupCluster, flags: "loading stale", summary: "What cluster clients ask", details: clusterDetails,
			subs: []*command{
				{name: "INFO", arity: 2, summary: "The state of the cluster", run: runClusterInfo},
				{name: "MYID", arity: 2, summary: "The id of this node", run: runClusterMyID},
				{name: "KEYSLOT", arity: 3, syntax: "key", summary: "The hash slot of a key", run: func(s *Session, args [][]byte) { s.Int(int64(keySlot(args[2]))) }},
				clustered("NODES", "", 2, "The nodes, one a line", runClusterNodes),
				clustered("SLOTS", "", 2, "The leader and its replicas as owners of all slots", runClusterSlots),
				clustered("SHARDS", "", 2, "The one shard and its nodes", runClusterShards),
				clustered("LINKS", "", 2, "The other nodes that are up", runClusterLinks),
				countKeysCommand(),
			},
		},
		{name: "READONLY", arity: 1, summary: "Allow stale reads on this connection", group: groupCluster, flags: "loading stale fast",
			details: "From here on this node answers reads from its own state, also without a leader. The answers may be stale. Maps show their age in `stale_ms`, " +
				"also the empty map of `RL.INSPECT` for an idle key. `READWRITE` and `RESET` end this. Decisions and changes are not affected.", run: runReadonly},
		{name: "READWRITE", arity: 1, summary: "End stale reads on this connection", group: groupCluster, flags: "loading stale fast",
			details: "Reads of this connection are linearizable again: they show everything that any node acknowledged before they were sent.", run: runReadwrite},
		accept("ASKING", "Accepted without effect"),
	}
}

// clustered makes a subcommand that a server which stands alone refuses.
func clustered(name, syntax string, arity int, summary string, run func(*Session, *limiter.Topology, [][]byte)) *command {
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
	if !ok || slot < 0 || slot >= keySlots {
		s.fail(errBadSlot)
		return
	}
	found := keyList{keep: func(key []byte, _ engine.Algorithm) bool { return int64(keySlot(key)) == slot }}
	n := 0
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = s.srv.Limiter.Scan(cursor, keysStep, found.visit)
		found.sift()
		n += found.n
		found.n, found.replies = 0, found.replies[:0]
	}
	s.Int(int64(n))
}

// keySlots is the number of hash slots of a Redis cluster.
const keySlots = 16384

// keySlot hashes a key, or the part of it in braces, as Redis clusters do.
func keySlot(key []byte) uint16 {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if length := bytes.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return crc16(key) % keySlots
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, from zero, nothing reflected.
func crc16(b []byte) (crc uint16) {
	for _, c := range b {
		crc ^= uint16(c) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
