package weirproc

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// Cluster is a cluster of three nodes.
type Cluster struct {
	Nodes [3]*Server

	t *testing.T
}

// StartCluster starts three nodes with data directories, and waits until a leader answers. Each node gets args. The
// nodes end with the test.
func StartCluster(t *testing.T, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	n := len(c.Nodes)
	addrs, dir := freeport.Addrs(t, 3*n), t.TempDir()
	raft := strings.Join(addrs[2*n:], ",")
	for i := range c.Nodes {
		id := string(rune('a' + i))
		c.Nodes[i] = New(t, addrs[i], addrs[n+i], append([]string{
			"--node-id", id, "--raft-addr", addrs[2*n+i], "--join", raft, "--expect", strconv.Itoa(n),
			"--data-dir", filepath.Join(dir, id),
		}, args...)...)
		c.Nodes[i].Start()
	}
	c.Leader()
	return c
}

// Addrs returns the addresses of all nodes for Redis clients, including stopped nodes.
func (c *Cluster) Addrs() []string {
	var list []string
	for _, node := range c.Nodes {
		list = append(list, node.Addr)
	}
	return list
}

// Leader waits until the nodes that run agree on a leader, and returns it.
func (c *Cluster) Leader() *Server {
	c.t.Helper()
	var leader *Server
	require.Eventually(c.t, func() bool {
		leader = c.agreed()
		return leader != nil
	}, Wait, 10*time.Millisecond, "the nodes agree on no leader")
	return leader
}

func (c *Cluster) agreed() (leader *Server) {
	for _, node := range c.Nodes {
		if !node.Running() {
			continue
		}
		rdb := node.Redis()
		role, err := rdb.Do(c.t.Context(), "ROLE").Slice()
		_ = rdb.Close()
		switch {
		case err != nil || len(role) == 0:
			return nil
		case role[0] == "master" && leader != nil:
			return nil
		case role[0] == "master":
			leader = node
		}
	}
	return leader
}

// KillLeader kills the leader with SIGKILL and returns it. It does not wait for the next leader.
func (c *Cluster) KillLeader() *Server {
	c.t.Helper()
	leader := c.Leader()
	leader.Kill()
	return leader
}
