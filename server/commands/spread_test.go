package commands

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// spreadGroups is a cluster of the nodes a to f. The groups 4 and 5 have the same nodes, e leads nothing and has all
// that d leads, and f hosts nothing.
var spreadGroups = []string{"abc", "bcd", "cda", "dae", "bac", "bca", "cab", "dbe"}

func spreadCluster() *servertest.FakeCluster {
	f := servertest.NewFakeCluster()
	f.Spread("abcdef", spreadGroups...)
	return f
}

// mapOf is what a client of a cluster reads from CLUSTER SLOTS, SHARDS or NODES: the nodes of a range of slots by
// their letters, the primary first.
type mapOf map[hashslot.Range]string

// letterOf returns the id of a node, which is a letter, from the id that clients know it by.
func letterOf(t *testing.T, id string) string {
	t.Helper()
	for letter := 'a'; letter <= 'z'; letter++ {
		if info.NodeID(string(letter)) == id {
			return string(letter)
		}
	}
	require.Fail(t, "unknown node", id)
	return ""
}

func (c *testClient) slotsMap() mapOf {
	found := mapOf{}
	for _, r := range c.value("CLUSTER SLOTS").items {
		nodes := ""
		for _, n := range r.items[2:] {
			nodes += letterOf(c.t.(*testing.T), n.items[2].text)
		}
		found[rangeOf(r.items[0].text, r.items[1].text)] = nodes
	}
	return found
}

func (c *testClient) shardsMap() mapOf {
	found, primaries := mapOf{}, ""
	for _, shard := range c.value("CLUSTER SHARDS").items {
		nodes := ""
		for i, n := range shard.get("nodes").items {
			nodes += letterOf(c.t.(*testing.T), n.get("id").text)
			require.Equal(c.t, i == 0, n.get("role").text == "master")
		}
		require.NotContains(c.t, primaries, nodes[:1], "clients keep one shard of a primary")
		primaries += nodes[:1]
		slots := shard.get("slots").items
		for i := 0; i < len(slots); i += 2 {
			found[rangeOf(slots[i].text, slots[i+1].text)] = nodes
		}
	}
	return found
}

// nodesMap also returns the masters without slots.
func (c *testClient) nodesMap() (found mapOf, empty string) {
	found = mapOf{}
	replicas := map[string]string{}
	lines := strings.Split(strings.TrimSpace(c.say("CLUSTER NODES")), "\n")
	for _, line := range lines {
		words := strings.Fields(line)
		id := letterOf(c.t.(*testing.T), words[0])
		switch flags := strings.Split(words[2], ","); {
		case slices.Contains(flags, "slave"):
			require.Len(c.t, words, 8, line)
			replicas[words[3]] += id
		case len(words) == 8:
			empty += id
		}
	}
	for _, line := range lines {
		words := strings.Fields(line)
		for _, slots := range words[8:] {
			first, last, _ := strings.Cut(slots, "-")
			found[rangeOf(first, last)] = letterOf(c.t.(*testing.T), words[0]) + replicas[words[0]]
		}
	}
	return found, empty
}

func rangeOf(first, last string) hashslot.Range {
	from, _ := strconv.Atoi(first)
	to, _ := strconv.Atoi(last)
	return hashslot.Range{First: uint16(from), Last: uint16(to)}
}

// of returns the nodes of each group. It fails unless each slot has one range.
func (m mapOf) of(t *testing.T, groups []limiter.Group) (nodes []string) {
	t.Helper()
	slots := 0
	for r := range m {
		slots += r.Len()
	}
	require.Equal(t, hashslot.Count, slots, "a slot is missing or has two owners: %v", m)
	for _, g := range groups {
		for r, names := range m {
			if r.First <= g.Slots.First && r.Last >= g.Slots.Last {
				nodes = append(nodes, names)
			}
		}
	}
	require.Len(t, nodes, len(groups), m)
	return nodes
}

func TestClusterViewOfSpreadGroups(t *testing.T) {
	f := spreadCluster()
	groups := f.Node("a").Topology().Groups
	for _, self := range []string{"a", "e", "f"} {
		c, _ := clusterClient(t, f, self, Config{})
		slots := c.slotsMap()
		assert.Len(t, slots, 7, "neighbours with the same nodes must be one range")
		assert.Equal(t, []string{"abc", "bcd", "cad", "dae", "bac", "bac", "cab", "dbe"}, slots.of(t, groups))
		assert.Equal(t, []string{"abc", "bc", "ca", "de", "bc", "bc", "ca", "de"}, c.shardsMap().of(t, groups))
		nodes, empty := c.nodesMap()
		assert.Equal(t, []string{"a", "b", "c", "de", "b", "b", "c", "de"}, nodes.of(t, groups))
		assert.Equal(t, "f", empty)
		assert.Contains(t, c.say("CLUSTER INFO"), "cluster_known_nodes:6\r\ncluster_size:4\r\n")
		assert.Contains(t, c.say("CLUSTER REPLICAS "+info.NodeID("d")), info.NodeID("e")+" 10.0.0.5:6380@6390 ")
		assert.Empty(t, c.say("CLUSTER REPLICAS "+info.NodeID("f")))
		assert.Equal(t, "-"+string(errNotMaster), c.say("CLUSTER REPLICAS "+info.NodeID("e")))
		assert.Len(t, c.value("CLUSTER LINKS").items, 5)
	}
}

// TestRolesOfSpreadGroups checks who a node says that its replicas are, and its primary.
func TestRolesOfSpreadGroups(t *testing.T) {
	f := spreadCluster()
	role := func(self string) (said, hello, replication string) {
		c, _ := clusterClient(t, f, self, Config{})
		return c.say("ROLE"), c.value("HELLO").get("role").text, c.say("INFO replication")
	}
	said, hello, replication := role("a")
	assert.Equal(t, "master 42 10.0.0.2 6380 40 10.0.0.3 6380 40", said, "the nodes with group 0, which it leads")
	assert.Equal(t, "master", hello)
	assert.Contains(t, replication, "role:master\r\nconnected_slaves:2\r\n")
	said, hello, replication = role("e")
	assert.Equal(t, "slave 10.0.0.4 6380 connected 40", said)
	assert.Equal(t, "replica", hello)
	assert.Contains(t, replication, "role:slave\r\nmaster_host:10.0.0.4\r\n")
	said, hello, replication = role("f")
	assert.Equal(t, "master 42", strings.TrimSpace(said), "as an empty node of Redis")
	assert.Equal(t, "master", hello)
	assert.Contains(t, replication, "role:master\r\nconnected_slaves:0\r\n")
	f.Spread("abcdef", "-bc", "abc") // it never had a leader
	f.Change(func(t *limiter.Topology) { t.Groups[1].Leader = "" })
	said, _, _ = role("a")
	assert.Equal(t, "slave  0 connect 40", said, "it owns slots until there is a leader")

	c, _ := clusterClient(t, spreadCluster(), "f", Config{})
	assert.Contains(t, c.say("INFO raft"),
		"raft_replicas:3\r\nraft_replicas_here:0\r\nraft_groups_below_replicas:0\r\n")
}

// TestClusterViewsOfRandomPlacements checks that each range of slots names the leader and the voters of its group, no
// other node, and that no slot is missing or has two owners.
func TestClusterViewsOfRandomPlacements(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkPlacement(t, rand.New(rand.NewPCG(uint64(seed), 43))) })
	}
}

func checkPlacement(t *testing.T, r *rand.Rand) {
	nodes := "abcdefghi"[:3+r.IntN(7)]
	replicas := []int{1, 3, 5}[r.IntN(3)]
	groups := make([]string, 1<<r.IntN(5))
	for g := range groups {
		var list []byte
		for _, at := range r.Perm(len(nodes))[:min(replicas, len(nodes))] {
			list = append(list, nodes[at])
		}
		if r.IntN(4) == 0 && len(list) < len(nodes) { // one more, which catches up
			for _, id := range []byte(nodes) {
				if !slices.Contains(list, id) {
					list = append(list, id-'a'+'A')
					break
				}
			}
		}
		groups[g] = string(list)
	}
	f := servertest.NewFakeCluster()
	f.Spread(nodes, groups...)
	self := nodes[r.IntN(len(nodes))]
	f.Change(func(topo *limiter.Topology) {
		topo.Replicas = replicas
		for i := range topo.Groups {
			switch g := &topo.Groups[i]; r.IntN(6) {
			case 0: // no leader, and maybe the last one has left the group
				g.Leader, g.LastLeader = "", []string{"", g.Leader, string(nodes[r.IntN(len(nodes))])}[r.IntN(3)]
			case 1:
				g.Members = nil
			}
		}
		for i := range topo.Nodes {
			if m := &topo.Nodes[i]; m.ID != string(self) && r.IntN(8) == 0 {
				m.ClientAddr = ""
			}
		}
	})
	c, node := clusterClient(t, f, string(self), Config{})
	topo := node.Topology()
	if !slices.ContainsFunc(topo.Groups, func(g limiter.Group) bool { return topo.PrimaryOf(g) != nil }) {
		assert.Empty(t, c.slotsMap(), "no primary is known")
		return
	}
	slots := c.slotsMap().of(t, topo.Groups)
	shards := c.shardsMap().of(t, topo.Groups)
	found, empty := c.nodesMap()
	lines := found.of(t, topo.Groups)
	common := map[string]string{} // the nodes that have all ranges of a primary
	for i := range topo.Groups {
		g := &topo.Groups[i]
		primary, others := slots[i][:1], slots[i][1:]
		requirePrimary(t, topo, g, primary)
		assert.Equal(t, votersBut(topo, g, primary, true), others)
		before, known := common[primary]
		common[primary] = strings.Map(func(id rune) rune {
			if known && !strings.ContainsRune(before, id) {
				return -1
			}
			return id
		}, votersBut(topo, g, primary, false))
	}
	for i := range topo.Groups {
		primary, addressed := slots[i][:1], ""
		for _, id := range common[primary] {
			if topo.Member(string(id)).HasAddress() {
				addressed += string(id)
			}
		}
		assert.Equal(t, primary+addressed, shards[i])
		assert.Equal(t, primary, lines[i][:1])
		assert.Subset(t, strings.Split(common[primary], ""), strings.Split(lines[i][1:], ""))
	}
	for _, id := range empty {
		for primary, all := range common {
			assert.NotContains(t, all, string(id), "it is a replica of %s", primary)
		}
	}
}

// requirePrimary checks the primary of a group: its leader, else a node that has the group, else the node that is
// asked.
func requirePrimary(t *testing.T, topo *limiter.Topology, g *limiter.Group, primary string) {
	t.Helper()
	if topo.Member(g.Leader).HasAddress() {
		require.Equal(t, g.Leader, primary)
		return
	}
	require.True(t, topo.Member(primary).HasAddress())
	if votersBut(topo, g, "", true) != "" {
		require.True(t, topo.Serves(g, primary), "group %v, primary %s", g, primary)
		return
	}
	require.Equal(t, topo.Self, primary)
}

// votersBut returns the ids of the voters of a group except one.
func votersBut(topo *limiter.Topology, g *limiter.Group, but string, addressed bool) (ids string) {
	for _, m := range g.Members {
		if m.Voter && m.ID != but && (!addressed || topo.Member(m.ID).HasAddress()) {
			ids += m.ID
		}
	}
	return ids
}

// TestRedirectOfSpreadGroups checks what a node that hosts nothing redirects. The slot of foo is in group 5, that of
// hello in group 0, which every node has.
func TestRedirectOfSpreadGroups(t *testing.T) {
	f := spreadCluster()
	const moved = "-MOVED 12182 10.0.0.2:6380"
	c, node := clusterClient(t, f, "f", Config{Redirect: service.RedirectMoved, BlacklistKey: blacklistKey})
	for _, send := range []string{takeFoo, "TYPE foo", "TTL foo", "RL.INSPECT foo", "EXISTS foo hello",
		"RL.EXPLAIN " + takeFoo} {
		assert.Equal(t, moved, c.say(send), send)
	}
	c.say("READONLY")
	assert.Equal(t, moved, c.say("TYPE foo"), "as a replica of Redis without the slot")
	assert.Equal(t, "none", c.say("TYPE hello"), "it follows the first group")
	assert.Equal(t, "0", c.say("SCARD "+blacklistKey), "the first group has the blocks everywhere")
	assert.Equal(t, "0", c.say("CLUSTER COUNTKEYSINSLOT 12182"), "a read without a key has no owner")
	c.say("MULTI")
	c.say("TYPE foo")
	assert.Equal(t, "none", c.say("EXEC"), "a transaction of reads runs here as a whole")
	assert.Zero(t, node.Decided.Load())
	f.Change(func(t *limiter.Topology) { t.Groups[5].Leader = "" })
	assert.Equal(t, "none", c.say("TYPE foo"), "another replica may answer")
	f.Change(func(t *limiter.Topology) { t.Groups[5].Leader, t.Nodes[1].ClientAddr = "b", "" })
	assert.Equal(t, "none", c.say("TYPE foo"), "there is nowhere to send the client")
	f.Change(func(t *limiter.Topology) { t.Groups[5].Leader = "" })
	assert.Equal(t, "1 8 0 -1 9", c.say(takeFoo), "the group may have a leader of which this node has not heard")

	a, _ := clusterClient(t, spreadCluster(), "a", Config{Redirect: service.RedirectMoved})
	assert.Equal(t, "none", a.say("TYPE foo"), "it has a replica")
	forward, node := clusterClient(t, spreadCluster(), "f", Config{})
	assert.Equal(t, "1 8 0 -1 9", forward.say(takeFoo))
	assert.Equal(t, "fixed", forward.say("TYPE foo"))
	assert.EqualValues(t, 1, node.Decided.Load())
}

func TestStatusOfSpreadGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Spread("abcd", "abc", "bcD")
	f.Change(func(t *limiter.Topology) { t.Groups[1].Members[2].LagEntries, t.Nodes[2].Up = 7, false })
	c, _ := clusterClient(t, f, "a", Config{})
	status := c.value("WEIR.CLUSTER STATUS")
	assert.Equal(t, "3", status.get("replicas").text)
	var nodes []string
	for _, n := range status.get("nodes").items {
		nodes = append(nodes, strings.Join([]string{n.get("id").text, n.get("zone").text, n.get("replicas").text,
			n.get("leaders").text}, " "))
	}
	assert.Equal(t, []string{"a z1 1 1", "b z2 2 1", "c z3 2 0", "d z1 1 0"}, nodes)
	groups := status.get("groups").items
	assert.Equal(t, "0 2 id a voter 1 silent 0 lag_entries 0 id b voter 1 silent 0 lag_entries 0 "+
		"id c voter 1 silent 0 lag_entries 0",
		groups[0].get("away").text+" "+groups[0].get("replicas_up").text+" "+groups[0].get("replicas").flat())
	assert.Equal(t, "1 1 id b voter 1 silent 0 lag_entries 0 id c voter 1 silent 0 lag_entries 0 "+
		"id d voter 0 silent 0 lag_entries 7",
		groups[1].get("away").text+" "+groups[1].get("replicas_up").text+" "+groups[1].get("replicas").flat())
	c.say("HELLO 3")
	assert.True(t, strings.HasPrefix(c.raw("weir.cluster", "status"), "%12\r\n"))
}

func TestMetricsOfSpreadGroups(t *testing.T) {
	f := spreadCluster()
	f.Change(func(t *limiter.Topology) {
		t.Nodes[4].Up = false                               // two groups lose a replica
		t.Groups[6].Members, t.Groups[4].Members = nil, nil // none is known
		t.Groups[7].CommitIndex = 99
	})
	for self, here := range map[string]string{"a": "4", "e": "2", "f": "0"} {
		srv, err := NewShared(silent(Config{}), f.Node(self))
		require.NoError(t, err)
		behind := map[string]string{"a": "2", "e": "59", "f": "2"}[self]
		for series, want := range map[string]string{"weir_cluster_replicas": "3", "weir_cluster_replicas_here": here,
			"weir_cluster_groups_below_replicas": "4", "weir_cluster_groups_behind_entries": behind} {
			assert.Equal(t, want, value(t, srv, series), "%s of %s", series, self)
		}
	}
	srv, err := NewShared(silent(Config{}), servertest.NewFakeCluster().Node("a"))
	require.NoError(t, err)
	assert.Equal(t, "0", value(t, srv, "weir_cluster_replicas"))
	assert.Equal(t, "1", value(t, srv, "weir_cluster_replicas_here"))
	assert.Equal(t, "0", value(t, srv, "weir_cluster_groups_below_replicas"))
}

// TestWaitOfSpreadGroups checks that WAIT promises the copies of a group, not those of a majority of all nodes, and
// that Sentinel counts the voters of the first group.
func TestWaitOfSpreadGroups(t *testing.T) {
	f := spreadCluster()
	c, _ := clusterClient(t, f, "b", Config{})
	assert.Equal(t, "1", c.say("WAIT 5 1"))
	f.Change(func(t *limiter.Topology) { t.Nodes[3].Up, t.Nodes[4].Up, t.Nodes[5].Up = false, false, false })
	assert.Equal(t, "OK 3 usable Sentinels. Quorum and failover authorization can be reached",
		c.say("SENTINEL CKQUORUM mymaster"))
	assert.Equal(t, "2", c.value("SENTINEL MASTER mymaster").get("quorum").text)
	f.Change(func(t *limiter.Topology) { t.Groups[3].Members = t.Groups[3].Members[:1] })
	assert.Equal(t, "0", c.say("WAIT 5 1"), "one replica is no second copy")
}

// TestReadinessOfSpreadGroups checks that a node that hosts nothing is ready while it follows the first group or can
// forward to another, and that a group which is away makes no node unready.
func TestReadinessOfSpreadGroups(t *testing.T) {
	f := spreadCluster()
	f.SetAge(1500 * time.Millisecond)
	node := f.Node("f")
	srv, err := NewShared(silent(Config{}), node)
	require.NoError(t, err)
	h := newHTTP(srv)
	ready := func(status int, want string) {
		t.Helper()
		w := ask(h, http.MethodGet, "/readyz")
		assert.Equal(t, want, w.Body.String())
		assert.Equal(t, status, w.Code)
	}
	before := node.Confirms.Load()
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (of 8 of 8 groups)\n[+]state ok\n")
	assert.EqualValues(t, 1, node.Confirms.Load()-before, "only the first group has a state here")
	f.CutOff(3, limiter.ErrTryAgain, limiter.UnknownAge)
	f.Change(func(t *limiter.Topology) { t.Groups[5].Leader = "" })
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (of 7 of 8 groups)\n[+]state ok (of 7 of 8 groups)\n")
	f.Change(func(t *limiter.Topology) { t.Groups[0].Leader = "" })
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (of 6 of 8 groups)\n[+]state ok (of 6 of 8 groups)\n")
	f.Change(func(t *limiter.Topology) {
		for i := range t.Nodes {
			t.Nodes[i].Up = false
		}
	})
	ready(http.StatusServiceUnavailable, "[+]node ok\n[+]leader ok (of 6 of 8 groups)\n"+
		"[-]state may be 1500 ms old: no majority of any group can be reached\n")

	f.Spread("abcdef", "abc", "bcdF")
	f.CutOff(1, limiter.ErrTryAgain, limiter.UnknownAge)
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (of 2 of 2 groups)\n[+]state ok\n") // its replica catches up

	f = spreadCluster()
	f.CutOff(0, limiter.ErrTryAgain, 11*time.Second)
	srv, err = NewShared(silent(Config{}), f.Node("f"))
	require.NoError(t, err)
	h = newHTTP(srv)
	ready(http.StatusServiceUnavailable, "[+]node ok\n[+]leader ok (of 8 of 8 groups)\n"+
		"[-]state of 1 of 8 groups may be 11000 ms old, first of group 0\n")
}

// TestReadinessOfANewTier checks that a node is not ready before it has known the leader of each group that it lacks,
// and that later elections leave it ready.
func TestReadinessOfANewTier(t *testing.T) {
	f := spreadCluster()
	f.Change(func(t *limiter.Topology) { t.Groups[5].Leader = "" })
	srv, err := NewShared(silent(Config{}), f.Node("f"))
	require.NoError(t, err)
	h := newHTTP(srv)
	state := func(want string) {
		t.Helper()
		assert.Equal(t, want, strings.Split(ask(h, http.MethodGet, "/readyz").Body.String(), "\n")[2])
	}
	state("[-]state the leaders of 1 of 8 groups are not known yet")
	f.Change(func(t *limiter.Topology) { t.Groups[5].Leader, t.Groups[6].Leader = "a", "" })
	state("[+]state ok (of 7 of 8 groups)")

	srv, err = NewShared(silent(Config{}), f.Node("f"))
	require.NoError(t, err)
	srv.Started = srv.Started.Add(-time.Minute)
	h = newHTTP(srv)
	state("[+]state ok (of 7 of 8 groups)")
}

// TestPageOfSpreadGroups checks the words of the page, which weir top shows too.
func TestPageOfSpreadGroups(t *testing.T) {
	f := spreadCluster()
	f.Change(func(t *limiter.Topology) { t.Nodes[4].Up = false })
	srv, err := NewShared(silent(Config{}), f.Node("f"))
	require.NoError(t, err)
	var v httpapi.Status
	require.NoError(t, json.Unmarshal(visit(newHTTP(srv), "/status.json", nil).Body.Bytes(), &v))
	var roles []string
	for _, n := range v.Cluster.Nodes {
		roles = append(roles, n.Role)
	}
	assert.Equal(t, []string{"leads 1 of 8, has 6 of 8", "leads 3 of 8, has 6 of 8", "leads 2 of 8, has 6 of 8",
		"leads 2 of 8, has 4 of 8", "follower, has 2 of 8", "no replicas"}, roles)
	assert.Equal(t, "led by a, b, c, d; 2 of 8 groups have fewer than 3 replicas that are up", v.Cluster.Groups.Leaders)
}
