package raftstore

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/logging"
)

// TestANodeThatStoppedIsBack checks that a node which announced its stop counts as up again when a later answer lacks
// the announcement.
func TestANodeThatStoppedIsBack(t *testing.T) {
	said := time.Now()
	one := &host.Peer{Stopping: said}
	one.IsBack(host.Status{}, said.Add(-time.Millisecond))
	require.Equal(t, said, one.Stopping, "an answer to a question before the notice must not count")
	one.IsBack(host.Status{Stopping: true}, said.Add(time.Millisecond))
	require.Equal(t, said, one.Stopping, "an answer that repeats the notice must not count")
	one.IsBack(host.Status{}, said.Add(time.Millisecond))
	require.Zero(t, one.Stopping)
}

// TestUnknownNodeStopsBeforeTheStart checks that the port can ask about stopping nodes before the node has opened its
// log. Any machine can cause this question by connecting.
func TestUnknownNodeStopsBeforeTheStart(t *testing.T) {
	o := host.Options{NodeID: "a", Groups: 1}
	o.Host = host.NewHost(&o)
	defer o.Host.Close()
	n := newNode(o)
	require.False(t, n.own.Peers.StopsExplain())
	require.False(t, n.own.Peers.IsStopping("b"))
}

// TestLinesOfTheLibrary checks that warnings of the Raft library stay warnings unless stopping nodes or normal
// elections explain them.
func TestLinesOfTheLibrary(t *testing.T) {
	c := raft.Server{ID: "c", Address: "c:1"}
	all := func(n *bareNode) { n.own.Peers.MarkStopping("b"); n.own.Peers.MarkStopping("c") }
	for name, x := range map[string]struct {
		stop     func(n *bareNode)
		text     string
		args     []any
		expected bool
	}{
		"a peer that said nothing": {nil, "failed to appendEntries to",
			[]any{"peer", c, "error", errors.New("EOF")}, false},
		"a peer that stops": {all, "failed to appendEntries to",
			[]any{"peer", c, "error", errors.New("EOF")}, true},
		"a peer that stops, by address": {all, "failed to heartbeat to", []any{"peer", c.Address}, true},
		"another peer stops": {func(n *bareNode) { n.own.Peers.MarkStopping("b") }, "failed to contact",
			[]any{"server-id", c.ID}, false},
		"a leader that said nothing": {nil, "heartbeat timeout reached, starting election",
			[]any{"last-leader-id", c.ID}, false},
		"a leader that stops": {all, "heartbeat timeout reached, starting election",
			[]any{"last-leader-id", c.ID}, true},
		"no leader yet": {nil, "heartbeat timeout reached, starting election",
			[]any{"last-leader-id", raft.ServerID("")}, true},
		"no quorum": {nil, "failed to contact quorum of nodes, stepping down", nil, false},
		"no quorum, one of three stops": {func(n *bareNode) { n.own.Peers.MarkStopping("b") },
			"failed to contact quorum of nodes, stepping down", nil, false},
		"no quorum, two of three stop":    {all, "failed to contact quorum of nodes, stepping down", nil, true},
		"a connection ends":               {nil, "failed to decode incoming command", nil, false},
		"a connection ends, a peer stops": {all, "failed to decode incoming command", nil, true},
		"a candidate is behind":           {nil, "rejecting vote request since our last term is greater", nil, true},
		"a candidate before its vote": {nil, "rejecting pre-vote request since our last index is greater", nil,
			true},
		"a candidate is late":      {nil, "rejecting pre-vote request since we have a leader", nil, true},
		"a candidate is no member": {all, "rejecting vote request since node is not in configuration", nil, false},
		"this node stops": {func(n *bareNode) { n.own.Stopping.Store(true) }, "failed to accept connection",
			nil, true},
		"a follower behind": {nil, "failed to get previous log", []any{"error", raft.ErrLogNotFound}, true},
		"a log that cannot be read": {nil, "failed to get previous log", []any{"error", errors.New("I/O error")},
			false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBareNode(t)
			for _, id := range []string{"b", "c"} {
				n.hear(id, 1, 0)
			}
			n.own.Peers.Servers = []raft.Server{n.membership.Server(), {ID: "b", Address: "b:1"}, c}
			if x.stop != nil {
				x.stop(n)
			}
			logging.New(n.own.Log, n.own.Peers.Expects).Warn(x.text, x.args...)
			if x.expected {
				require.Contains(t, n.said.String(), `level=DEBUG msg="raft: `+x.text)
			} else {
				require.Contains(t, n.said.String(), `level=WARN msg="raft: `+x.text)
			}
		})
	}
}

// TestGroupsLogADeadNodeOnce checks that of the groups of a process only one logs a line about a node.
func TestGroupsLogADeadNodeOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	shared := host.NewHost(&Options{Listener: l})
	t.Cleanup(func() { require.NoError(t, shared.Close()) })
	var said [2]string
	for group := range said {
		n := newBareNode(t)
		alone := n.own.Options.Host
		n.own.Options.Host = shared
		log := logging.New(n.own.Log, n.own.Peers.Expects)
		for _, id := range []raft.ServerID{"b", "c", "b"} {
			log.Error("failed to appendEntries to", "peer", raft.Server{ID: id})
		}
		said[group] = n.said.String()
		n.own.Options.Host = alone
	}
	const line = `level=ERROR msg="raft: failed to appendEntries to" peer=`
	require.Equal(t, 1, strings.Count(said[0], line+"b"))
	require.Equal(t, 1, strings.Count(said[0], line+"c"))
	require.NotContains(t, said[1], line)
}

// TestLinesOfTheLibraryCanBeRead checks that values in the library's lines are readable, and that lines below a
// warning are dropped.
func TestLinesOfTheLibraryCanBeRead(t *testing.T) {
	n := newBareNode(t)
	log := logging.New(n.own.Log, n.own.Peers.Expects)
	log.Info("entering follower state")
	log.Error("failed to appendEntries to", "peer", raft.Server{ID: "c", Address: "c:1"},
		"command", hclog.Fmt("%#v", 7))
	require.NotContains(t, n.said.String(), "entering")
	require.Contains(t, n.said.String(), `level=ERROR msg="raft: failed to appendEntries to" peer=c command=7`)
}
