package commands

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// With four groups the slots of these keys, in this order, are in the groups 0 to 3.
const (
	take0 = "RL.FIXED hello FOREVER 9" // slot 866
	take1 = "RL.FIXED bar FOREVER 9"   // slot 5061
	take2 = "RL.FIXED foo FOREVER 9"   // slot 12182
	take3 = "RL.FIXED x FOREVER 9"     // slot 16287
)

func TestClusterViewOfGroups(t *testing.T) {
	nodeA, nodeB := "10.0.0.1 6380 "+idA+" ", "10.0.0.2 6380 "+idB+" "
	nodeC := "c.example 6380 " + idC + " "
	shardA := func(role string) string {
		return "id " + idA + " port 6380 ip 10.0.0.1 endpoint 10.0.0.1 role " + role +
			" replication-offset 42 health online"
	}
	shardB := func(role string) string {
		return "id " + idB + " port 6380 ip 10.0.0.2 endpoint 10.0.0.2 role " + role +
			" replication-offset 41 health online"
	}
	shardC := "id " + idC + " port 6380 ip c.example endpoint c.example role replica replication-offset 42 " +
		"health online"
	for _, test := range []struct {
		name, self    string
		leaders       []string
		change        func(*limiter.Topology)
		nodes         []string // lines, with P for the pong time
		slots, shards []string
		state         string // of CLUSTER INFO
	}{
		{
			name: "two primaries and a replica", self: "a", leaders: []string{"a", "b", "b", "a"},
			nodes: []string{
				idA + " 10.0.0.1:6380@6390 myself,master - 0 0 10 connected 0-4095 12288-16383",
				idB + " 10.0.0.2:6380@6391 master - 0 P 9 connected 4096-12287",
				idC + " c.example:6380@6392 slave " + idA + " 0 P 10 connected",
			},
			slots: []string{"0 4095 " + nodeA, nodeB, nodeC + " 4096 12287 " + nodeB, nodeA,
				nodeC + " 12288 16383 " + nodeA, nodeB, nodeC},
			shards: []string{"slots 0 4095 12288 16383 nodes " + shardA("master"), shardB("replica"),
				shardC + " slots 4096 12287 nodes " + shardB("master"), shardA("replica"), shardC},
			state: "1 ok 16384 16384 0 0 3 2 10 10",
		},
		{
			name: "groups without a leader", self: "c", leaders: []string{"", "b", "", "a"},
			nodes: []string{
				idA + " 10.0.0.1:6380@6390 master - 0 P 10 connected 0-4095 12288-16383",
				idB + " 10.0.0.2:6380@6391 master - 0 P 9 connected 4096-12287",
				idC + " c.example:6380@6392 myself,slave " + idA + " 0 0 10 connected",
			},
			slots: []string{"0 4095 " + nodeA, nodeB, nodeC + " 4096 12287 " + nodeB, nodeA,
				nodeC + " 12288 16383 " + nodeA, nodeB, nodeC},
			shards: []string{"slots 0 4095 12288 16383 nodes " + shardA("master"), shardB("replica"),
				shardC + " slots 4096 12287 nodes " + shardB("master"), shardA("replica"), shardC},
			state: "1 fail 16384 8192 0 8192 3 2 10 10",
		},
		{
			name: "a group that never had a leader, a primary without an address", self: "c",
			leaders: []string{"a", "b", "b", "a"},
			change: func(t *limiter.Topology) {
				t.Groups[0].Leader, t.Groups[0].LastLeader = "", ""
				t.Nodes[1].ClientAddr = ""
			},
			nodes: []string{
				idA + " 10.0.0.1:6380@6390 master - 0 P 10 connected 12288-16383",
				idB + " :0@6391 slave,noaddr " + idC + " 0 P 9 connected",
				idC + " c.example:6380@6392 myself,master - 0 0 9 connected 0-12287",
			},
			slots: []string{"0 12287 " + nodeC, nodeA + " 12288 16383 " + nodeA, nodeC},
			shards: []string{"slots 0 12287 nodes " + strings.Replace(shardC, "replica", "master", 1),
				shardA("replica"), "slots 12288 16383 nodes " + shardA("master"), shardC},
			state: "1 fail 16384 12288 0 4096 3 2 10 9",
		},
		{
			name: "groups that never had a leader", self: "a", leaders: []string{"", "", "", ""},
			change: func(t *limiter.Topology) {
				for i := range t.Groups {
					t.Groups[i].LastLeader = ""
				}
				t.Nodes = t.Nodes[:1]
			},
			nodes: []string{idA + " 10.0.0.1:6380@6390 myself,slave - 0 0 10 connected"},
			state: "1 fail 16384 0 0 16384 1 1 10 10",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := servertest.NewFakeCluster()
			f.Split("a", "b", "b", "a")
			f.Split(test.leaders...)
			if test.change != nil {
				f.Change(test.change)
			}
			c, _ := clusterClient(t, f, test.self, Config{})
			pong := regexp.MustCompile(` 0 [1-9][0-9]{12} `)
			assert.Equal(t, strings.Join(test.nodes, "\n")+"\n", pong.ReplaceAllString(c.say("CLUSTER NODES"), " 0 P "))
			assert.Equal(t, strings.Join(test.slots, " "), c.say("CLUSTER SLOTS"))
			assert.Equal(t, strings.Join(test.shards, " "), c.say("CLUSTER SHARDS"))
			names := regexp.MustCompile(`cluster_[a-z_]+:`)
			values := strings.Fields(names.ReplaceAllString(c.say("CLUSTER INFO"), ""))
			assert.Equal(t, test.state, strings.Join(values, " "))
		})
	}
}

func TestClusterReplicas(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "b", Config{})
	require.Contains(t, c.say("CLUSTER REPLICAS "+idA),
		idB+" 10.0.0.2:6380@6391 myself,slave "+idA+" 0 0 7 connected "+idC)
	assert.Equal(t, "-ERR The specified node is not a master", c.say("CLUSTER REPLICAS "+idB))
	assert.Equal(t, "-ERR Unknown node x", c.say("CLUSTER REPLICAS x"))

	f.Split("a", "b")
	assert.Contains(t, c.say("CLUSTER REPLICAS "+idA), idC+" c.example:6380@6392 slave "+idA)
	assert.Empty(t, c.say("CLUSTER REPLICAS "+idB))
	assert.Equal(t, "-ERR The specified node is not a master", c.say("CLUSTER REPLICAS "+idC))
}

// TestKeysInSlot checks that a limiter of a policy is found in the slot of the key that it counts, because the group of
// that slot has the limiter.
func TestKeysInSlot(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "b", Config{})
	for _, send := range []string{"RL.FIXED {x}1 FOREVER 9", "RL.FIXED {x}2 FOREVER 9", "RL.FIXED y FOREVER 9",
		"RL.POLICY SET p LIMIT FIXED 1m 5", "RL.CHECK p x"} {
		c.say(send)
	}
	assert.Len(t, strings.Fields(c.say("CLUSTER GETKEYSINSLOT 16287 9")), 3)
	assert.Equal(t, "-ERR count must be a whole number from 0 to 10000, not 'x'", c.say("CLUSTER GETKEYSINSLOT 1 x"))
	assert.Equal(t, "-"+string(errBadSlot), c.say("CLUSTER GETKEYSINSLOT 16384 1"))
	assert.Empty(t, c.say("CLUSTER GETKEYSINSLOT 16287 0"))

	f.Split("a", "b")
	assert.Equal(t, "3", c.say("CLUSTER COUNTKEYSINSLOT 16287"))
	assert.Len(t, strings.Fields(c.say("CLUSTER GETKEYSINSLOT 16287 9")), 3)
	assert.Len(t, strings.Fields(c.say("CLUSTER GETKEYSINSLOT 16287 1")), 1)
}

func TestRedirectByGroup(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("b", "a", "b", "c")
	c, node := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved})
	assert.Equal(t, "1 8 0 -1 9", c.say(take0))
	assert.Equal(t, "-MOVED 5061 10.0.0.1:6380", c.say(take1))
	assert.Equal(t, "1 8 0 -1 9", c.say(take2))
	assert.Equal(t, "-MOVED 16287 c.example:6380", c.say(take3))
	assert.Equal(t, "fixed", c.say("TYPE hello"))
	assert.Equal(t, "none", c.say("TYPE bar"), "reads must not be redirected")

	f.Split("b", "", "", "b")
	assert.Equal(t, "-CLUSTERDOWN the cluster has no leader, nothing was counted", c.say(take1))
	assert.Equal(t, "1 8 0 -1 9", c.say(take3), "a group without a leader must not stop the others")

	f.Change(func(t *limiter.Topology) { t.Nodes[0].ClientAddr, t.Groups[1].Leader = "", "a" })
	before := node.Decided.Load()
	assert.Equal(t, "1 8 0 -1 9", c.say(take1), "forwarded: there is nowhere to send the client")
	assert.EqualValues(t, 1, node.Decided.Load()-before)

	assert.Equal(t, "1", c.say("RL.POLICY SET p LIMIT FIXED 1m 5"), "a policy is in every group")
	f.Split("a", "b", "a", "a")
	assert.Equal(t, "2", c.say("RL.POLICY SET p LIMIT FIXED 1m 6"))
	assert.Equal(t, "1 5 0 60000 6 p", c.say("RL.CHECK p bar"))
	assert.Equal(t, "-CROSSSLOT", strings.Fields(c.say("RL.CHECK p bar p hello"))[0])
	f.Split("c", "b", "a", "a")
	assert.Equal(t, "-MOVED 866 c.example:6380", c.say("RL.CHECK p hello"))
}

// TestSeveralKeysOfSeveralGroups checks that a node executes a command on keys of several groups if it leads the group
// of the first key. A redirect for a later key would lead the client back and forth.
func TestSeveralKeysOfSeveralGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("b", "a", "b", "a")
	b, _ := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved})
	a, _ := clusterClient(t, f, "a", Config{Redirect: service.RedirectMoved})
	b.say(take0)
	a.say(take1)
	assert.Equal(t, "-MOVED 5061 10.0.0.1:6380", b.say("DEL bar hello"))
	assert.Equal(t, "2", a.say("DEL bar hello"))
	b.say("SET hello 1")
	a.say("SET bar 2")
	assert.Equal(t, "1 2", b.say("MGET hello bar"))
	assert.Equal(t, "2", b.say("EXISTS hello bar"))
	assert.Equal(t, "2", b.say("EVAL \""+deleteAllBegin+"*"+deleteAllEnd+"\" 0"))
}

func TestTransactionOfGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("b", "a", "b", "a")
	c, _ := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved})
	c.say("MULTI")
	assert.Equal(t, "-MOVED 5061 10.0.0.1:6380", c.say(take1))
	assert.Equal(t, "-"+string(errExecAbort), c.say("EXEC"))

	for _, redirect := range []string{service.RedirectMoved, service.RedirectForward} {
		c, _ := clusterClient(t, f, "b", Config{Redirect: redirect})
		c.say("MULTI")
		assert.Equal(t, "QUEUED", c.say(take0))
		assert.Equal(t, "QUEUED", c.say(take2))
		assert.True(t, strings.HasPrefix(c.say("EXEC"), "-CROSSSLOT "), redirect)
		assert.Equal(t, "-"+string(errExecNoMulti), c.say("EXEC"))
		assert.EqualValues(t, 0, f.Len(0))
	}

	c.say("MULTI")
	assert.Equal(t, "QUEUED", c.say("RL.FIXED {foo}1 FOREVER 9"))
	assert.Equal(t, "QUEUED", c.say("RL.FIXED {foo}2 FOREVER 9"))
	assert.Equal(t, "1 8 0 -1 9 1 8 0 -1 9", c.say("EXEC"))
}

// TestHoldIDsOfGroups checks that a generated hold id is in the slot of its key, so that one group has both.
func TestHoldIDsOfGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("b", "b", "b", "b")
	c, _ := clusterClient(t, f, "b", Config{})
	c.say("RL.POLICY SET p LIMIT FIXED 1m 5")
	for _, key := range []string{"foo", "x", "a}b", "{user}7"} {
		reply := strings.Fields(c.say("RL.RESERVE p " + key + " 2 1m"))
		require.Len(t, reply, 6, reply)
		id := reply[5]
		assert.Equal(t, hashslot.Of([]byte(key)), hashslot.Of([]byte(id)))
		assert.LessOrEqual(t, len(id), 32)
		assert.Equal(t, "1", c.say("RL.CANCEL "+id))
	}
	assert.True(t, strings.HasPrefix(c.say("RL.RESERVE p foo 2 1m ID other"), "-CROSSSLOT "))
}

func TestRolesOfGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("b", "a", "b", "b")
	clients := map[string]*testClient{}
	for _, id := range []string{"a", "b", "c"} {
		clients[id], _ = clusterClient(t, f, id, Config{})
	}
	for _, id := range []string{"a", "b"} {
		assert.Contains(t, clients[id].say("ROLE"), "master ")
		assert.Contains(t, clients[id].say("HELLO 3"), "mode cluster role master")
		assert.Contains(t, clients[id].say("INFO replication"), "role:master\r\nconnected_slaves:2\r\n")
	}
	assert.Contains(t, clients["a"].say("INFO raft"),
		"raft_leader_id:b\r\nraft_is_leader:1\r\n")
	assert.Contains(t, clients["a"].say("INFO raft"),
		"raft_groups:4\r\nraft_groups_led:1\r\nraft_groups_leaderless:0\r\nraft_groups_ended:0\r\n")
	assert.Equal(t, "slave 10.0.0.2 6380 connected 40", clients["c"].say("ROLE"))
	assert.Contains(t, clients["c"].say("HELLO 3"), "role replica")
	assert.Contains(t, clients["c"].say("INFO replication"),
		"role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6380\r\nmaster_link_status:up\r\n")
	assert.Contains(t, clients["c"].say("RL.TOP DENIED"), "-MOVED 0 10.0.0.2:6380")
	assert.Empty(t, clients["a"].say("RL.TOP DENIED"), "a node shows the denials of the groups that it leads")

	f.Split("", "", "", "")
	assert.Equal(t, "slave 10.0.0.2 6380 connect 40", clients["c"].say("ROLE"))
	assert.Contains(t, clients["c"].say("INFO raft"), "raft_groups_leaderless:4\r\n")
}

// TestWaitWithGroups checks that WAIT reports no more nodes than the majority. A leader knows the progress of the other
// nodes in the first group only.
func TestWaitWithGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("a", "a")
	f.Change(func(t *limiter.Topology) { t.Nodes[1].AppliedIndex = 42 })
	c, _ := clusterClient(t, f, "a", Config{})
	assert.Equal(t, "1", c.say("WAIT 2 1"))
}

func TestStatusOfGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("a", "")
	c, _ := clusterClient(t, f, "b", Config{})
	status := c.say("WEIR.CLUSTER STATUS")
	assert.Contains(t, status, " groups first_slot 0 last_slot 8191 leader a last_leader a term 7 applied_index 40 "+
		"commit_index 42 ended  first_slot 8192 last_slot 16383 leader  last_leader  term 8 ")
	f.Change(func(t *limiter.Topology) { t.Groups[1].Ended = "removed" })
	assert.Contains(t, c.say("WEIR.CLUSTER STATUS"), " ended  first_slot 8192")
	assert.True(t, strings.HasSuffix(c.say("WEIR.CLUSTER STATUS"), " ended removed"))
	c.say("HELLO 3")
	assert.True(t, strings.HasPrefix(c.raw("weir.cluster", "status"), "%11\r\n"))
}

func TestTransferOfAGroup(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "a", Config{})
	f.Split("a", "b", "a", "c")
	assert.Equal(t, "OK", c.say("WEIR.CLUSTER TRANSFER b"))
	assert.Equal(t, "OK", c.say("WEIR.CLUSTER TRANSFER b GROUP 3"))
	assert.Equal(t, []string{"transfer b", "transfer b 3"}, f.Asked())
	for _, wrong := range []string{"b 3", "b GROUP", "b GROUP 4", "b GROUP -1", "b GROUP x", "b GROUP 1 2"} {
		assert.Contains(t, c.say("WEIR.CLUSTER TRANSFER "+wrong), "-ERR ", wrong)
	}
	assert.Len(t, f.Asked(), 2)
}

// TestAPrimaryShowsItsOwnKeys checks that a node which redirects clients counts and lists the keys of its own groups.
func TestAPrimaryShowsItsOwnKeys(t *testing.T) {
	f := servertest.NewFakeCluster()
	a, _ := clusterClient(t, f, "a", Config{})
	b, _ := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved})
	f.Split("a", "b", "a", "b")
	for _, take := range []string{take0, take1, take2, take3} {
		a.say(take)
	}
	for send, all := range map[string]string{"DBSIZE": "4", "KEYS *": "bar foo hello x",
		"SCAN 0 COUNT 99": "0 bar foo hello x"} {
		owned := map[string]string{"4": "2", "bar foo hello x": "bar x", "0 bar foo hello x": "0 bar x"}[all]
		assert.ElementsMatch(t, strings.Fields(all), strings.Fields(a.say(send)), send)
		b.sess.reads.End()
		assert.ElementsMatch(t, strings.Fields(owned), strings.Fields(b.say(send)), send)
	}
	f.Split("", "b", "a", "b")
	b.sess.reads.End()
	assert.Equal(t, "2", b.say("DBSIZE"), "a group of another node must not matter")
	assert.Contains(t, b.say("INFO keyspace"), "db0:keys=2,expires=2,")
}

// TestAPrimaryShowsTheBlacklistAsItIs checks that a node which shows the set of blocked addresses reads its members
// linearizably, although another node leads the group of the blocks.
func TestAPrimaryShowsTheBlacklistAsItIs(t *testing.T) {
	f := servertest.NewFakeCluster()
	b, node := clusterClient(t, f, "b", Config{Redirect: service.RedirectMoved, BlacklistKey: blacklistKey})
	leaders := []string{"a", "a", "a", "a"}
	own := hashslot.Group(hashslot.Of([]byte(blacklistKey)), len(leaders))
	require.NotZero(t, own, "the key of the set must not be in the group of the blocks")
	leaders[own] = "b"
	f.Split(leaders...)
	for _, send := range []string{"KEYS *", "SCAN 0", "DBSIZE"} {
		before := node.Confirms.Load()
		b.anew(send)
		assert.EqualValues(t, 2, node.Confirms.Load()-before, send)
	}
	leaders[0] = ""
	f.Split(leaders...)
	assert.True(t, strings.HasPrefix(b.anew("DBSIZE"), "-CLUSTERDOWN "))
}

// TestReadinessOfGroups checks that a node stays ready while some groups have a leader.
func TestReadinessOfGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.SetAge(1500 * time.Millisecond)
	srv, err := NewShared(silent(Config{}), f.Node("b"))
	require.NoError(t, err)
	h := newHTTP(srv)
	ready := func(status int, want string) {
		t.Helper()
		w := ask(h, http.MethodGet, "/readyz")
		assert.Equal(t, want, w.Body.String())
		assert.Equal(t, status, w.Code)
	}
	f.Split("a", "b")
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (of 2 of 2 groups)\n[+]state ok\n")
	f.Split("", "b")
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (of 1 of 2 groups)\n[+]state ok (of 1 of 2 groups)\n")
	f.Change(func(t *limiter.Topology) { t.Groups[0].Ended = "removed" })
	ready(http.StatusServiceUnavailable, "[-]node 1 of 2 groups have ended on this node\n"+
		"[+]leader ok (of 1 of 2 groups)\n[+]state ok (of 1 of 2 groups)\n")
	f.Split("", "")
	ready(http.StatusServiceUnavailable,
		"[+]node ok\n[-]leader none\n[-]state may be 1500 ms old: no majority of any group can be reached\n")
	f.Split("a", "a")
	f.Change(func(t *limiter.Topology) { t.Nodes[0].ClientAddr = "" })
	ready(http.StatusServiceUnavailable, "[+]node ok\n[-]leader a, whose client address is not known yet\n"+
		"[+]state ok\n")
	f.SetDown(limiter.ErrTryAgain)
	assert.Equal(t, http.StatusServiceUnavailable, ask(h, http.MethodGet, "/readyz").Code)
}

// TestReadinessWhileAGroupIsSilent checks which groups may leave a state unconfirmed. A group without a leader leaves
// the node ready, once the node has confirmed its state. A group with a leader does so for a few seconds.
func TestReadinessWhileAGroupIsSilent(t *testing.T) {
	f := servertest.NewFakeCluster()
	srv, err := NewShared(silent(Config{}), f.Node("b"))
	require.NoError(t, err)
	h := newHTTP(srv)
	state := func(want string) {
		t.Helper()
		lines := strings.Split(ask(h, http.MethodGet, "/readyz").Body.String(), "\n")
		assert.Equal(t, want, lines[2])
	}
	f.Split("a", "b", "a", "c")
	f.CutOff(2, limiter.ErrTryAgain, 9*time.Second)
	state("[+]state ok (of 3 of 4 groups)")
	f.CutOff(2, limiter.ErrTryAgain, 11*time.Second)
	state("[-]state of 1 of 4 groups may be 11000 ms old, first of group 2")

	f.Split("a", "b", "", "c")
	state("[+]state ok (of 3 of 4 groups)")
	f.CutOff(2, nil, limiter.UnknownAge)
	state("[-]state of 1 of 4 groups may be 3153600000000 ms old, first of group 2")
	srv.Started = srv.Started.Add(-time.Minute)
	state("[+]state ok (of 3 of 4 groups)")
}

// TestAReadNeedsItsGroupsOnly checks each command with the flag readonly while another group has no leader. A read of
// keys succeeds, and one ReadIndex serves the reads of a group that arrived together.
func TestAReadNeedsItsGroupsOnly(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, node := clusterClient(t, f, "b", Config{BlacklistKey: blacklistKey})
	f.Split("a", "b", "a", "c")
	c.say("RL.POLICY SET p LIMIT FIXED 1m 5")
	leaderless := func(group int) {
		leaders := []string{"a", "b", "a", "c"}
		leaders[group] = ""
		f.Split(leaders...)
	}
	each(c.sess.srv.table.all, func(cmd *command) {
		if !cmd.has("readonly") || cmd.subs != nil {
			return
		}
		send := readers[cmd.Full] // key k is in group 1, and policies are read from group 0
		needs := map[string]int{"k": 1, "weir:events:0": 0, "{k}z": 1, "p": 0, "1": 0, "rl:blacklist:ip": 0}
		own, keyed := -1, false
		for _, word := range strings.Fields(send)[1:] {
			if g, ok := needs[word]; ok && !keyed {
				own, keyed = g, true
			}
		}
		switch cmd.Full {
		case "rl.policy|list", "rl.events":
			own = 0
		case "rl.holds": // of a policy and a key
			own = 1
		}
		for group := range 4 {
			leaderless(group)
			before := node.Confirms.Load()
			answer := c.anew(send)
			if own < 0 || group == own {
				assert.True(t, strings.HasPrefix(answer, "-CLUSTERDOWN "), "%s without a leader of group %d", send,
					group)
				continue
			}
			assert.NotEqual(t, byte('-'), answer[0], "%s without a leader of group %d: %s", send, group, answer)
			assert.EqualValues(t, 1, node.Confirms.Load()-before, send)
		}
	})
}

// TestARunOfReadsAsksEachGroupOnce checks the ReadIndex calls of reads that arrived together.
func TestARunOfReadsAsksEachGroupOnce(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, node := clusterClient(t, f, "b", Config{})
	f.Split("a", "b", "a", "c")
	asks := func(want int, sends ...string) {
		t.Helper()
		c.sess.reads.End()
		before := node.Confirms.Load()
		for _, send := range sends {
			c.say(send)
		}
		assert.EqualValues(t, want, node.Confirms.Load()-before)
	}
	asks(2, "TTL hello", "TTL bar", "PTTL hello", "TTL bar")
	asks(2, "EXISTS hello bar hello")
	asks(2, "TTL hello", take0, "TTL hello") // reads after a decision need a new one
	asks(1, "DBSIZE", "TTL hello", "TTL bar")
	asks(1, "RL.EXPLAIN RL.FIXED k 1m 5")
	asks(2, "RL.EXPLAIN RL.FIXED k 1m 5 from 192.0.2.1") // and the first group, for the block of the address
	c.say("READONLY")
	f.CutOff(1, nil, 3*time.Second)
	f.SetAge(time.Second)
	assert.True(t, strings.HasSuffix(c.say("RL.INSPECT hello"), " stale_ms 1000"))
	assert.Equal(t, "stale_ms 3000", c.say("RL.INSPECT bar"))
}

// TestReadsThroughALayoutNeedBothGroups checks a name that the layout of a policy makes. It may be a plain limiter, or
// the name of limiters in the group of the key that the policy counts.
func TestReadsThroughALayoutNeedBothGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, node := clusterClient(t, f, "b", Config{})
	f.Split("a", "b", "a", "c")
	require.NotContains(t, c.say("RL.POLICY SET p LIMIT FIXED 1m 5 LAYOUT rate:{key}"), "ERR")
	asked := map[int64]int{}
	for i := range 20 {
		key := strings.Repeat("u", i+1)
		c.sess.reads.End()
		before := node.Confirms.Load()
		c.say("TTL rate:" + key)
		groups := int64(1)
		if hashslot.Group(hashslot.Of([]byte(key)), 4) != hashslot.Group(hashslot.Of([]byte("rate:"+key)), 4) {
			groups = 2
		}
		asked[groups]++
		assert.Equal(t, groups, node.Confirms.Load()-before, key)
	}
	assert.Len(t, asked, 2)
}

func TestMetricsOfGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("a", "b", "", "b")
	f.Change(func(t *limiter.Topology) { t.Groups[3].CommitIndex, t.Groups[2].Ended = 99, "removed" })
	srv, err := NewShared(silent(Config{}), f.Node("b"))
	require.NoError(t, err)
	for series, want := range map[string]string{
		"weir_cluster_groups": "4", "weir_cluster_groups_led": "2", "weir_cluster_groups_leaderless": "1",
		"weir_cluster_groups_behind_entries": "59", "weir_cluster_is_leader": "1", "weir_cluster_has_leader": "0",
		"weir_cluster_groups_ended": "1",
	} {
		assert.Equal(t, want, value(t, srv, series), series)
	}
}
