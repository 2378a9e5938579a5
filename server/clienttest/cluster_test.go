package clienttest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/freeport"
)

// cluster is three or more nodes with default settings, except for their addresses and --id-lifetime.
type cluster struct {
	t      *testing.T
	ids    []string
	nodes  map[string]*weir
	groups int // Raft groups
}

// nodeIDs are the nodes that found a cluster.
var nodeIDs = []string{"a", "b", "c"}

// startCluster starts the nodes and waits until they know each other. The nodes end with the test. advertise, unless
// it is nil, returns the address by which clients reach the node that listens on a given address.
func startCluster(t *testing.T, advertise func(listen string) string, args ...string) *cluster {
	t.Helper()
	return startClusterOf(t, advertise, func(int) []string { return args })
}

// startClusterOf is startCluster with arguments for each node. The nodes with the ids in more join when the others have
// founded the cluster.
func startClusterOf(t *testing.T, advertise func(listen string) string, args func(node int) []string,
	more ...string,
) *cluster {
	t.Helper()
	c := &cluster{t: t, ids: append(nodeIDs[:len(nodeIDs):len(nodeIDs)], more...), nodes: map[string]*weir{}, groups: 1}
	addrs := freeport.Addrs(t, 2*len(c.ids))
	clients, nodes := addrs[:len(c.ids)], addrs[len(c.ids):]
	dir := t.TempDir()
	for i, id := range c.ids {
		if i == len(nodeIDs) {
			c.introduced()
		}
		all := append([]string{
			"--node-id", id, "--raft-addr", nodes[i], "--join", strings.Join(nodes[:len(nodeIDs)], ","), "--expect",
			strconv.Itoa(len(nodeIDs)),
			"--data-dir", filepath.Join(dir, id),
			"--id-lifetime=5m", // lettuce resends commands that it kept for a dead node for a minute
		}, args(i)...)
		if advertise != nil {
			all = append(all, "--advertise", advertise(clients[i]))
		}
		c.nodes[id] = newWeir(t, clients[i], ofLostNodes, all...)
		c.nodes[id].Start()
	}
	c.introduced()
	return c
}

// introduced waits until every node knows the addresses of all other nodes.
func (c *cluster) introduced() {
	c.t.Helper()
	for _, w := range c.nodes {
		until(c.t, "a node does not know the others' addresses", func() bool {
			nodes, err := redis.String(w.ask("CLUSTER", "NODES"))
			return err == nil && strings.Count(nodes, "\n") == len(c.nodes) && !strings.Contains(nodes, "noaddr")
		})
	}
}

// ofLostNodes reports whether a log line may be about nodes that this node cannot reach. Such a line is no failure.
func ofLostNodes(line string) bool {
	return strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"msg":"raft: `)
}

// addrs returns the addresses at which the nodes with these ids listen.
func (c *cluster) addrs(ids ...string) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = c.nodes[id].addr
	}
	return list
}

// ask sends one command to one node. The connection sends no other command.
func (w *weir) ask(args ...string) (any, error) {
	conn, err := redis.Dial("tcp", w.addr, redis.DialConnectTimeout(testWait), redis.DialReadTimeout(testWait))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.Do(args[0], anys(args[1:])...)
}

// leader returns the node that leads the only group, or the first of several.
func (c *cluster) leader() (id string) {
	c.t.Helper()
	return c.leaders()[0]
}

// leaders waits until all running nodes name the same leader of each group, and these leaders run. A former leader may
// still name itself for a while.
func (c *cluster) leaders() (ids []string) {
	c.t.Helper()
	until(c.t, "there is no leader", func() bool {
		ids = nil
		for _, w := range c.nodes {
			if !w.Running() {
				continue
			}
			named := w.leaders()
			if len(named) != c.groups || ids != nil && !slices.Equal(ids, named) {
				return false
			}
			ids = named
		}
		return !slices.ContainsFunc(ids, func(id string) bool { return id == "" || !c.nodes[id].Running() })
	})
	return ids
}

// leaders returns the leader of each group according to one node, or nothing if the node does not answer.
func (w *weir) leaders() (ids []string) {
	reply, err := w.ask("WEIR.CLUSTER", "STATUS")
	if err != nil {
		return nil
	}
	status, err := remote.ReadStatus(reply)
	require.NoError(w.t, err)
	if len(status.Groups) == 0 {
		return []string{status.Leader}
	}
	for i := range status.Groups {
		ids = append(ids, status.Groups[i].Leader)
	}
	return ids
}

// until polls ok, and fails the test with otherwise after clusterWait. It polls in the caller's goroutine, so that ok
// itself may fail the test.
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
	// clusterWait bounds every wait for a client to find the leader. By default lettuce keeps commands for a dead node
	// for a minute before it returns their errors.
	clusterWait = 3 * time.Minute
)

// other returns the id of a running node that is not listed in than.
func (c *cluster) other(than ...string) string {
	for _, id := range c.ids {
		if c.nodes[id].Running() && !strings.Contains(strings.Join(than, " "), id) {
			return id
		}
	}
	c.t.Fatal("no other node runs")
	return ""
}

// transfer transfers the leadership of every group to a node, by a command to the leader, as an operator does. It
// retries, because a node that has just started must catch up first.
func (c *cluster) transfer(to string) {
	c.t.Helper()
	until(c.t, "leadership does not go to "+to, func() bool {
		_, err := c.nodes[c.leader()].ask("WEIR.CLUSTER", "TRANSFER", to)
		return err == nil && !slices.ContainsFunc(c.leaders(), func(id string) bool { return id != to })
	})
}

// awaitReady waits until a node knows the leader of each group and has applied the committed entries. A linearizable
// read shows both. Leadership can be transferred to such a node only. A node without a replica of the group may redirect
// the read instead.
func (c *cluster) awaitReady(id string) {
	c.t.Helper()
	for _, prefix := range c.prefixes() {
		until(c.t, id+" is not ready", func() bool {
			_, err := c.nodes[id].ask("RL.INSPECT", prefix+"no such key")
			return err == nil || strings.HasPrefix(err.Error(), "MOVED ")
		})
	}
}

// prefixes returns a prefix of keys for each group.
func (c *cluster) prefixes() []string {
	if c.groups == 1 {
		return []string{""}
	}
	var list []string
	for group := range c.groups {
		list = append(list, "{"+hashslot.Tag(hashslot.OfGroup(group, c.groups).First)+"}")
	}
	return list
}

// calls returns how often clients have sent RL.FIXED to a node. A load consists of these commands.
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

// strays returns how often clients have sent RL.FIXED to nodes that do not lead.
func (c *cluster) strays(leader string) (n int) {
	c.t.Helper()
	for id, w := range c.nodes {
		if id != leader && w.Running() {
			n += w.calls()
		}
	}
	return n
}

// left asks the leader of the key's group how many units a limiter has left.
func (c *cluster) left(key string) int64 {
	c.t.Helper()
	var five []int64
	until(c.t, "no leader says what "+key+" has left", func() bool {
		leader := c.leaders()[hashslot.Group(hashslot.Of([]byte(key)), c.groups)]
		var err error
		five, err = redis.Int64s(
			c.nodes[leader].ask("RL.FIXED", key, "FOREVER", strconv.FormatInt(most, 10), "COST", "0"))
		return err == nil
	})
	require.Len(c.t, five, 5)
	return five[1]
}
