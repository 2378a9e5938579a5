package raftstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/internal/transport"
	"github.com/weir-project/weir/raftstore/wallog"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// collectPerShard bounds the idle entries forgotten per shard and second.
	collectPerShard = 1024
)

// group is what belongs to one Raft group: the library and its log, the machine that applies
// entries and its images, the queue, the leader's clock and ReadIndex. A host has one group.
type group struct {
	*host
	raft      *consensus.Raft
	machine   *fsm.FSM
	images    *persistence.Images
	logs      *raftlog.Log
	arrivals  *raftlog.Arrivals
	closeLogs func() error
	ready     chan struct{} // closed when every part is made
	transport *raft.NetworkTransport
	queue     *queue.Queue
	confirms  *quorum.Check

	format     *format
	divergence *divergence
	leadership *leadership
	reads      *reads
	pipeline   *pipeline
	membership *membership
	snapshots  *snapshots
	watchdog   *watchdog
}

// newGroup makes the parts that need neither the disk nor the network. status describes the node.
func newGroup(h *host, status func() status) *group {
	g := &group{
		host: h, raft: &consensus.Raft{Ended: make(chan struct{})},
		queue: queue.New(h.options.MaxValueBytes), confirms: &quorum.Check{Stop: h.stop},
		closeLogs: func() error { return nil }, ready: make(chan struct{}),
	}
	g.confirms.Term, g.confirms.Voters = g.raft.Term, g.raft.Voters
	g.format = &format{host: h, raft: g.raft}
	g.format.agreed.Store(wire.Oldest)
	g.divergence = &divergence{host: h, raft: g.raft, found: make(chan fsm.Difference, 1)}
	g.leadership = &leadership{host: h, raft: g.raft, queue: g.queue, confirms: g.confirms, status: status}
	g.reads = &reads{
		host: h, raft: g.raft, leadership: g.leadership, confirms: g.confirms, disputed: &g.divergence.underWay,
		telling: make(chan struct{}, maxTelling), wake: make(chan struct{}, 1),
	}
	g.pipeline = &pipeline{
		host: h, raft: g.raft, queue: g.queue, confirms: g.confirms, leadership: g.leadership, reads: g.reads,
		format: g.format, disputed: &g.divergence.underWay,
		proposals: make(chan proposal, queue.MaxInFlight), evictions: newEvictions(),
	}
	g.membership = &membership{
		host: h, raft: g.raft, leadership: g.leadership, format: g.format,
	}
	g.snapshots = &snapshots{host: h, raft: g.raft, leadership: g.leadership, asked: make(chan chan error)}
	g.watchdog = &watchdog{host: h, raft: g.raft, leadership: g.leadership}
	return g
}

// load brings up what the disk has. The inter-node port must not be open yet: it tells others
// which cluster this is.
func (g *group) load() error {
	o := &g.options
	g.confirms.Self, g.confirms.Ask = o.NodeID, g.peers.wake
	var err error
	g.images, err = persistence.OpenImages(persistence.StoreOptions{
		Dir: o.FS.PathJoin(o.DataDir, identity.TableName), FS: o.FS, Logger: g.log, OnFatal: g.fatal,
	})
	if err != nil {
		return err
	}
	if err := g.openLog(); err != nil {
		return err
	}
	if err := g.recovery().run(); err != nil {
		return err
	}
	if g.arrivals, err = raftlog.NoteArrivals(g.logs, g.source); err != nil {
		return err
	}
	g.use(g.newMachine())
	g.machine.Arrived = g.arrivals.Of
	return nil
}

// use gives all parts the machine, the log and the images.
func (g *group) use(m *fsm.FSM) {
	g.machine, g.format.machine, g.divergence.machine, g.leadership.machine, g.reads.machine = m, m, m, m, m
	g.pipeline.machine, g.membership.machine, g.snapshots.machine, g.watchdog.machine = m, m, m, m
	g.leadership.logs, g.reads.logs, g.watchdog.logs, g.snapshots.images = g.logs, g.logs, g.logs, g.images
}

func (g *group) recovery() *recovery {
	return &recovery{
		host: g.host, logs: g.logs, images: g.images,
		newMachine: g.newMachine, raftConfig: g.raftConfig, joined: g.membership.joined,
	}
}

func (g *group) newMachine() *fsm.FSM {
	m := fsm.New(g.options.Table)
	m.Source, m.Images, m.Faults, m.Newest = g.source, g.images, g.faults, g.options.Format
	m.Answers, m.Fatal, m.Founded = g.queue.Answers, g.fatal, g.membership.joined
	m.Differs, m.Reloaded, m.Reach = g.divergence.differs, g.reads.freshness.reset, g.reach
	return m
}

func (g *group) openLog() error {
	store := g.options.Log
	if store == nil {
		switch g.options.Durability {
		case identity.Memory:
			store = raft.NewInmemStore()
		default:
			dir := filepath.Join(g.options.DataDir, identity.LogName)
			w, err := wallog.Open(dir, g.options.Durability == identity.Fsync && !g.faults.Has(faults.NoSync), logging.New(g.log, g.peers.expects))
			if errors.Is(err, wal.ErrCorrupt) {
				return fmt.Errorf("%w; this node does not start, and has changed nothing: %s", err, failure.DamageAdvice(g.alone()))
			} else if err != nil {
				return err
			}
			g.closeLogs, store = w.Close, w
		}
	}
	g.logs = raftlog.Guard(store, g.fatal)
	g.logs.NewestImage = g.newestImage
	return nil
}

func (g *group) openRaft() error {
	g.transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  g.port.Raft(g.options.RaftAddr, g.peers.idAt),
		MaxPool: raftConns, MaxRPCsInFlight: oneAtATime,
		Timeout: max(raftTimeouts*g.options.Heartbeat, minRaftTimeout),
		Logger:  logging.New(g.log, g.peers.expects),
	})
	g.reads.transport = g.transport
	stuck := &transport.Gate{Logs: g.logs, Limit: g.options.Heartbeat / timers.StuckFraction, Stop: g.stop, Log: g.log}
	var carrier raft.Transport = transport.Transport{NetworkTransport: g.transport, Gate: stuck, Reach: g.reach}
	if g.faults.Has(faults.HeartbeatFastPath) {
		carrier = g.transport
	}
	cache, err := raft.NewLogCache(cachedEntries, g.arrivals)
	if err != nil {
		return err
	}
	store := images.Store{Images: g.images, Faults: g.faults, Holds: g.holds}
	g.raft.Raft, err = raft.NewRaft(g.raftConfig(), g.machine, cache, g.arrivals, store, carrier)
	return err
}

const (
	// raftConns is how many idle connections to one node the library keeps.
	raftConns = 3
	// raftTimeouts heartbeats, and at least minRaftTimeout, bound one exchange of the
	// library: what a connection may be silent that a network has cut without saying.
	raftTimeouts   = 3
	minRaftTimeout = time.Second
	// oneAtATime takes the library's pipelining away: when an exchange fails, its
	// sender can wait for ever for a reader that has gone, and the follower gets no
	// entry again (hashicorp/raft issue 612; seen here in a test). An exchange carries
	// many entries anyway.
	oneAtATime = 1
	// cachedEntries keeps the entries that followers are about to need.
	cachedEntries = 512
	// maxAppendEntries bounds an exchange: 64 entries of 128 KiB are 8 MiB.
	maxAppendEntries = 64
)

func (g *group) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(g.options.NodeID)
	c.HeartbeatTimeout, c.ElectionTimeout = g.options.Heartbeat, g.options.Heartbeat
	// A leader that withheld its heartbeats for a moment must not resign before its
	// followers may elect another. No promise depends on the leader lease: see quorumCheck.
	c.LeaderLeaseTimeout = g.options.Heartbeat
	c.CommitTimeout = min(c.CommitTimeout, g.options.Heartbeat/10)
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.ShutdownOnRemove = true
	c.SnapshotThreshold = 1 << 62 // this package takes them, by bytes
	c.TrailingLogs = maxTrailing
	c.Logger = logging.New(g.log, g.peers.expects)
	return c
}

// start sets the parts going.
func (g *group) start() {
	for _, task := range []func(){
		g.pipeline.pump, g.pipeline.completeProposals, g.pipeline.followLeader, g.pipeline.evictWhenOver,
		g.leadership.run, g.leadership.watchStalled, g.snapshots.snapshot, g.watchdog.watch,
		g.divergence.checkDivergence, g.membership.promotions, g.membership.join, g.reads.run,
	} {
		g.tasks.Go(task)
	}
}

// housekeep does what is due a few times a second.
func (g *group) housekeep() {
	g.leadership.keepTime()
	g.pipeline.expire()
	g.peers.lookAtMembers()
	g.format.agreeOnFormat()
}

// collect forgets idle entries.
func (g *group) collect() {
	at := g.machine.LastStamp()
	if g.faults.Has(faults.CollectEarly) {
		at.NowNs += int64(time.Hour)
	}
	g.machine.Table.Load().Collect(at, collectPerShard)
}

// leave hands leadership over before the node closes, and answers what is under way.
func (g *group) leave() {
	g.leadership.resign()
	g.pipeline.linger()
}

// servers is part of groupView.
func (g *group) servers() []raft.Server { return g.raft.Servers() }

// progress is part of groupView.
func (g *group) progress() (applied, committed uint64) {
	applied, _ = g.machine.Check()
	return applied, g.raft.CommitIndex()
}

// confirm is part of groupView.
func (g *group) confirm(ctx context.Context, id string, wake <-chan struct{}, askTerm func(context.Context) (uint64, error)) {
	g.confirms.Follow(ctx, id, wake, askTerm)
}

// release lets go of what load made.
func (g *group) release() error {
	err := g.closeLogs()
	if g.images != nil {
		err = errors.Join(err, g.images.Close())
	}
	return err
}
