package peer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/connlimit"
)

// held counts the connections that a port tracks.
func (p *Port) held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// portOf starts a port of node b with the given service.
func portOf(t *testing.T, serve func(conn net.Conn, from Identity)) *Port {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := openPort(t, listen, HubConfig{Secret: []byte("secret")}, PortConfig{
		Self: func() Identity { return Identity{NodeID: "b"} }, Logger: slog.New(slog.DiscardHandler),
	}, serve)
	t.Cleanup(func() { p.Close() })
	return p
}

// TestStreamsToAnyNode checks that any node may answer a stream without a known id. A stream to a node other than the
// known one is closed.
func TestStreamsToAnyNode(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	to := raft.ServerAddress(b.Addr().String())
	conn, err := a.Raft("a:1", func(string) string { return "" }).Dial(to, patience)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	_, err = a.Raft("a:1", func(string) string { return "c" }).Dial(to, patience)
	require.ErrorIs(t, err, ErrWrongID)
	require.Zero(t, a.held())
}

// TestWhatAPortServes checks that a port serves calls, serves Raft while the node may take part, and serves nothing
// else.
func TestWhatAPortServes(t *testing.T) {
	no := errors.New("not now")
	p := Port{config: PortConfig{Self: func() Identity { return Identity{NodeID: "b", ClusterID: "one"} }}}
	for _, c := range []struct {
		service Service
		from    Identity
		serves  func() error
		want    error
	}{
		{CallService, Identity{"a", "one"}, nil, nil}, {RaftService, Identity{"a", "one"}, nil, nil},
		{RaftService, Identity{"a", ""}, nil, nil},
		{CallService, Identity{"a", "one"}, func() error { return no }, nil},
		{RaftService, Identity{"a", "one"}, func() error { return no }, no},
		{RaftService, Identity{"a", "one"}, func() error { return nil }, nil},
		{'X', Identity{"a", "one"}, nil, ErrNotWeir}, {0, Identity{"a", "one"}, nil, ErrNotWeir},
		{CallService, Identity{"b", "one"}, nil, ErrSameNode}, {CallService, Identity{"a", "two"}, nil, ErrCluster},
	} {
		p.config.ServesRaft = c.serves
		require.ErrorIs(t, p.judge(c.service, c.from), c.want, "%q of %+v", c.service, c.from)
	}
	p.config.Self = func() Identity { return Identity{NodeID: "b"} }
	require.NoError(t, p.judge(CallService, Identity{"a", "two"}), "a new node must be able to call")
}

// TestComplaintsAreBounded checks that refused connections do not fill a log, and later refusals are logged again.
func TestComplaintsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := &logtest.Buffer{}
		p := Port{hub: &Hub{}, config: PortConfig{Logger: slog.New(slog.NewTextHandler(said, nil))}}
		complain := func() { p.complain("refused", address("somewhere"), io.EOF) }
		complain()
		time.Sleep(complaintsEvery - time.Nanosecond)
		complain()
		require.Equal(t, 1, said.Count("refused"))
		time.Sleep(time.Nanosecond)
		complain()
		require.Equal(t, 2, said.Count("refused"))
	})
}

// TestAClosedPort checks that a closed port accepts and dials no connection.
func TestAClosedPort(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b, _ := open(t, "b", "one", "secret")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.ErrorIs(t, err, net.ErrClosed)
	near, far := net.Pipe()
	slot, err := a.hub.handshakes.Admit(connlimit.SourceOf("127.0.0.2:1"), func() { near.Close() })
	require.NoError(t, err)
	a.hub.welcome(near, slot)
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, a.held())
}

// TestAServiceThatEnds checks that a connection is closed when its service ends.
func TestAServiceThatEnds(t *testing.T) {
	a, _ := open(t, "a", "one", "secret")
	b := portOf(t, func(net.Conn, Identity) {})
	conn, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
	require.NoError(t, err)
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(patience))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// TestOnlyTheOtherSidesErrorIsARefusal checks that only an error that the other side sent is a refusal.
func TestOnlyTheOtherSidesErrorIsARefusal(t *testing.T) {
	remote := &net.OpError{Op: "remote error", Err: errors.New("expired")}
	require.ErrorIs(t, explained(remote), ErrOwnRefused)
	for _, err := range []error{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, io.EOF} {
		require.Equal(t, err, explained(err))
	}
}

// TestTheDialerComplainsOfCertificates checks that the dialing side only logs errors that certificates or flags can
// resolve.
func TestTheDialerComplainsOfCertificates(t *testing.T) {
	mine := certtest.NewCA(t, "nodes").Issue("a", nil)
	plain, _ := openWith(t, "b", "", nil)
	a, said := openWith(t, "a", "", &mine)
	_, _, err := a.Dial(context.Background(), plain.Addr().String(), CallService)
	require.Error(t, err)
	require.Eventually(t, func() bool {
		return said.Has(
			"the TLS handshake with another node failed")
	}, patience, time.Millisecond)
	c, said := open(t, "c", "two", "secret")
	d, _ := open(t, "d", "one", "secret")
	_, _, err = c.Dial(context.Background(), d.Addr().String(), CallService)
	require.ErrorIs(t, err, ErrRefused)
	require.False(t, said.Has("no TLS"))
}
