package raftstore

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Node is one Raft group on a host, and only connects its parts; see doc.go. Package router makes a limiter of all
// groups of a host.
type Node struct {
	own   *host.Group
	group *group

	knownLeader   atomic.Pointer[string]
	leaderChanges atomic.Int64

	once     sync.Once
	closeErr error
}

// Open starts a group on o.Host. It returns when the group's own state is loaded. The group joins or bootstraps its
// cluster in the background.
func Open(o host.Options) (*Node, error) {
	if err := o.Complete(); err != nil {
		return nil, err
	}
	n := newNode(o)
	if err := n.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("node %q: %w", o.NodeID, err), n.release())
	}
	n.start()
	return n, nil
}

func newNode(o host.Options) *Node {
	n := &Node{own: host.NewGroup(o)}
	n.group = newGroup(n.own, n.status)
	n.own.Peers = host.NewPeers(n.own, n.group) // the port asks Peers about every connection that fails
	return n
}

func (n *Node) open() error {
	if err := n.load(); err != nil {
		return err
	}
	n.group.makeParts()
	return n.group.openRaft()
}

// load loads the state of the group, and opens its port and its transport.
func (n *Node) load() error {
	if err := n.own.Claim(); err != nil {
		return err
	}
	if err := n.group.load(); err != nil {
		return err
	}
	if err := n.own.OpenPort(n.serveCalls); err != nil {
		return err
	}
	n.group.openTransport()
	return nil
}

// start starts all goroutines of the node.
func (n *Node) start() {
	n.own.Peers.LookAtMembers()
	close(n.group.ready)
	n.own.Port.AnswerCalls(n.answer, calls.Term, calls.Stopping)
	n.group.start()
	n.own.Every(timers.HousekeepEvery, func() { n.Topology() }) // records the leader
	n.own.WatchDisk()
	n.own.Peers.Start()
}

// Close stops the node. It transfers leadership first, and no acknowledged decision is lost. All decisions must have
// ended before the call.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.own.Peers.AnnounceStop()
		n.group.leave()
		close(n.own.Stop)
		n.own.Cancel()
		n.group.queue.Close()
		ended := n.group.raft.Shutdown()
		// The library waits without a deadline for its exchanges. They end when their connections are cut. Calls of
		// other nodes in turn wait for the library, which may never answer them. Closing Ended releases these calls,
		// and then the port can close.
		n.own.Peers.Close()
		err := errors.Join(n.own.Port.Cut(), ended.Error())
		close(n.group.raft.Ended)
		err = errors.Join(err, n.own.Port.Close())
		n.own.End()
		n.closeErr = errors.Join(err, n.release())
	})
	return n.closeErr
}

// release closes the parts that open has opened.
func (n *Node) release() error {
	n.own.Cancel()
	var err error
	if n.group.transport != nil {
		err = n.group.transport.Close()
	}
	if n.own.Port != nil {
		err = errors.Join(err, n.own.Port.Close())
	}
	return errors.Join(err, n.group.release())
}

// serveCalls answers another node until its connection ends.
func (n *Node) serveCalls(conn net.Conn, from peer.Identity) {
	select {
	case <-n.group.ready:
		peer.ServeCalls(conn, from, n.answer, calls.Term, calls.Stopping)
	case <-n.own.Ctx.Done():
	}
}
