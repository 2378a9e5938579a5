package commands

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

// These are the SHA-1 of a, b and c.
const (
	idA = "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"
	idB = "e9d71f5ee7c92d6dc9e92ffdad17b8bd49418f98"
	idC = "84a516841ba77a5b4648de2cd0dfcb30ea46dbb4"
)

func TestClusterView(t *testing.T) {
	for _, test := range []struct {
		name, self    string
		change        func(*limiter.Topology)
		nodes         []string // lines, with P for the pong time
		slots, shards string
		state         string
	}{
		{
			name: "on the leader", self: "a",
			nodes: []string{
				idA + " 10.0.0.1:6380@6390 myself,master - 0 0 7 connected 0-16383",
				idB + " 10.0.0.2:6380@6391 slave " + idA + " 0 P 7 connected",
				idC + " c.example:6380@6392 slave " + idA + " 0 P 7 connected",
			},
			slots: "0 16383 10.0.0.1 6380 " + idA + "  10.0.0.2 6380 " + idB + "  c.example 6380 " + idC + " ",
			shards: "slots 0 16383 nodes id " + idA +
				" port 6380 ip 10.0.0.1 endpoint 10.0.0.1 role master replication-offset 42 health online" +
				" id " + idB + " port 6380 ip 10.0.0.2 endpoint 10.0.0.2 role replica replication-offset 41 " +
				"health online" +
				" id " + idC + " port 6380 ip c.example endpoint c.example role replica replication-offset 42 " +
				"health online",
			state: "ok",
		},
		{
			name: "on a follower, another down", self: "b",
			change: func(t *limiter.Topology) { t.Nodes[2].Up = false },
			nodes: []string{
				idA + " 10.0.0.1:6380@6390 master - 0 P 7 connected 0-16383",
				idB + " 10.0.0.2:6380@6391 myself,slave " + idA + " 0 0 7 connected",
				idC + " c.example:6380@6392 slave,fail " + idA + " 0 P 7 disconnected",
			},
			slots: "0 16383 10.0.0.1 6380 " + idA + "  10.0.0.2 6380 " + idB + "  c.example 6380 " + idC + " ",
			shards: "slots 0 16383 nodes id " + idA +
				" port 6380 ip 10.0.0.1 endpoint 10.0.0.1 role master replication-offset 42 health online" +
				" id " + idB + " port 6380 ip 10.0.0.2 endpoint 10.0.0.2 role replica replication-offset 41 " +
				"health online" +
				" id " + idC + " port 6380 ip c.example endpoint c.example role replica replication-offset 42 " +
				"health fail",
			state: "ok",
		},
		{
			name: "no leader, an address unknown", self: "b",
			change: func(t *limiter.Topology) {
				t.Leader, t.LastLeader, t.Nodes[2].ClientAddr, t.Nodes[0].Up = "", "a", "", false
			},
			nodes: []string{
				idA + " 10.0.0.1:6380@6390 master,fail - 0 0 7 disconnected 0-16383",
				idB + " 10.0.0.2:6380@6391 myself,slave " + idA + " 0 0 7 connected",
				idC + " :0@6392 slave,noaddr " + idA + " 0 P 7 connected",
			},
			slots: "0 16383 10.0.0.1 6380 " + idA + "  10.0.0.2 6380 " + idB + " ",
			shards: "slots 0 16383 nodes id " + idA +
				" port 6380 ip 10.0.0.1 endpoint 10.0.0.1 role master replication-offset 42 health fail" +
				" id " + idB + " port 6380 ip 10.0.0.2 endpoint 10.0.0.2 role replica replication-offset 41 " +
				"health online",
			state: "fail",
		},
		{
			name: "never a leader", self: "b",
			change: func(t *limiter.Topology) { t.Leader, t.LastLeader, t.Nodes = "", "", t.Nodes[1:2] },
			nodes:  []string{idB + " 10.0.0.2:6380@6391 myself,slave - 0 0 7 connected"},
			state:  "fail",
		},
		{
			name: "the leader's address unknown", self: "a",
			change: func(t *limiter.Topology) { t.Nodes[0].ClientAddr, t.Nodes = "", t.Nodes[:1] },
			nodes:  []string{idA + " :0@6390 myself,master,noaddr - 0 0 7 connected 0-16383"},
			state:  "ok",
		},
		{
			name: "the leader's address unknown, on a follower", self: "b",
			change: func(t *limiter.Topology) { t.Nodes[0].ClientAddr, t.Nodes = "", t.Nodes[:2] },
			nodes: []string{
				idA + " :0@6390 slave,noaddr " + idB + " 0 P 7 connected",
				idB + " 10.0.0.2:6380@6391 myself,master - 0 0 7 connected 0-16383",
			},
			slots: "0 16383 10.0.0.2 6380 " + idB + " ",
			shards: "slots 0 16383 nodes id " + idB +
				" port 6380 ip 10.0.0.2 endpoint 10.0.0.2 role master replication-offset 41 health online",
			state: "ok",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := servertest.NewFakeCluster()
			if test.change != nil {
				f.Change(test.change)
			}
			c, _ := clusterClient(t, f, test.self, Config{})
			pong := regexp.MustCompile(` 0 [1-9][0-9]{12} `)
			assert.Equal(t, strings.Join(test.nodes, "\n")+"\n", pong.ReplaceAllString(c.say("CLUSTER NODES"), " 0 P "))
			assert.Equal(t, test.slots, c.say("CLUSTER SLOTS"))
			assert.Equal(t, test.shards, c.say("CLUSTER SHARDS"))
			assert.Contains(t, c.say("CLUSTER INFO"), "cluster_enabled:1\r\ncluster_state:"+test.state+
				"\r\ncluster_slots_assigned:16384\r\n")
		})
	}
}

func TestClusterSlotsOnTheWire(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Change(func(t *limiter.Topology) { t.Nodes = t.Nodes[:1] })
	c, _ := clusterClient(t, f, "a", Config{})
	reply := "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$8\r\n10.0.0.1\r\n:6380\r\n$40\r\n" + idA + "\r\n"
	assert.Equal(t, reply+"*0\r\n", c.raw("cluster", "slots"))
	c.say("HELLO 3")
	assert.Equal(t, reply+"%0\r\n", c.raw("cluster", "slots"))
}

func TestClusterSubcommands(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "b", Config{})
	assert.Equal(t, idB, c.say("CLUSTER MYID"))
	assert.Equal(t, "direction to node "+idA+" direction to node "+idC, c.say("CLUSTER LINKS"))
	assert.Contains(t, c.say("CLUSTER INFO"),
		"cluster_slots_ok:16384\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:3\r\n"+
			"cluster_size:1\r\ncluster_current_epoch:7\r\ncluster_my_epoch:7\r\n")
	f.Lead("")
	assert.Contains(t, c.say("CLUSTER INFO"),
		"cluster_slots_ok:0\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:16384\r\n")
	f.Lead("a")
	for _, ok := range []string{"READONLY", "READWRITE", "ASKING"} {
		assert.Equal(t, "OK", c.say(ok))
	}
	c.say("RL.FIXED {x}1 FOREVER 9")
	c.say("RL.FIXED {x}2 FOREVER 9")
	c.say("RL.FIXED y FOREVER 9")
	require.Equal(t, "16287", c.say("CLUSTER KEYSLOT x"))
	for send, want := range map[string]string{
		"16287": "2", "0": "0",
		"16384": "-ERR Invalid or out of range slot: slot must be a whole number from 0 to 16383",
		"-1":    "-ERR Invalid or out of range slot: slot must be a whole number from 0 to 16383",
		"x":     "-ERR Invalid or out of range slot: slot must be a whole number from 0 to 16383",
	} {
		assert.Equal(t, want, c.say("CLUSTER COUNTKEYSINSLOT "+send), send)
	}
	assert.Contains(t, c.say("CLUSTER HELP"), "COUNTKEYSINSLOT slot")
}

func TestRoles(t *testing.T) {
	f := servertest.NewFakeCluster()
	leader, _ := clusterClient(t, f, "a", Config{})
	follower, _ := clusterClient(t, f, "b", Config{})

	assert.Equal(t, "master 42 10.0.0.2 6380 41 c.example 6380 42", leader.say("ROLE"))
	assert.Equal(t, "slave 10.0.0.1 6380 connected 40", follower.say("ROLE"))
	assert.Contains(t, leader.say("HELLO 3"), "mode cluster role master")
	assert.Contains(t, follower.say("HELLO"), "mode cluster role replica")
	assert.Contains(t, leader.say("INFO replication"), "role:master\r\nconnected_slaves:2\r\n"+
		"slave0:ip=10.0.0.2,port=6380,state=online,offset=41,lag=1\r\nslave1:ip=c.example,port=6380,state=online,offset=42,lag=2\r\n")
	assert.Contains(t, leader.say("INFO replication"), "master_repl_offset:42\r\n")
	assert.Contains(t, follower.say("INFO replication"),
		"role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6380\r\nmaster_link_status:up\r\n"+
			"master_last_io_seconds_ago:0\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:40\r\n")
	assert.Contains(t, leader.say("INFO server"), "redis_mode:cluster\r\n")
	assert.Equal(t, "# Cluster\r\ncluster_enabled:1\r\n", follower.say("INFO cluster"))
	assert.Equal(t, "cluster-enabled yes", leader.say("CONFIG GET cluster-enabled"))

	f.SetAge(1500500)
	assert.Equal(t, "# Raft\r\nraft_cluster_id:c1\r\nraft_node_id:b\r\nraft_leader_id:a\r\nraft_is_leader:0\r\nraft_term:7\r\nraft_applied_index:40\r\n"+
		"raft_commit_index:42\r\nraft_stale_ms:2\r\nraft_nodes:3\r\nraft_nodes_up:3\r\nraft_voters:3\r\n"+
		"raft_groups:1\r\nraft_groups_led:0\r\nraft_groups_leaderless:0\r\nraft_groups_ended:0\r\n",
		follower.say("INFO raft"))

	f.Change(func(t *limiter.Topology) { t.Nodes[0].Up = false }) // it has said nothing since the start
	assert.Contains(t, follower.say("INFO replication"), "master_last_io_seconds_ago:-1\r\n")
	assert.Regexp(t, "(?m)^"+idA+" .* 0 0 7 disconnected", follower.say("CLUSTER NODES"))
	f.Lead("")
	assert.Equal(t, "slave 10.0.0.1 6380 connect 40", follower.say("ROLE"))
	assert.Equal(t, "slave  0 connect 40", leader.say("ROLE"), "it owns the slots until there is a leader")
	assert.Contains(t, leader.say("INFO replication"), "role:slave\r\n")
	assert.Contains(t, leader.say("INFO replication"), "master_link_status:down\r\n")
	f.Change(func(t *limiter.Topology) { t.LastLeader = "" })
	assert.Equal(t, "slave  0 connect 40", leader.say("ROLE"))
	assert.Contains(t, leader.say("INFO replication"), "master_last_io_seconds_ago:-1\r\n")
}

func TestDebugDigest(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "b", Config{EnableDebug: true})
	require.Equal(t, "7 abc", c.say("DEBUG DIGEST"))
	f.Split("b", "a")
	require.Equal(t, "7 abc 8 abc", c.say("DEBUG DIGEST"))
}
