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
			n.port = deafPort(t)
			n.options.Join, n.options.Expect = c.join, c.expect
			err := n.tryJoin()
			if c.says == "" {
				require.NoError(t, err)
				require.False(t, n.pristine())
				return
			}
			require.ErrorContains(t, err, c.says)
			require.True(t, n.pristine(), "it has founded nothing")
			require.False(t, n.invited())
		})
	}
}

// TestAClusterIsFoundedByItsFirstEntry: a leader whose entry is in no log does not serve.
func TestAClusterIsFoundedByItsFirstEntry(t *testing.T) {
	n := newBareNode(t)
	r := &reign{term: 1, clock: persistence.StartClock(n.source, at(0))}
	require.False(t, n.found(r), "it does not lead")
	require.False(t, n.hasCluster())
	n.configure(t, "a")
	r = n.leads(t)
	require.True(t, n.found(r))
	require.True(t, n.hasCluster())
	require.Empty(t, n.ended)
}

// TestOnlyAMemberForCertainStopsAsking: what only this node has heard may be undone.
func TestOnlyAMemberForCertainStopsAsking(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a", "b")
	require.Equal(t, "a:1", n.believed())
	require.False(t, n.settled(), "it knows of no committed configuration")
	n.identity.Joined = true
	require.False(t, n.settled())
	n.machine.committed.Store(&membership{servers: n.servers()})
	require.True(t, n.settled())
	n.identity.Joined = false
	require.False(t, n.settled())
	n.identity.Joined = true
	n.machine.committed.Store(&membership{servers: []raft.Server{{ID: "a", Address: "elsewhere:1"}}})
	require.False(t, n.settled(), "others look for it elsewhere")
}

// TestATestClockIsNoWallClock: nothing is noted of those.
func TestATestClockIsNoWallClock(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	r := n.leads(t)
	require.Contains(t, string(n.noteWalls(r)), `"a":`)
	n.testClock = true
	require.Empty(t, n.noteWalls(r))
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
