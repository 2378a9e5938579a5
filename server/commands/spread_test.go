package commands

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

// spreadGroups is a cluster of the nodes a to f. The groups 4 and 5 have the same nodes, e leads nothing and has all
// that d leads, and f hosts nothing.
var spreadGroups = []string{"abc", "bcd", "cda", "dae", "bac", "bca", "cab", "dbe"}

func spreadCluster() *servertest.FakeCluster {
	f := servertest.NewFakeCluster()
	f.Spread("abcdef", spreadGroups...)
	return f
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
	assert.Equal(t, "0 2 id a voter 1 lag_entries 0 id b voter 1 lag_entries 0 id c voter 1 lag_entries 0",
		groups[0].get("away").text+" "+groups[0].get("replicas_up").text+" "+groups[0].get("replicas").flat())
	assert.Equal(t, "1 1 id b voter 1 lag_entries 0 id c voter 1 lag_entries 0 id d voter 0 lag_entries 7",
		groups[1].get("away").text+" "+groups[1].get("replicas_up").text+" "+groups[1].get("replicas").flat())
	c.say("HELLO 3")
	assert.True(t, strings.HasPrefix(c.raw("weir.cluster", "status"), "%12\r\n"))
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
