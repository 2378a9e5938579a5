package transport

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/peer"
)

// sharing is the transport of one group on a host of its own.
type sharing struct {
	*Shared
	addr     raft.ServerAddress
	accepted *atomic.Int32 // connections of other hosts
	opens    *atomic.Int32 // transports for streams
}

type countingListener struct {
	net.Listener
	accepted atomic.Int32
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

func openSharing(t *testing.T, id string) *sharing {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	counted := &countingListener{Listener: l}
	h := peer.NewHub(counted, peer.HubConfig{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { h.Close() })
	p, err := h.Open(3, peer.PortConfig{
		Self:   func() peer.Identity { return peer.Identity{NodeID: id, ClusterID: "c"} },
		Logger: slog.New(slog.DiscardHandler),
	}, func(net.Conn, peer.Identity) {})
	require.NoError(t, err)
	var opens atomic.Int32
	open := func() *raft.NetworkTransport {
		opens.Add(1)
		return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:  p.Raft(l.Addr().String(), func(string) string { return "" }),
			MaxPool: 1, MaxRPCsInFlight: 1, Timeout: 10 * time.Second, Logger: hclog.NewNullLogger(),
		})
	}
	s := NewShared(open, p, l.Addr().String(), 10*time.Second)
	t.Cleanup(func() { s.Close() })
	return &sharing{s, raft.ServerAddress(l.Addr().String()), &counted.accepted, &opens}
}

// next answers the next message with a response, and returns the message.
func (s *sharing) next(response any, err error) chan raft.RPC {
	got := make(chan raft.RPC, 1)
	go func() {
		rpc := <-s.Consumer()
		if rpc.Reader != nil {
			io.Copy(io.Discard, rpc.Reader)
		}
		rpc.Respond(response, err)
		got <- rpc
	}()
	return got
}

// TestSharedMessages checks that every message and every answer arrives unchanged, on the shared connection and on
// streams.
func TestSharedMessages(t *testing.T) {
	a, b := openSharing(t, "a"), openSharing(t, "b")
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte(a.addr)}
	appended := raft.AppendEntriesResponse{RPCHeader: header, Term: 4, LastLog: 9, Success: true, NoRetryBackoff: true}
	for name, entries := range map[string][]*raft.Log{
		"a heartbeat": nil,
		"entries": {{Index: 8, Term: 4, Type: raft.LogCommand, Data: []byte("one"), Extensions: []byte("x"),
			AppendedAt: time.Now().UTC().Round(0)}, {Index: 9, Term: 4, Type: raft.LogNoop}},
		"long entries": {{Index: 8, Term: 4, Data: make([]byte, maxSharedEntries+1),
			AppendedAt: time.Unix(1, 2).UTC()}},
	} {
		request := raft.AppendEntriesRequest{RPCHeader: header, Term: 4, PrevLogEntry: 7, PrevLogTerm: 3,
			Entries: entries, LeaderCommitIndex: 6}
		got := b.next(&appended, nil)
		var response raft.AppendEntriesResponse
		require.NoError(t, a.AppendEntries("b", b.addr, &request, &response), name)
		require.Equal(t, &request, (<-got).Command, name)
		require.Equal(t, appended, response, name)
	}
	require.EqualValues(t, 2, b.accepted.Load(), "the shared connection, and a stream for the long entries")

	vote := raft.RequestVoteRequest{RPCHeader: header, Term: 5, LastLogIndex: 1, LeadershipTransfer: true}
	var voted raft.RequestVoteResponse
	got := b.next(&raft.RequestVoteResponse{RPCHeader: header, Term: 5, Granted: true}, nil)
	require.NoError(t, a.RequestVote("b", b.addr, &vote, &voted))
	require.Equal(t, &vote, (<-got).Command)
	require.True(t, voted.Granted)

	before, said := raft.RequestPreVoteRequest{RPCHeader: header, Term: 5}, raft.RequestPreVoteResponse{}
	got = b.next(&raft.RequestPreVoteResponse{RPCHeader: header, Term: 5, Granted: true}, nil)
	require.NoError(t, a.RequestPreVote("b", b.addr, &before, &said))
	require.Equal(t, &before, (<-got).Command)
	require.True(t, said.Granted)

	image := raft.InstallSnapshotRequest{RPCHeader: header, Term: 5, Size: 5}
	installed := raft.InstallSnapshotResponse{}
	led, got := make(chan raft.RPC, 1), make(chan raft.RPC, 1)
	go func() {
		led <- <-b.next(nil, nil)
		got <- <-b.next(&raft.InstallSnapshotResponse{Success: true}, nil)
	}()
	require.NoError(t, a.InstallSnapshot("b", b.addr, &image, &installed, io.LimitReader(zeros{}, 5)))
	require.Equal(t, &raft.AppendEntriesRequest{RPCHeader: header, Term: 5}, (<-led).Command)
	require.Equal(t, &image, (<-got).Command)
	require.True(t, installed.Success)

	b.next(&raft.RequestVoteResponse{}, fmt.Errorf("the reason"))
	require.ErrorContains(t, a.RequestVote("b", b.addr, &vote, &voted), "the reason")
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// TestOnlyHeartbeatsArePatient checks that a message that someone waits for leaves at once.
func TestOnlyHeartbeatsArePatient(t *testing.T) {
	require.True(t, heartbeat(&raft.AppendEntriesRequest{Term: 4}))
	for _, other := range []raft.AppendEntriesRequest{
		{Term: 4, PrevLogEntry: 1}, {Term: 4, LeaderCommitIndex: 1}, {Term: 4, Entries: []*raft.Log{{}}},
	} {
		require.False(t, heartbeat(&other))
	}
}

// TestUnknownMessages checks that a node refuses messages of a newer weir, and messages that it cannot decode.
func TestUnknownMessages(t *testing.T) {
	s := openSharing(t, "a")
	_, err := s.answer('z', nil, nil)
	require.ErrorContains(t, err, "does not know")
	_, err = s.answer(requestVote, []byte("\xc1"), nil)
	require.Error(t, err)
}
