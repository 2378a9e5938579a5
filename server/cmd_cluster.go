package server

import "bytes"

func clusterCommands() []*command {
	accept := func(name, summary string) *command {
		return &command{name: name, arity: 1, summary: summary, group: groupCluster, flags: "loading stale fast",
			run: func(s *session, _ [][]byte) { s.ok() }}
	}
	disabled := func(name, syntax string, arity int) *command {
		return &command{name: name, arity: arity, syntax: syntax, summary: "Refused: this server is not part of a cluster",
			run: func(s *session, _ [][]byte) { s.fail(errNoCluster) }}
	}
	return []*command{
		{
			name: "CLUSTER", arity: -2, group: groupCluster, flags: "loading stale", summary: "What cluster clients ask; this server stands alone",
			subs: []*command{
				{name: "INFO", arity: 2, summary: "The state of the cluster, as a cluster of one sees it", run: runClusterInfo},
				{name: "MYID", arity: 2, summary: "The id of this node", run: func(s *session, _ [][]byte) { s.bulk(s.srv.state.identity.runID) }},
				{name: "KEYSLOT", arity: 3, syntax: "key", summary: "The hash slot of a key", run: func(s *session, args [][]byte) { s.int(int64(keySlot(args[2]))) }},
				disabled("NODES", "", 2), disabled("SLOTS", "", 2), disabled("SHARDS", "", 2), disabled("LINKS", "", 2),
				disabled("COUNTKEYSINSLOT", "slot", 3),
			},
		},
		accept("READONLY", "Accepted without effect"), accept("READWRITE", "Accepted without effect"), accept("ASKING", "Accepted without effect"),
	}
}

func runClusterInfo(s *session, _ [][]byte) {
	var w infoWriter
	w.field("cluster_enabled", 0)
	w.field("cluster_state", "ok")
	w.field("cluster_slots_assigned", 0)
	w.field("cluster_slots_ok", 0)
	w.field("cluster_slots_pfail", 0)
	w.field("cluster_slots_fail", 0)
	w.field("cluster_known_nodes", 1)
	w.field("cluster_size", 0)
	w.field("cluster_current_epoch", 0)
	w.field("cluster_my_epoch", 0)
	s.verbatim(w.String())
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
