package raftstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/peer"
)

// TestNoClusterIsFoundedByFewerThanExpected: two nodes that each found a cluster alone are
// two limiters.
func TestNoClusterIsFoundedByFewerThanExpected(t *testing.T) {
	for name, c := range map[string]struct {
		join   []string
		expect int
		says   string
	}{
		"one of two":       {[]string{"a:1"}, 2, "found 1 of 2 nodes"},
		"another founds":   {[]string{"b:1", "a:1"}, 1, "waiting for b:1"},
		"as many as asked": {[]string{"a:1"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBareNode(t)
			n.host.port = deafPort(t)
			n.host.options.Join, n.host.options.Expect = c.join, c.expect
			err := n.group.membership.tryJoin()
			if c.says == "" {
				require.NoError(t, err)
				require.False(t, n.group.membership.pristine())
				return
			}
			require.ErrorContains(t, err, c.says)
			require.True(t, n.group.membership.pristine(), "it has founded nothing")
			require.False(t, n.host.identity.WasInvited())
		})
	}
}

// TestAClusterIsFoundedByItsFirstEntry: a leader whose entry is in no log does not serve.
func TestAClusterIsFoundedByItsFirstEntry(t *testing.T) {
	n := newBareNode(t)
	r := &leaderTerm{term: 1, clock: persistence.StartClock(n.host.source, at(0))}
	require.False(t, n.group.leadership.bootstrap(r), "it does not lead")
	require.False(t, n.host.identity.HasCluster())
	n.configure(t, "a")
	r = n.leads(t)
	require.True(t, n.group.leadership.bootstrap(r))
	require.True(t, n.host.identity.HasCluster())
	require.Empty(t, n.ended)
}

// TestOnlyAMemberForCertainStopsAsking: what only this node has heard may be undone.
func TestOnlyAMemberForCertainStopsAsking(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a", "b")
	require.Equal(t, "a:1", n.group.membership.believed())
	require.False(t, n.group.membership.established(), "it knows of no committed configuration")
	n.host.identity.Joined = true
	require.False(t, n.group.membership.established())
	n.group.machine.Committed.Store(&fsm.Configuration{Servers: n.group.raft.Servers()})
	require.True(t, n.group.membership.established())
	n.host.identity.Joined = false
	require.False(t, n.group.membership.established())
	n.host.identity.Joined = true
	n.group.machine.Committed.Store(&fsm.Configuration{Servers: []raft.Server{{ID: "a", Address: "elsewhere:1"}}})
	require.False(t, n.group.membership.established(), "others look for it elsewhere")
}

// TestATestClockIsNoWallClock: nothing is noted of those.
func TestATestClockIsNoWallClock(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	r := n.leads(t)
	require.Contains(t, string(n.group.leadership.noteWalls(r)), `"a":`)
	n.host.testClock = true
	require.Empty(t, n.group.leadership.noteWalls(r))
}

// deafPort is a port from which no other node can be reached.
func deafPort(t *testing.T) *peer.Port {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := peer.NewPort(l, peer.Config{
		Self:   func() peer.Identity { return peer.Identity{NodeID: "a"} },
		Logger: slog.New(slog.DiscardHandler),
		Dialer: func(context.Context, string) (net.Conn, error) { return nil, errors.New("no route") },
	}, func(conn net.Conn, _ peer.Identity) { conn.Close() })
	t.Cleanup(func() { require.NoError(t, port.Close()) })
	return port
}
