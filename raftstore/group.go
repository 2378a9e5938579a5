package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/divergence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/format"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/readindex"
	"github.com/weir-project/weir/raftstore/internal/recovery"
	"github.com/weir-project/weir/raftstore/internal/snapshots"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/internal/transport"
	"github.com/weir-project/weir/raftstore/internal/watchdog"
)

const (
	// collectPerShard bounds the entries that one run of collect examines per shard.
	collectPerShard = 1024
)

// group holds the parts of one Raft group: the Raft library and its log, the FSM and its images, the queue, the
// leader's clock and ReadIndex.
type group struct {
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
	status    func() host.Status
	confirms  *quorum.Check

	format     *format.Format
	divergence *divergence.Check
	leadership *leadership.Leadership
	reads      *readindex.Reads
	pipeline   *pipeline.Pipeline
	membership *membership.Membership
	snapshots  *snapshots.Snapshots
	watchdog   *watchdog.Watchdog
	closing    timers.Single // closes idle images
}

// carrier is a transport.Shared, or in a test another transport.
type carrier interface {
	transport.Carrier
	Elect(ctx context.Context) bool
	LastTransfer() time.Time
}

// newGroup returns a group without parts. status returns the status of the node.
func newGroup(own *host.Group, status func() host.Status) *group {
	return &group{
		own: own, status: status, raft: &consensus.Raft{Ended: make(chan struct{})},
		queue: queue.New(own.Options.MaxValueBytes, own.Options.Host.Window),
		cluster: &membership.Cluster{
			TestClock: own.Options.TestClock, IDLifetimeNs: own.Options.IDLifetimeNs(), Groups: own.Options.Groups,
			BelongTo: own.Identity.BelongTo, Log: own.Log, Fatal: own.Fatal,
		},
		closeLogs: func() error { return nil }, ready: make(chan struct{}),
	}
}

// load opens the images and the log, and runs recovery. The inter-node port must not be open yet, because it reports
// the id of the cluster to other nodes.
func (g *group) load() error {
	o := &g.own.Options
	var err error
	g.images, err = persistence.OpenImages(persistence.StoreOptions{
		Dir: o.FS.PathJoin(o.DataDir, identity.TableName), FS: o.FS, Logger: g.own.Log, OnFatal: g.own.Fatal,
	})
	if err != nil {
		return err
	}
	if err := g.openLog(); err != nil {
		return err
	}
	if err := g.recovery().Run(); err != nil {
		return err
	}
	g.arrivals, err = raftlog.NoteArrivals(g.logs, g.own.Options.Source)
	return err
}

func (g *group) recovery() *recovery.Recovery {
	own, o := g.own, &g.own.Options
	return &recovery.Recovery{
		Self: o.NodeID, RaftAddr: o.RaftAddr, Durability: o.Durability, FS: o.FS, DataDir: o.DataDir,
		Identity: own.Identity.Identity, MarkHasLog: own.Identity.MarkHasLog, Log: own.Log, Faults: o.Faults,
		Logs: g.logs, Images: g.images,
		NewMachine: g.newMachine, RaftConfig: g.raftConfig, Joined: g.cluster.Joined,
	}
}

// newMachine returns a state machine that tells no part of the group about its changes.
func (g *group) newMachine() *fsm.FSM {
	o := &g.own.Options
	m := fsm.New(o.Table, o.Groups)
	m.Source, m.Images, m.Faults, m.Newest = o.Source, g.images, o.Faults, o.Format
	m.Answers, m.Fatal, m.Founded, m.Reach = g.queue.Answers, g.own.Fatal, g.cluster.Joined, g.own.Reach
	if g.arrivals != nil {
		m.Arrived = g.arrivals.Of
	}
	return m
}

func (g *group) openLog() error {
	store := g.own.Options.Log
	switch {
	case store != nil:
	case g.own.Options.Durability == identity.Memory:
		store = raft.NewInmemStore()
	default:
		var err error
		if store, err = g.openStore(); errors.Is(err, wal.ErrCorrupt) {
			return fmt.Errorf("%w; this node does not start, and has changed nothing: %s", err,
				failure.DamageAdvice(g.own.Alone()))
		} else if err != nil {
			return err
		}
	}
	g.logs = raftlog.Guard(store, g.own.Fatal)
	g.logs.NewestImage = g.newestImage
	return nil
}

// openStore opens the log on disk.
func (g *group) openStore() (raftlog.Store, error) {
	part, err := g.own.OpenPart()
	if err != nil {
		return nil, err
	}
	part.OnPinned(g.wanted.Store)
	g.closeLogs = part.Close
	return part, nil
}

// openTransport opens the transport of the Raft library on the inter-node port.
func (g *group) openTransport() {
	timeout := max(raftTimeouts*g.own.Options.Heartbeat, minRaftTimeout)
	streams := func() *raft.NetworkTransport {
		return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:  g.own.Port.Raft(g.own.Options.RaftAddr, g.own.Peers.IdAt),
			MaxPool: raftConns, MaxRPCsInFlight: oneAtATime,
			Timeout: timeout,
			Logger:  logging.New(g.own.Log, g.own.Peers.Expects),
		})
	}
	g.transport = transport.NewShared(streams, g.own.Port, g.own.Options.RaftAddr, timeout)
}

// openRaft starts the Raft library.
func (g *group) openRaft() error {
	own := g.own
	stuck := &transport.Gate{
		Logs: g.logs, Limit: own.Options.Heartbeat / timers.StuckFraction, Stop: own.Stop, Log: own.Log,
	}
	var carrier raft.Transport = transport.Transport{Carrier: g.transport, Gate: stuck, Reach: g.own.Reach}
	if g.own.Options.Faults.Has(faults.HeartbeatFastPath) {
		carrier = g.transport
	}
	cache, err := raft.NewLogCache(cachedEntries, g.arrivals)
	if err != nil {
		return err
	}
	store := images.Store{Images: g.images, Faults: g.own.Options.Faults, Holds: g.holds}
	g.raft.Raft, err = raft.NewRaft(g.raftConfig(), g.fsm, cache, g.arrivals, store, carrier)
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

func (g *group) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(g.own.Options.NodeID)
	c.HeartbeatTimeout, c.ElectionTimeout = g.own.Options.Heartbeat, g.own.Options.Heartbeat
	// A leader that withheld its heartbeats for a moment (transport.Gate) must not resign before its followers may
	// elect another leader. No guarantee depends on the leader lease; see quorum.Check.
	c.LeaderLeaseTimeout = g.own.Options.Heartbeat
	c.CommitTimeout = g.own.Options.CommitTimeout()
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.ShutdownOnRemove = true
	c.SnapshotThreshold = 1 << 62 // package snapshots takes snapshots, by bytes of log
	c.TrailingLogs = snapshots.MaxTrailing
	c.Logger = logging.New(g.own.Log, g.own.Peers.Expects)
	return c
}

// start starts the goroutines and the checks of all parts.
func (g *group) start() {
	g.pipeline.FollowLeader()
	g.divergence.Start()
	for _, task := range []func(){
		g.pipeline.Pump, g.pipeline.CompleteProposals, g.leadership.Run, g.membership.Join,
	} {
		g.own.Go(task)
	}
	for _, check := range []func(){
		g.watchdog.Check, g.housekeep, g.collect, g.pipeline.Settle, g.leadership.LeaveIfSlow,
		g.snapshots.TakeIfDue, g.membership.Promote,
	} {
		g.own.Every(timers.HousekeepEvery, check)
	}
	if g.own.Options.First != nil {
		g.own.Every(timers.StatusEvery, g.membership.RemoveOutsiders)
	}
	g.reads.Start()
}

// housekeep runs the periodic work of the group.
func (g *group) housekeep() {
	g.leadership.KeepTime()
	g.pipeline.Expire()
	g.own.Peers.LookAtMembers()
	g.format.Agree()
	g.leadership.Seed(byte(g.format.Agreed.Load()))
	if g.images.IsIdle() {
		g.closing.Go(g.own.Go, func() { _ = g.images.CloseIdle() }) // a failure ends the process
	}
}

// collect removes idle entries.
func (g *group) collect() {
	at := g.fsm.LastStamp()
	if g.own.Options.Faults.Has(faults.CollectEarly) {
		at.NowNs += int64(time.Hour)
	}
	g.fsm.Table.Load().Collect(at, collectPerShard)
}

// leave transfers leadership before the node closes, and answers the calls in progress.
func (g *group) leave() {
	g.leadership.Resign()
	g.pipeline.AwaitQuiet()
}

// Servers implements host.Group.
func (g *group) Servers() []raft.Server { return g.raft.Servers() }

// Progress implements host.Group.
func (g *group) Progress() (applied, committed uint64) {
	applied, _ = g.fsm.Check()
	return applied, g.raft.CommitIndex()
}

// AskTerm implements host.Group.
func (g *group) AskTerm(ctx context.Context, id string, ask func(context.Context) (uint64, error)) {
	g.confirms.AskTerm(ctx, id, ask)
}

// release closes the parts that load opened.
func (g *group) release() error {
	if g.pipeline != nil {
		g.pipeline.Leave()
	}
	err := g.closeLogs()
	if g.images != nil {
		err = errors.Join(err, g.images.Close())
	}
	return err
}
