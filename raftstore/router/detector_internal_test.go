package router

import (
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/detector"
	"github.com/weir-project/weir/raftstore/peer"
)

// hostPort opens a hub with a port for messages between hosts, or without one, as an older weir has it.
func hostPort(t *testing.T, id string, older bool) (addr string, port *peer.Port) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	hub := peer.NewHub(l, peer.HubConfig{Logger: log})
	t.Cleanup(func() { hub.Close() })
	if !older {
		self := func() peer.Identity { return peer.Identity{NodeID: id} }
		port, err = hub.Open(peer.HostGroup, peer.PortConfig{Self: self, Logger: log}, nil)
		require.NoError(t, err)
	}
	return l.Addr().String(), port
}

// TestAnOlderHostHasNoDetector checks that a host of an older weir refuses a ping in a way that the failure detector
// takes for a sign of life, and that the ping names its sender.
func TestAnOlderHostHasNoDetector(t *testing.T) {
	self, from := hostPort(t, "a", false)
	n := &Node{options: raftstore.Options{RaftAddr: self}, hosts: from}
	older, _ := hostPort(t, "b", true)
	require.ErrorIs(t, (*hosts)(n).Ping(t.Context(), detector.Host{Addr: older, ID: "b"}), detector.ErrNoDetector)
	newer, to := hostPort(t, "b", false)
	got := make(chan string, 1)
	to.AnswerShared(func(_ byte, body []byte, _ <-chan struct{}) ([]byte, error) {
		got <- string(body)
		return nil, nil
	})
	require.NoError(t, (*hosts)(n).Ping(t.Context(), detector.Host{Addr: newer, ID: "b"}))
	require.Equal(t, self, <-got)
}

// TestAQuestionAboutUnknownGroups checks that a host has no view of a group that does not exist, whatever another host
// asks.
func TestAQuestionAboutUnknownGroups(t *testing.T) {
	n := &Node{Router: New([]replica{{why: raftstore.ErrRemoved}}, 0, slog.New(slog.DiscardHandler), faults.Set{})}
	defer n.Router.Close()
	for _, group := range []int{-1, 0, 1, 1 << 40} {
		_, ok := (*replicas)(n).View(group)
		require.False(t, ok)
	}
}
