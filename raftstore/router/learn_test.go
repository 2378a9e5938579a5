package router_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
)

// newcomer returns the options of a node that knows the nodes of the tier and not their number of groups.
func (c *tier) newcomer(id string) raftstore.Options {
	o := c.opts[0]
	o.NodeID, o.DataDir, o.RaftAddr, o.Groups = id, c.t.TempDir(), freeport.Addr(c.t), 0
	o.Listener = listen(c.t, o.RaftAddr)
	return o
}

// TestAJoiningNodeLearnsTheGroups checks that a node without --groups joins every group of a cluster at its first start.
func TestAJoiningNodeLearnsTheGroups(t *testing.T) {
	const groups = 4
	c := newTier(t, 3, groups)
	c.led(c.nodes[1])
	c.stop(0) // one node that does not answer is no hindrance
	o := c.newcomer("joining")
	learned, ok := raftstore.LearnFounding(&o)
	require.True(t, ok)
	require.Equal(t, raftstore.Founding{Groups: groups}, learned)

	o.Groups = learned.Groups
	n, err := router.Open(o)
	require.NoError(t, err)
	defer n.Close()
	require.Eventually(t, func() bool {
		for i := range groups {
			if m := c.nodes[1].Group(i).Topology().Member("joining"); m == nil || !m.Voter {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond, "the node votes in all groups")
	require.Empty(t, c.fatal)
}

// TestFoundersLearnNoGroups checks that a node uses its flag if no other node belongs to a cluster.
func TestFoundersLearnNoGroups(t *testing.T) {
	c := newTier(t, 1, 2, func(o *raftstore.Options) {
		o.Join, o.Expect = []string{o.RaftAddr, "127.0.0.1:1"}, 2 // waits for a second node
	})
	o := c.newcomer("founder")
	_, ok := raftstore.LearnFounding(&o)
	require.False(t, ok, "a node without a cluster has answered")

	o.Join, o.RaftAddr = c.opts[0].Join[:1], c.opts[0].RaftAddr
	_, ok = raftstore.LearnFounding(&o)
	require.False(t, ok, "no other node is asked")
}

// TestLearningGroupsEnds checks that a node does not wait for a node that accepts its connection and is silent, and
// that a node with another secret learns nothing.
func TestLearningGroupsEnds(t *testing.T) {
	c := newTier(t, 1, 2)
	c.led(c.nodes[0])
	silent := listen(t, "127.0.0.1:0")
	defer silent.Close()
	o := c.newcomer("patient")
	o.Join = []string{silent.Addr().String()}
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := silent.Accept()
		accepted <- conn
	}()
	_, ok := raftstore.LearnFounding(&o)
	require.False(t, ok)
	(<-accepted).Close()

	o.Join = append(o.Join, c.opts[0].RaftAddr)
	learned, ok := raftstore.LearnFounding(&o)
	require.True(t, ok, "the silent node hides the other one")
	require.Equal(t, raftstore.Founding{Groups: 2}, learned)

	o.Join, o.Secret = o.Join[1:], []byte("another")
	_, ok = raftstore.LearnFounding(&o)
	require.False(t, ok)
}
