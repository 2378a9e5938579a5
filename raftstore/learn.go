package raftstore

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/peer"
)

// LearnFounding asks the other nodes of o.Join for the numbers of their cluster. It returns the first answer of a node
// that belongs to a cluster. ok is false if no such node answers within timers.StatusTimeout. A node calls it before it
// opens its port. So nodes without a cluster refuse each other at once, and do not wait.
func LearnFounding(o *Options) (f Founding, ok bool) {
	log := cmp.Or(o.Logger, slog.Default())
	port := peer.NewDialer(peer.HubConfig{
		Secret: o.Secret, Certificates: o.Certificates, Dialer: o.Dialer, Logger: log,
	}, peer.PortConfig{Self: func() peer.Identity { return peer.Identity{NodeID: o.NodeID} }, Logger: log})
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer port.Close() // ends the handshakes
	defer cancel()
	answers := make(chan host.Status, len(o.Join))
	for _, addr := range o.Join {
		asking.Go(func() { answers <- statusAt(ctx, port, addr, o.RaftAddr) })
	}
	for range o.Join {
		if s := <-answers; s.ClusterID != "" || s.NodeID != "" && !s.Pristine {
			return Founding{s.Groups.N(), s.Replicas}, true
		}
	}
	return Founding{}, false
}

// statusAt asks the node at an address, unless it is this node's own. It returns the zero Status without an answer.
func statusAt(ctx context.Context, port *peer.Port, addr, own string) host.Status {
	if addr == own {
		return host.Status{}
	}
	client := peer.NewClient(port, addr, "")
	defer client.Close()
	s, err := host.Ask(ctx, client)
	if err != nil {
		return host.Status{}
	}
	return s
}
