package raftstore

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/divergence"
	"github.com/weir-project/weir/raftstore/internal/format"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/readindex"
	"github.com/weir-project/weir/raftstore/internal/snapshots"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/internal/watchdog"
	"github.com/weir-project/weir/raftstore/peer"
)

// Node is one Raft group on a host: the Raft library and its log, the FSM and its images, the queue, the leader's clock
// and ReadIndex. It only connects these parts; see doc.go. Package router makes a limiter of all groups of a host.
type Node struct {
	own       *host.Group
	raft      *consensus.Raft
	fsm       *fsm.FSM
	images    *persistence.Images
	logs      *raftlog.Log
	arrivals  *raftlog.Arrivals
	closeLogs func() error
	wanted    atomic.Uint64 // see snapshots.Config
	ready     chan struct{} // closed when every part exists
	transport carrier
	queue     *queue.Queue
	cluster   *membership.Cluster
	confirms  *quorum.Rounds

	format     *format.Format
	divergence *divergence.Judge
	leadership *leadership.Leadership
	reads      *readindex.Reads
	pipeline   *pipeline.Pipeline
	membership *membership.Membership
	snapshots  *snapshots.Snapshots
	watchdog   *watchdog.Watchdog
	idle       timers.Single // closes idle images

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

// newNode returns a node whose parts do not exist yet.
func newNode(o host.Options) *Node {
	own := host.NewGroup(o)
	n := &Node{
		own: own, raft: &consensus.Raft{Ended: make(chan struct{})},
		queue: queue.New(o.MaxValueBytes, o.Host.Window),
		cluster: &membership.Cluster{
			TestClock: o.TestClock, IDLifetimeNs: o.IDLifetimeNs(), Groups: o.Groups,
			Replicas:    o.Replicas,
			EventsBytes: cmp.Or(o.EventsBytes(), engine.DefaultEventsBytes),
			BelongTo:    own.Identity.BelongTo, Log: own.Log, Fatal: own.Fatal,
		},
		closeLogs: func() error { return nil }, ready: make(chan struct{}),
	}
	own.Peers = host.NewPeers(own, n) // the port asks Peers about every connection that fails
	return n
}

func (n *Node) open() error {
	if err := n.load(); err != nil {
		return err
	}
	n.makeParts()
	return n.openRaft()
}

// load loads the state of the group, and opens its port and its transport.
func (n *Node) load() error {
	if err := n.own.Claim(); err != nil {
		return err
	}
	if err := n.loadState(); err != nil {
		return err
	}
	if err := n.own.OpenPort(n.serveCalls); err != nil {
		return err
	}
	n.openTransport()
	return nil
}

// start starts all goroutines of the node.
func (n *Node) start() {
	n.own.Peers.LookAtMembers()
	close(n.ready)
	n.own.Port.AnswerCalls(n.answer, calls.Term, calls.Stopping)
	n.startParts()
	n.own.Every(timers.HousekeepEvery, func() { n.Topology() }) // records the leader
	n.own.WatchDisk()
	n.own.Peers.Start()
}

// Close stops the node. It transfers leadership first, and no acknowledged decision is lost. All decisions must have
// ended before the call.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.own.Peers.AnnounceStop()
		n.leadership.Resign()
		n.pipeline.AwaitQuiet() // answers the calls in progress
		close(n.own.Stop)
		n.own.Cancel()
		n.queue.Close()
		ended := n.raft.Shutdown()
		// The library waits without a deadline for its exchanges. They end when their connections are cut. Calls of
		// other nodes in turn wait for the library, which may never answer them. Closing Ended releases these calls,
		// and then the port can close.
		n.own.Peers.Close()
		err := errors.Join(n.own.Port.Cut(), ended.Error())
		close(n.raft.Ended)
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
	if n.transport != nil {
		err = n.transport.Close()
	}
	if n.own.Port != nil {
		err = errors.Join(err, n.own.Port.Close())
	}
	if n.pipeline != nil {
		n.pipeline.Memory.Leave()
	}
	err = errors.Join(err, n.closeLogs())
	if n.images != nil {
		err = errors.Join(err, n.images.Close())
	}
	return err
}

// serveCalls answers another node until its connection ends.
func (n *Node) serveCalls(conn net.Conn, from peer.Identity) {
	select {
	case <-n.ready:
		peer.ServeCalls(conn, from, n.answer, calls.Term, calls.Stopping)
	case <-n.own.Ctx.Done():
	}
}
