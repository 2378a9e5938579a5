package raftstore

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Node is one node of a cluster: a limiter for the server in front of it. It only wires the host
// and its group together, see doc.go.
type Node struct {
	host  *host
	group *group

	knownLeader   atomic.Pointer[string]
	leaderChanges atomic.Int64

	once     sync.Once
	closeErr error
}

// Open starts a node. It returns when the node's own state is loaded, and joins or
// founds the cluster in the background.
func Open(o Options) (*Node, error) {
	if err := o.complete(); err != nil {
		return nil, errors.Join(err, closeIf(o.Listener))
	}
	n := newNode(o)
	if err := n.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("node %q: %w", o.NodeID, err), n.release())
	}
	n.start()
	return n, nil
}

func newNode(o Options) *Node {
	n := &Node{host: newHost(o)}
	n.group = newGroup(n.host, n.status)
	n.host.peers = newPeers(n.host, n.group) // the port asks it about every connection that fails
	return n
}

func (n *Node) open() error {
	if err := n.host.claim(); err != nil {
		return err
	}
	if err := n.group.load(); err != nil {
		return err
	}
	n.host.openPort(n.serveCalls)
	return n.group.openRaft()
}

// start sets everything going.
func (n *Node) start() {
	n.host.peers.lookAtMembers()
	close(n.group.ready)
	n.group.start()
	n.host.tasks.Go(n.housekeep)
	n.host.tasks.Go(n.host.watchDisk)
	n.host.peers.start()
}

// housekeep does what is due a few times a second.
func (n *Node) housekeep() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.group.housekeep()
			n.Topology() // takes note of who leads
			n.group.collect()
		case <-n.host.stop:
			return
		}
	}
}

// Close leaves in an orderly way: leadership is handed over first, and nothing that
// was answered is lost. Decisions must have ended.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.host.peers.tellStopping()
		n.group.leave()
		close(n.host.stop)
		n.host.cancel()
		n.group.queue.Close()
		ended := n.group.raft.Shutdown()
		// The library waits for exchanges that have no deadline, which end with their
		// connections. What answers other nodes waits for the library, which may forget
		// to answer: it ends with the library, and the port after it.
		n.host.peers.close()
		err := errors.Join(n.host.port.Cut(), ended.Error())
		close(n.group.raft.Ended)
		err = errors.Join(err, n.host.port.Close())
		n.host.tasks.Wait()
		n.closeErr = errors.Join(err, n.release())
	})
	return n.closeErr
}

// release lets go of what open made.
func (n *Node) release() error {
	n.host.cancel()
	var err error
	if n.group.transport != nil {
		err = n.group.transport.Close()
	}
	return errors.Join(err, n.host.closePort(), n.group.release())
}

func closeIf(c io.Closer) error {
	if c == nil {
		return nil
	}
	return c.Close()
}

// serveCalls answers another node until it goes away.
func (n *Node) serveCalls(conn net.Conn, from peer.Identity) {
	select {
	case <-n.group.ready:
		peer.ServeCalls(conn, from, n.answer, calls.Term)
	case <-n.host.ctx.Done():
	}
}
