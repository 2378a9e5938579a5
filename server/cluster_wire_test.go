package server

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// TestReadsOfAPipelineShareAReadIndex checks that reads which arrive together share one ReadIndex, and that a
// decision ends the share.
func TestReadsOfAPipelineShareAReadIndex(t *testing.T) {
	for _, id := range []string{"a", "b"} {
		t.Run(id, func(t *testing.T) { readsShareAReadIndex(t, id) })
	}
}

func readsShareAReadIndex(t *testing.T, id string) {
	node := servertest.NewFakeCluster().Node(id)
	p := startWire(t, Config{}, node).dial(t)
	round := func(send, want string, confirms int64) {
		t.Helper()
		before := node.Confirms.Load()
		p.Send(send)
		p.Expect(want)
		require.Equal(t, confirms, node.Confirms.Load()-before)
	}
	const one = "*5\r\n:1\r\n:8\r\n:0\r\n:-1\r\n:9\r\n"
	round(strings.Repeat("DBSIZE\r\n", 5), strings.Repeat(":0\r\n", 5), 1)
	round("DBSIZE\r\n", ":0\r\n", 1)
	round("DBSIZE\r\nRL.FIXED k FOREVER 9\r\nDBSIZE\r\nDBSIZE\r\n", ":0\r\n"+one+":1\r\n:1\r\n", 2)
	round("DBSIZE\r\nFLUSHALL\r\nDBSIZE\r\n", ":1\r\n+OK\r\n:0\r\n", 2)
	round("DBSIZE\r\nMULTI\r\nRL.FIXED k FOREVER 9\r\nDBSIZE\r\nDBSIZE\r\nEXEC\r\n",
		":0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n"+one+":1\r\n:1\r\n", 2)
}

const takeFoo = "RL.FIXED foo FOREVER 9" // the slot of foo is 12182

// TestRedirectOfAPipeline checks that each command of a pipeline is redirected by the slot of its own key, and that
// this node decides none.
func TestRedirectOfAPipeline(t *testing.T) {
	f := servertest.NewFakeCluster()
	node := f.Node("b")
	p := startWire(t, Config{Redirect: service.RedirectMoved}, node).dial(t)
	p.Send(takeFoo + "\r\nRL.FIXED x FOREVER 9\r\nPING\r\n" + takeFoo + "\r\n")
	const foo, x = "-MOVED 12182 10.0.0.1:6380\r\n", "-MOVED 16287 10.0.0.1:6380\r\n"
	p.Expect(foo + x + pong + foo)
	require.Zero(t, node.Decided.Load())
}

// TestPipelineOnSeveralGroups checks that of a pipeline this node decides the commands on the groups that it leads, in
// their order, and redirects the others.
func TestPipelineOnSeveralGroups(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("b", "a", "b", "") // foo is in the third group, bar in the second, x in the fourth
	node := f.Node("b")
	p := startWire(t, Config{Redirect: service.RedirectMoved}, node).dial(t)
	const bar, x = "RL.FIXED bar FOREVER 9", "RL.FIXED x FOREVER 9"
	p.Send(strings.Join([]string{takeFoo, bar, "DEL foo bar", takeFoo, x, "PING", takeFoo, bar, ""}, "\r\n"))
	const moved = "-MOVED 5061 10.0.0.1:6380\r\n"
	const first, second = "*5\r\n:1\r\n:8\r\n:0\r\n:-1\r\n:9\r\n", "*5\r\n:1\r\n:7\r\n:0\r\n:-1\r\n:9\r\n"
	const down = "-CLUSTERDOWN the cluster has no leader, nothing was counted\r\n"
	p.Expect(first + moved + ":1\r\n" + first + down + pong + second + moved)

	p = startWire(t, Config{}, node).dial(t)
	p.Send(takeFoo + "\r\n" + bar + "\r\n" + x + "\r\n")
	p.Expect("*5\r\n:1\r\n:6\r\n:0\r\n:-1\r\n:9\r\n" + first + down)
}

// startCluster serves the nodes on loopback ports, and gives each node its real address.
func startCluster(t testing.TB, f *servertest.FakeCluster, cfg Config) map[string]*servertest.FakeReplica {
	t.Helper()
	nodes, listeners := map[string]*servertest.FakeReplica{}, map[string]net.Listener{}
	for _, m := range f.Topo.Nodes {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners[m.ID] = ln
	}
	f.Change(func(t *limiter.Topology) {
		for i := range t.Nodes {
			t.Nodes[i].ClientAddr = listeners[t.Nodes[i].ID].Addr().String()
		}
	})
	for id, ln := range listeners {
		nodes[id] = f.Node(id)
		serveWire(t, cfg, nodes[id], ln)
	}
	return nodes
}
