package clienttest

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// cluster is three nodes with everything at its default but their addresses.
type cluster struct {
	t     *testing.T
	nodes map[string]*weir
}

var nodeIDs = []string{"a", "b", "c"}

// startCluster starts the nodes and waits for a leader. They end with the test.
// advertise, unless nil, says by which address clients reach a node that listens
// on another.
func startCluster(t *testing.T, advertise func(listen string) string, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, nodes: map[string]*weir{}}
	addrs := weirproc.FreeAddrs(t, 2*len(nodeIDs))
	clients, nodes := addrs[:len(nodeIDs)], addrs[len(nodeIDs):]
	dir := t.TempDir()
	for i, id := range nodeIDs {
		all := append([]string{
			"--node-id", id, "--raft-addr", nodes[i], "--join", strings.Join(nodes, ","), "--expect",
			strconv.Itoa(len(nodeIDs)),
			"--data-dir", filepath.Join(dir, id),
			"--id-lifetime=5m", // lettuce sends again what it kept for a dead node for a minute
		}, args...)
		if advertise != nil {
			all = append(all, "--advertise", advertise(clients[i]))
		}
		c.nodes[id] = newWeir(t, clients[i], ofLostNodes, all...)
		c.nodes[id].Start()
	}
	c.introduced()
	return c
}

// introduced waits until every node knows all addresses of the others.
func (c *cluster) introduced() {
	c.t.Helper()
	for _, w := range c.nodes {
		until(c.t, "a node does not know the others' addresses", func() bool {
			nodes, err := redis.String(w.ask("CLUSTER", "NODES"))
			return err == nil && strings.Count(nodes, "\n") == len(nodeIDs) && !strings.Contains(nodes, "noaddr")
		})
	}
}

// ofLostNodes excuses what a node says of others that it cannot reach.
func ofLostNodes(line string) bool {
	return strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"msg":"raft: `)
}

// addrs are where the nodes of these ids listen.
func (c *cluster) addrs(ids ...string) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = c.nodes[id].addr
	}
	return list
}

// ask sends one command to one node, without anything that a client would add.
func (w *weir) ask(args ...string) (any, error) {
	conn, err := redis.Dial("tcp", w.addr, redis.DialConnectTimeout(testWait), redis.DialReadTimeout(testWait))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.Do(args[0], anys(args[1:])...)
}

// leader waits for the one node that leads. A node that was the leader may not
// know better yet; so all that run must agree.
func (c *cluster) leader() (id string) {
	c.t.Helper()
	until(c.t, "there is no leader", func() bool {
		id = ""
		for _, w := range c.nodes {
			if !w.Running() {
				continue
			}
			status, err := redis.StringMap(headOf(w.ask("WEIR.CLUSTER", "STATUS")))
			if err != nil || status["leader"] == "" || id != "" && id != status["leader"] {
				return false
			}
			id = status["leader"]
		}
		return c.nodes[id].Running()
	})
	return id
}

// until polls in the caller's goroutine, so that ok may fail the test.
func until(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(clusterWait)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
		time.Sleep(pollEvery)
	}
}

const (
	pollEvery = 5 * time.Millisecond
	// clusterWait bounds every wait for a client to find the leader. With its defaults
	// lettuce keeps commands for a dead node for a minute before it gives them up.
	clusterWait = 3 * time.Minute
)

// headOf keeps the values of a map's reply that are text, so all but the nodes.
func headOf(reply any, err error) (any, error) {
	list, err := redis.Values(reply, err)
	var head []any
	for i := 0; i+1 < len(list); i += 2 {
		if _, text := list[i+1].([]byte); text {
			head = append(head, list[i], list[i+1])
		}
	}
	return head, err
}

// other is a node that runs and is none of these.
func (c *cluster) other(than ...string) string {
	for _, id := range nodeIDs {
		if c.nodes[id].Running() && !strings.Contains(strings.Join(than, " "), id) {
			return id
		}
	}
	c.t.Fatal("no other node runs")
	return ""
}

// transfer hands leadership to a node, as an operator does: by asking the leader.
// A node that was just started must catch up first.
func (c *cluster) transfer(to string) {
	c.t.Helper()
	until(c.t, "leadership does not go to "+to, func() bool {
		_, err := c.nodes[c.leader()].ask("WEIR.CLUSTER", "TRANSFER", to)
		return err == nil && c.leader() == to
	})
}

// awaitReady waits until a node has a leader and has applied what was committed: a
// linearizable read tells. Leadership is handed to no other.
func (c *cluster) awaitReady(id string) {
	c.t.Helper()
	until(c.t, id+" is not ready", func() bool {
		_, err := c.nodes[id].ask("RL.INSPECT", "no such key")
		return err == nil
	})
}

// calls says how often clients have sent a node RL.FIXED, which all load is made of.
func (w *weir) calls() (n int) {
	w.t.Helper()
	text, err := redis.String(w.ask("INFO", "commandstats"))
	require.NoError(w.t, err)
	if _, stat, ok := strings.Cut(text, "cmdstat_rl.fixed:calls="); ok {
		_, err = fmt.Sscanf(stat, "%d", &n)
		require.NoError(w.t, err)
	}
	return n
}

// strays is how often clients have asked nodes that do not lead.
func (c *cluster) strays(leader string) (n int) {
	c.t.Helper()
	for id, w := range c.nodes {
		if id != leader && w.Running() {
			n += w.calls()
		}
	}
	return n
}

// left asks the leader what a limiter still has.
func (c *cluster) left(key string) int64 {
	c.t.Helper()
	five, err := redis.Int64s(
		c.nodes[c.leader()].ask("RL.FIXED", key, "FOREVER", strconv.FormatInt(most, 10), "COST", "0"))
	require.NoError(c.t, err)
	return five[1]
}
