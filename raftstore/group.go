package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/recovery"
	"github.com/weir-project/weir/raftstore/internal/snapshots"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/internal/transport"
)

const (
	// collectPerShard bounds the entries that one run of collect examines per shard.
	collectPerShard = 1024
)

// carrier is a transport.Shared, or in a test another transport.
type carrier interface {
	transport.Carrier
	Elect(ctx context.Context) bool
	LastTransfer() time.Time
}

// loadState opens the images and the log, and runs recovery. The inter-node port must not be open yet, because it
// reports the id of the cluster to other nodes.
func (n *Node) loadState() error {
	o := &n.own.Options
	var err error
	n.images, err = persistence.OpenImages(persistence.StoreOptions{
		Dir: o.FS.PathJoin(o.DataDir, identity.TableName), FS: o.FS, Logger: n.own.Log, OnFatal: n.own.Fatal,
		Progress: o.Progress,
	})
	if err != nil {
		return err
	}
	if err := n.openLog(); err != nil {
		return err
	}
	if err := n.recovery().Run(); err != nil {
		return err
	}
	n.arrivals, err = raftlog.NoteArrivals(n.logs, n.own.Options.Source)
	return err
}

// otherGroups returns the directories of the other groups that this host opens after its first group. It returns none
// for another group.
func (n *Node) otherGroups() (dirs []string, err error) {
	o := &n.own.Options
	for i := 1; i < o.Groups && o.Group == 0; i++ {
		dir := GroupDir(o.DataDir, i)
		id, ok, err := identity.Read(o.FS, dir)
		if err != nil {
			return nil, err
		}
		if ok && !id.Removed && id.Diverged == "" && (id.Joined || o.Replicas == 0) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

func (n *Node) recovery() *recovery.Recovery {
	own, o := n.own, &n.own.Options
	return &recovery.Recovery{
		Self: o.NodeID, RaftAddr: o.RaftAddr, Durability: o.Durability, FS: o.FS, DataDir: o.DataDir,
		Group: o.Group, Replicas: o.Replicas, Others: n.otherGroups,
		Identity: own.Identity.Identity, MarkHasLog: own.Identity.MarkHasLog, Log: own.Log, Faults: o.Faults,
		Logs: n.logs, Images: n.images,
		NewMachine: n.newMachine, RaftConfig: n.raftConfig, Joined: n.cluster.Joined,
	}
}

// newMachine returns a state machine that tells no part of the group about its changes.
func (n *Node) newMachine() *fsm.FSM {
	o := &n.own.Options
	m := fsm.New(o.Table, o.Groups)
	m.Source, m.Images, m.Faults, m.Newest = o.Source, n.images, o.Faults, o.Format
	m.Answers, m.Fatal, m.Founded, m.Reach = n.queue.Answers, n.own.Fatal, n.cluster.Joined, n.own.Reach
	if n.arrivals != nil {
		m.Arrived = n.arrivals.Of
	}
	return m
}

func (n *Node) openLog() error {
	var store raftlog.Store
	switch given := n.own.Options.Log; {
	case given != nil:
		store = given[n.own.Options.Group]
	case n.own.Options.Durability == identity.Memory:
		store = raft.NewInmemStore()
	default:
		var err error
		if store, err = n.openStore(); errors.Is(err, wal.ErrCorrupt) {
			return fmt.Errorf("%w; this node does not start, and has changed nothing: %s", err,
				failure.DamageAdvice(n.own.Alone()))
		} else if err != nil {
			return err
		}
	}
	n.logs = raftlog.Guard(store, n.own.Fatal)
	n.logs.NewestImage = n.newestImage
	return nil
}

// openStore opens the log on disk.
func (n *Node) openStore() (raftlog.Store, error) {
	part, err := n.own.OpenPart()
	if err != nil {
		return nil, err
	}
	part.OnPinned(n.wanted.Store)
	n.closeLogs = part.Close
	return part, nil
}

// openTransport opens the transport of the Raft library on the inter-node port.
func (n *Node) openTransport() {
	timeout := max(raftTimeouts*n.own.Options.Heartbeat, minRaftTimeout)
	streams := func() *raft.NetworkTransport {
		return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:  n.own.Port.Raft(n.own.Options.RaftAddr, n.own.Peers.IdAt),
			MaxPool: raftConns, MaxRPCsInFlight: oneAtATime,
			Timeout: timeout,
			Logger:  logging.New(n.own.Log, n.own.Peers.Expects),
		})
	}
	n.transport = transport.NewShared(streams, n.own.Port, n.own.Options.RaftAddr, timeout)
}

// openRaft starts the Raft library.
func (n *Node) openRaft() error {
	own := n.own
	stuck := &transport.Gate{
		Logs: n.logs, Limit: own.Options.Heartbeat / timers.StuckFraction, Stop: own.Stop, Log: own.Log,
	}
	var carrier raft.Transport = transport.Transport{Carrier: n.transport, Gate: stuck, Reach: n.own.Reach}
	if n.own.Options.Faults.Has(faults.HeartbeatFastPath) {
		carrier = n.transport
	}
	cache, err := raft.NewLogCache(cachedEntries, n.arrivals)
	if err != nil {
		return err
	}
	store := images.Store{Images: n.images, Faults: n.own.Options.Faults, Has: n.has}
	n.raft.Raft, err = raft.NewRaft(n.raftConfig(), n.fsm, cache, n.arrivals, store, carrier)
	return err
}

const (
	// raftConns is the number of idle connections to one node that the library keeps.
	raftConns = 3
	// raftTimeouts bounds one exchange of the Raft library, in heartbeat timeouts. The bound is at least
	// minRaftTimeout. After this time the library gives up a connection that the network has cut without notice.
	raftTimeouts   = 3
	minRaftTimeout = time.Second
	// oneAtATime disables the library's pipelining. If a pipelined exchange fails, the sender can wait forever for a
	// reader goroutine that has ended. The follower then never gets an entry again (hashicorp/raft issue 612; seen
	// here in a test). An exchange carries many entries anyway.
	oneAtATime = 1
	// cachedEntries is the number of recent log entries that stay in memory. The leader sends them to followers
	// without reading the disk.
	cachedEntries = 512
	// maxAppendEntries bounds the entries of one exchange: 64 entries of 128 KiB are 8 MiB.
	maxAppendEntries = 64
)

func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.own.Options.NodeID)
	c.HeartbeatTimeout, c.ElectionTimeout = n.own.Options.Heartbeat, n.own.Options.Heartbeat
	// A leader that withheld its heartbeats for a moment (transport.Gate) must not resign before its followers may
	// elect another leader. No guarantee depends on the leader lease; see quorum.Rounds.
	c.LeaderLeaseTimeout = n.own.Options.Heartbeat
	c.CommitTimeout = n.own.Options.CommitTimeout()
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.ShutdownOnRemove = true
	c.SnapshotThreshold = 1 << 62 // package snapshots takes snapshots, by bytes of log
	c.TrailingLogs = snapshots.MaxTrailing
	c.Logger = logging.New(n.own.Log, n.own.Peers.Expects)
	return c
}

// startParts starts the goroutines and the checks of all parts.
func (n *Node) startParts() {
	n.pipeline.FollowLeader()
	n.divergence.Start()
	for _, task := range []func(){
		n.pipeline.Pump, n.pipeline.CompleteProposals, n.leadership.Run, n.membership.Join,
	} {
		n.own.Go(task)
	}
	for _, check := range []func(){
		n.watchdog.Check, n.housekeep, n.collect, n.pipeline.TellEnds, n.pipeline.FreeMemory, n.leadership.LeaveIfSlow,
		n.snapshots.TakeIfDue, n.membership.Promote,
	} {
		n.own.Every(timers.HousekeepEvery, check)
	}
	if n.own.Options.First != nil {
		n.own.Every(timers.StatusEvery, n.membership.RemoveOutsiders)
	}
	n.reads.Start()
}

// housekeep runs the periodic work of the group.
func (n *Node) housekeep() {
	n.leadership.KeepTime()
	n.pipeline.Expire()
	n.own.Peers.LookAtMembers()
	n.format.Agree()
	n.leadership.Seed(byte(n.format.Agreed.Load()))
	if n.images.IsIdle() {
		n.idle.Go(n.own.Go, func() { _ = n.images.CloseIdle() }) // a failure ends the process
	}
}

// collect removes idle entries.
func (n *Node) collect() {
	at := n.fsm.LastStamp()
	if n.own.Options.Faults.Has(faults.CollectEarly) {
		at.NowNs += int64(time.Hour)
	}
	n.fsm.Table.Load().Collect(at, collectPerShard)
}

// Servers implements host.Consensus.
func (n *Node) Servers() []raft.Server { return n.raft.Servers() }

// Progress implements host.Consensus.
func (n *Node) Progress() (applied, committed uint64) {
	applied, _ = n.fsm.LastHistory()
	return applied, n.raft.CommitIndex()
}

// AskTerm implements host.Consensus.
func (n *Node) AskTerm(ctx context.Context, id string, ask func(context.Context) (uint64, error)) {
	n.confirms.AskTerm(ctx, id, ask)
}
