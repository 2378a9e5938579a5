package raftstore_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/peer"
)

// multiGroup is a set of hosts in this process. Each of them has a node of each group.
type multiGroup struct {
	t      *testing.T
	addrs  []string
	dirs   []string // of the shared logs
	hosts  []*host.Host
	groups []*cluster
	said   []*logtest.Buffer // by group
	count  int               // groups of the cluster, with those that no host has opened
}

// newMultiGroup starts n hosts with the first groups of a cluster. Their nodes bootstrap each group at the same
// addresses.
func newMultiGroup(t *testing.T, n, first, count int) *multiGroup {
	m := &multiGroup{t: t, count: count}
	for range n {
		m.addrs, m.hosts, m.dirs = append(m.addrs, ""), append(m.hosts, nil), append(m.dirs, t.TempDir())
	}
	for host := range n {
		m.listen(host)
	}
	for group := range first {
		m.groups = append(m.groups, &cluster{t: t, fatal: make(chan error, 100), heartbeat: busy})
		m.said = append(m.said, &logtest.Buffer{})
		for host := range n {
			m.open(group, host)
		}
	}
	t.Cleanup(m.close) // registered after the directories of the nodes, so it runs before they are removed
	return m
}

// open starts the node of a group on a host for the first time.
func (m *multiGroup) open(group, host int) {
	c := m.groups[group]
	o := c.options(host, m.addrs[host])
	o.Join, o.Expect, o.Host, o.Group, o.Groups = m.addrs, len(m.addrs), m.hosts[host], group, m.count
	o.Logger = slog.New(slog.NewTextHandler(m.said[group], nil))
	c.add(o)
}

// keyOf returns a key whose slot a group owns.
func keyOf(group, groups int) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("key", i)
		if hashslot.Group(hashslot.Of([]byte(key)), groups) == group {
			return key
		}
	}
}

// listen opens a host, at its earlier address if it had one.
func (m *multiGroup) listen(at int) {
	addr := m.addrs[at]
	if addr == "" {
		addr = freeport.Addr(m.t)
	}
	l := listenAt(m.t, addr)
	m.addrs[at] = addr
	m.hosts[at] = host.NewHost(&raftstore.Options{
		Listener: l, Secret: []byte("secret"), DataDir: m.dirs[at], Logger: slog.New(slog.DiscardHandler),
	})
}

func (m *multiGroup) close() {
	for _, c := range m.groups {
		c.close()
	}
	for _, host := range m.hosts {
		if host != nil {
			host.Close()
		}
	}
}

// reopen starts the closed node of a group again.
func (m *multiGroup) reopen(group, host int) {
	m.t.Helper()
	c := m.groups[group]
	c.opts[host].Host = m.hosts[host]
	node, err := raftstore.OpenAlone(c.opts[host])
	require.NoError(m.t, err)
	c.nodes[host] = node
}

// take takes one unit at the leader of a group, and requires that remaining units are left.
func (m *multiGroup) take(group int, remaining int64) {
	m.t.Helper()
	leader, _ := m.groups[group].leader()
	require.Equal(m.t, remaining, m.groups[group].take(leader, keyOf(group, m.count), 100).Remaining)
}

// TestGroupsOnOnePort checks that two groups on the same hosts found their own clusters, decide separately, and each
// have a leader. The end of a node in one group does not disturb the other group. Both groups survive the loss of a
// host.
func TestGroupsOnOnePort(t *testing.T) {
	m := newMultiGroup(t, 3, 2, 2)
	for group := range m.groups {
		m.take(group, 99)
	}
	m.take(1, 98)
	m.take(0, 98)
	one, two := m.groups[0].nodes[0].Topology(), m.groups[1].nodes[0].Topology()
	require.NotEqual(t, one.ClusterID, two.ClusterID)
	require.False(t, m.said[0].Has("group="))
	require.True(t, m.said[1].Has("group=1"))
	m.groups[0].moveTo(0)
	m.groups[1].moveTo(1)
	for host := range m.addrs {
		for group, c := range m.groups {
			require.EqualValues(t, 97-host, c.take(c.nodes[host], keyOf(group, 2), 100).Remaining,
				"host %d forwards for group %d", host, group)
		}
	}

	m.endsAlone()
	m.loseHost(1)
	for _, c := range m.groups {
		c.agree()
		require.Empty(t, c.fatal)
	}
}

// endsAlone closes and reopens the node of group 0 on the host that leads group 1. Group 1 keeps its leader, and its
// decisions do not fail. A busy machine may disturb an attempt, but not each of several.
func (m *multiGroup) endsAlone() {
	m.t.Helper()
	var leader *raftstore.Node
	undisturbed := false
	for attempt := 0; !undisturbed; attempt++ {
		require.Less(m.t, attempt, 4, "the end of a node disturbs the other group")
		leader = m.groups[1].moveTo(1)
		leader.Topology() // counts the earlier change of leader
		changes := leader.Consensus().LeaderChanges
		began := time.Now()
		m.groups[0].stop(1)
		undisturbed = true
		for out := make([]engine.Decision, 1); undisturbed && time.Since(began) < 2*busy; {
			err := leader.Decide([]engine.Op{quota("{"+keyOf(1, 2)+"}undisturbed", 1<<30)}, out)
			undisturbed = err == nil && out[0].Allowed == 1
			time.Sleep(5 * time.Millisecond)
		}
		other, _ := m.groups[0].leader()
		require.EqualValues(m.t, 99-attempt, m.groups[0].take(other, "{"+keyOf(0, 2)+"}undisturbed", 100).Remaining)
		m.reopen(0, 1)
		m.groups[0].agree()
		undisturbed = undisturbed && leader.Confirm() == nil && changes == leader.Consensus().LeaderChanges
	}
	_, err := raftstore.OpenAlone(m.groups[1].opts[1])
	require.Error(m.t, err, "the node is running")
	require.Eventually(m.t, func() bool { return leader.Confirm() == nil }, patience, 10*time.Millisecond)
}

// loseHost ends all connections of a host that leads group 1. Both groups continue without the host, and with it when
// it is back.
func (m *multiGroup) loseHost(host int) {
	m.t.Helper()
	lost := make([]*raftstore.Node, len(m.groups))
	require.NoError(m.t, m.hosts[host].Hub.Cut())
	for group, c := range m.groups {
		lost[group], c.nodes[host] = c.nodes[host], nil
	}
	m.take(0, 94)
	m.take(1, 94)
	for _, n := range lost {
		require.NoError(m.t, n.Close())
	}
	require.NoError(m.t, m.hosts[host].Close())
	m.listen(host)
	for group := range m.groups {
		m.reopen(group, host)
	}
	m.take(0, 93)
	m.take(1, 93)
}

// TestAGroupStartsLater checks that a node of a group waits until the other hosts have the group, and then founds the
// cluster of the group.
func TestAGroupStartsLater(t *testing.T) {
	m := newMultiGroup(t, 3, 1, 2)
	m.take(0, 99)
	m.groups = append(m.groups, &cluster{t: t, fatal: make(chan error, 100), heartbeat: busy})
	m.said = append(m.said, &logtest.Buffer{})
	m.open(1, 0)
	require.Eventually(t, func() bool { return m.said[1].Has("this node has no group 1") }, patience,
		10*time.Millisecond)
	m.open(1, 1)
	m.open(1, 2)
	m.take(1, 99)
	m.groups[1].agree()
	require.Empty(t, m.groups[1].fatal)
	m.take(0, 98)
}

// TestOneNodePerGroup checks that a second node of a group on one host does not open, and does not disturb the first.
func TestOneNodePerGroup(t *testing.T) {
	m := newMultiGroup(t, 1, 1, 1)
	m.take(0, 99)
	o := m.groups[0].opts[0]
	o.DataDir = t.TempDir()
	_, err := raftstore.OpenAlone(o)
	require.ErrorIs(t, err, peer.ErrGroupOpen)
	m.take(0, 98)
}

// TestANodeThatOthersReachHasASecret checks that a node whose port other machines can reach must have a secret.
func TestANodeThatOthersReachHasASecret(t *testing.T) {
	o := raftstore.Options{NodeID: "a", RaftAddr: "127.0.0.1:1", Groups: 1}
	require.NoError(t, raftstore.Check(o))
	o.RaftAddr = "10.0.0.1:1"
	require.ErrorContains(t, raftstore.Check(o), "--cluster-secret-file")
	o.Secret = []byte("secret")
	require.NoError(t, raftstore.Check(o))
}
