package raftstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestNoClusterIsFoundedByFewerThanExpected checks that a node bootstraps only when it sees the expected number of
// nodes and is first in the join list. Two nodes that both bootstrap would be two limiters.
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
			n.own.Port = deafPort(t, nil)
			n.membership.JoinAddrs, n.membership.Expect = c.join, c.expect
			err := n.membership.TryJoin()
			if c.says == "" {
				require.NoError(t, err)
				require.False(t, n.membership.Pristine())
				return
			}
			require.ErrorContains(t, err, c.says)
			require.True(t, n.membership.Pristine(), "the node must not have bootstrapped")
			require.False(t, n.own.Identity.WasInvited())
		})
	}
}

// TestAClusterIsFoundedByItsFirstEntry checks that a cluster exists only after its first entry is committed. A leader
// must not serve before that.
func TestAClusterIsFoundedByItsFirstEntry(t *testing.T) {
	n := newBareNode(t)
	r := &leadership.Term{Number: 1, Clock: persistence.StartClock(n.own.Options.Source, at(0))}
	require.False(t, n.leadership.Bootstrap(r), "a node that does not lead cannot bootstrap")
	require.False(t, n.own.Identity.HasCluster())
	n.configure(t, "a")
	r = n.leads(t)
	require.True(t, n.leadership.Bootstrap(r))
	require.True(t, n.own.Identity.HasCluster())
	require.Empty(t, n.ended)
}

// TestAClusterOfAnOlderVersionGetsASeed checks that a leader proposes a seed for the tables if the founding entry has
// none, once every member reads the newest format.
func TestAClusterOfAnOlderVersionGetsASeed(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	r := n.leads(t)
	n.leadership.Seed(wire.Version)
	require.Zero(t, n.fsm.State.Index, "a cluster is founded first")
	require.True(t, n.leadership.Bootstrap(r))
	seed := n.fsm.State.Founding.HashSeed
	require.NotZero(t, seed)
	n.leadership.Seed(wire.Version)
	require.Equal(t, seed, n.fsm.State.Founding.HashSeed)

	n.fsm.State.Founding.HashSeed = engine.HashSeed{} // as an older version leaves it
	n.leadership.Seed(wire.Version - 1)
	require.Zero(t, n.fsm.State.Founding.HashSeed, "a member may be of an older version")
	n.leadership.Seed(wire.Version)
	require.NotZero(t, n.fsm.State.Founding.HashSeed)
	require.NotEqual(t, seed, n.fsm.State.Founding.HashSeed)
	require.Empty(t, n.ended)
}

// TestANewcomerReadsTheOldestForm checks that a node which reads no form that this weir writes cannot join.
func TestANewcomerReadsTheOldestForm(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a", "b") // and b has not said what it reads
	require.NoError(t, n.format.CheckNewcomer("c", wire.Oldest))
	require.ErrorIs(t, n.format.CheckNewcomer("c", wire.Oldest-1), failure.ErrOlder)
}

// TestOnlyAMemberForCertainStopsAsking checks that a node asks to join until a committed configuration lists it at
// its own address. An uncommitted configuration may be undone.
func TestOnlyAMemberForCertainStopsAsking(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a", "b")
	require.Equal(t, "a:1", n.membership.CurrentAddr())
	require.False(t, n.membership.Established(), "the node knows no committed configuration")
	n.own.Identity.Joined = true
	require.False(t, n.membership.Established())
	n.fsm.Committed.Store(&fsm.Configuration{Servers: n.raft.Servers()})
	require.True(t, n.membership.Established())
	n.own.Identity.Joined = false
	require.False(t, n.membership.Established())
	n.own.Identity.Joined = true
	n.fsm.Committed.Store(&fsm.Configuration{Servers: []raft.Server{{ID: "a", Address: "elsewhere:1"}}})
	require.False(t, n.membership.Established(), "the configuration has another address for the node")
}

// TestATestClockIsNoWallClock checks that a tick does not record wall clocks while a test clock is in use.
func TestATestClockIsNoWallClock(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	r := n.leads(t)
	require.Contains(t, string(n.leadership.NoteWalls(r)), `"a":`)
	n.leadership.TestClock = true
	require.Empty(t, n.leadership.NoteWalls(r))
}

// deafPort is a port that cannot reach other nodes. It sends the addresses that it shall reach to dialed, unless that is
// nil.
func deafPort(t *testing.T, dialed chan<- string) *peer.Port {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	hub := peer.NewHub(l, peer.HubConfig{
		Logger: slog.New(slog.DiscardHandler),
		Dialer: func(_ context.Context, addr string) (net.Conn, error) {
			if dialed != nil {
				dialed <- addr
			}
			return nil, errors.New("no route")
		},
	})
	t.Cleanup(func() { require.NoError(t, hub.Close()) })
	port, err := hub.Open(0, peer.PortConfig{
		Self: func() peer.Identity { return peer.Identity{NodeID: "a"} }, Logger: slog.New(slog.DiscardHandler),
	}, func(conn net.Conn, _ peer.Identity) { conn.Close() })
	require.NoError(t, err)
	return port
}

// leaderAt are peers with a connection to one of them, the leader.
type leaderAt struct {
	membership.Peers
	client *peer.Client
}

func (l leaderAt) Client(string) *peer.Client { return l.client }

// TestAnOrderWithoutAnAnswerMayBeDone checks that a follower reports an order as possibly carried out if the answer of
// the leader was lost, and as certainly not carried out if the order could not be sent.
func TestAnOrderWithoutAnAnswerMayBeDone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	hub := peer.NewHub(l, peer.HubConfig{Logger: slog.New(slog.DiscardHandler)})
	as := func(id string) peer.PortConfig {
		return peer.PortConfig{
			Self: func() peer.Identity { return peer.Identity{NodeID: id} }, Logger: slog.New(slog.DiscardHandler),
		}
	}
	_, err = hub.Open(0, as("b"), func(conn net.Conn, _ peer.Identity) {
		_, _ = conn.Read(make([]byte, 1)) // the order has arrived
		conn.Close()
	})
	require.NoError(t, err)
	n := newBareNode(t)
	client := peer.NewClient(deafPort(t, nil), l.Addr().String(), "")
	n.membership.Peers = leaderAt{n.membership.Peers, client}
	require.Equal(t, limiter.ErrClusterDown, n.Promote("c"))
	client.Close()

	dialer := peer.NewDialer(peer.HubConfig{Logger: slog.New(slog.DiscardHandler)}, as("a"))
	t.Cleanup(func() { require.NoError(t, dialer.Close()) })
	client = peer.NewClient(dialer, l.Addr().String(), "")
	t.Cleanup(client.Close)
	t.Cleanup(func() { require.NoError(t, hub.Close()) })
	n.membership.Peers = leaderAt{n.membership.Peers, client}
	require.Equal(t, limiter.ErrUnknownOutcome, n.Promote("c"))
}
