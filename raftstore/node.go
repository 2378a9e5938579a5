package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wallog"
	"github.com/weir-project/weir/raftstore/wire"
)

// Node is one node of a cluster: a limiter for the server in front of it.
type Node struct {
	options      Options
	log          *slog.Logger
	fatal        func(error)
	source       persistence.Source
	faults       Faults
	maxAge       time.Duration
	maxMemory    int64
	denyWhenFull bool
	evictions    *evictions
	idLifetimeNs int64
	testClock    bool

	identity struct {
		sync.Mutex
		identity
	}
	machine   *machine
	images    *persistence.Images
	logs      *guardedLog
	arrivals  *arrivals
	closeLogs func() error
	port      *peer.Port
	transport *raft.NetworkTransport
	raft      *raft.Raft
	peers     *peers

	queue         *queue
	proposals     chan proposal
	denials       denials
	confirms      *confirmer
	divergence    divergenceCheck
	reads         *readIndexer
	freshness     freshness
	readTime      atomic.Pointer[readTime] // nil: no leader has told its time
	telling       chan struct{}            // holds a token for each message about a commit that is under way
	handover      handoverWatch
	advancing     sync.Mutex            // held while a test clock is moved
	reign         atomic.Pointer[reign] // nil: this node does not lead, or not yet
	lastEntry     atomic.Int64          // uptime at the last proposal
	lastNote      atomic.Int64          // uptime when wall clocks were last noted
	knownLeader   atomic.Pointer[string]
	forwards      forwards
	members       atomic.Pointer[[]Member]
	started       time.Time
	answering     atomic.Int64 // batches of other nodes that have no answer yet
	lastForwarded atomic.Int64 // uptime at the last answer to one
	lastSave      atomic.Int64 // Unix nanoseconds of the last snapshot; 0: never
	counters      counters
	format        atomic.Int32 // the newest that may be written, see agreeOnFormat
	snapshots     chan chan error

	ctx      context.Context // ends with the node
	cancel   context.CancelFunc
	ready    chan struct{} // closed when the parts are made
	stop     chan struct{}
	ended    chan struct{} // closed when the Raft library has ended
	tasks    sync.WaitGroup
	once     sync.Once
	closeErr error
	stopping atomic.Bool // since Close was called
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
	n := &Node{
		options: o, log: o.Logger, source: o.Source, faults: o.Faults,
		maxAge: o.MaxDecisionAge, testClock: o.TestClock,
		maxMemory: o.Table.MaxMemoryBytes, denyWhenFull: o.Table.WhenFull != 0, idLifetimeNs: o.Table.IDLifetimeNs,
		queue:      newQueue(),
		evictions:  newEvictions(),
		divergence: divergenceCheck{found: make(chan difference, 1)},
		started:    time.Now(),
		proposals:  make(chan proposal, maxInFlight),
		snapshots:  make(chan chan error),
		telling:    make(chan struct{}, maxTelling),
		ready:      make(chan struct{}),
		stop:       make(chan struct{}),
		ended:      make(chan struct{}),
		closeLogs:  func() error { return nil },
	}
	n.queue.valueBytes = o.MaxValueBytes
	n.format.Store(wire.Oldest)
	if n.idLifetimeNs == 0 {
		n.idLifetimeNs = int64(time.Minute)
	}
	n.reads = newReadIndexer(n)
	n.peers = newPeers(n) // the port asks it about every connection that fails
	n.fatal = n.stopper(o.OnFatal)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// open makes the parts, from the disk upward.
func (n *Node) open() error {
	o := &n.options
	id, err := claim(o.FS, o.DataDir, identity{NodeID: o.NodeID, Durability: string(o.Durability)})
	if err != nil {
		return err
	}
	n.identity.identity, o.NodeID = id, id.NodeID
	n.confirms = &confirmer{self: o.NodeID, term: n.term, voters: n.voters, ask: n.askFor, stop: n.stop}
	n.images, err = persistence.OpenImages(persistence.StoreOptions{
		Dir: o.FS.PathJoin(o.DataDir, tableName), FS: o.FS, Logger: n.log, OnFatal: n.fatal,
	})
	if err != nil {
		return err
	}
	if err := n.openLog(); err != nil {
		return err
	}
	if err := n.checkKept(); err != nil {
		return err
	}
	if err := n.dropCoveredLog(); err != nil {
		return err
	}
	if err := n.recoverIfAsked(); err != nil {
		return err
	}
	if n.arrivals, err = noteArrivals(n.logs, n.source); err != nil {
		return err
	}
	n.machine = n.newMachine()
	n.machine.arrived = n.arrivals.of
	return n.openRaft()
}

func (n *Node) newMachine() *machine {
	m := newMachine(n.options.Table)
	m.source, m.images, m.faults, m.newest = n.source, n.images, n.faults, n.options.Format
	m.find, m.fatal, m.founded, m.differs, m.reloaded = n.queue.find, n.fatal, n.joined, n.divergence.differs, n.freshness.reset
	m.reach = n.reach
	return m
}

func (n *Node) openLog() error {
	store := n.options.Log
	if store == nil {
		switch n.options.Durability {
		case Memory:
			store = raft.NewInmemStore()
		default:
			dir := filepath.Join(n.options.DataDir, logName)
			w, err := wallog.Open(dir, n.options.Durability == Fsync && !n.faults.NoSync, newHclog(n.log, n.expects))
			if errors.Is(err, wal.ErrCorrupt) {
				return fmt.Errorf("%w; this node does not start, and has changed nothing: %s", err, damageAdvice(n.alone()))
			} else if err != nil {
				return err
			}
			n.closeLogs, store = w.Close, w
		}
	}
	n.logs = guard(store, n.fatal)
	n.logs.newestImage = n.newestImage
	return nil
}

func (n *Node) openRaft() error {
	n.port = peer.NewPort(n.options.Listener, peer.Config{
		Secret: n.options.Secret, Certificates: n.options.Certificates, Self: n.self, ServesRaft: n.servesRaft, Stops: n.stopsExplain, Logger: n.log, Dialer: n.options.Dialer,
	}, n.serveCalls)
	n.transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  n.port.Raft(n.options.RaftAddr, n.peers.idAt),
		MaxPool: raftConns, MaxRPCsInFlight: oneAtATime,
		Timeout: max(raftTimeouts*n.options.Heartbeat, minRaftTimeout),
		Logger:  newHclog(n.log, n.expects),
	})
	stuck := &gate{logs: n.logs, limit: n.options.Heartbeat / stuckFraction, stop: n.stop, log: n.log}
	var carrier raft.Transport = transport{n.transport, stuck, n.reach}
	if n.faults.HeartbeatFastPath {
		carrier = n.transport
	}
	cache, err := raft.NewLogCache(cachedEntries, n.arrivals)
	if err != nil {
		return err
	}
	n.raft, err = raft.NewRaft(n.raftConfig(), n.machine, cache, n.arrivals, imageStore{images: n.images, faults: n.faults, holds: n.holds}, carrier)
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

func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.options.NodeID)
	c.HeartbeatTimeout, c.ElectionTimeout = n.options.Heartbeat, n.options.Heartbeat
	// A leader that withheld its heartbeats for a moment must not resign before its
	// followers may elect another. No promise depends on the leader lease: see confirmer.
	c.LeaderLeaseTimeout = n.options.Heartbeat
	c.CommitTimeout = min(c.CommitTimeout, n.options.Heartbeat/10)
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.ShutdownOnRemove = true
	c.SnapshotThreshold = 1 << 62 // this package takes them, by bytes
	c.TrailingLogs = maxTrailing
	c.Logger = newHclog(n.log, n.expects)
	return c
}

// electionTimeout is how long a fresh leader waits for its followers.
func (n *Node) electionTimeout() time.Duration { return 5 * n.options.Heartbeat }

// start sets everything going.
func (n *Node) start() {
	n.lookAtMembers()
	close(n.ready)
	n.tasks.Go(n.pump)
	n.tasks.Go(n.settle)
	n.tasks.Go(n.lead)
	n.tasks.Go(n.housekeep)
	n.tasks.Go(n.snapshot)
	n.tasks.Go(n.watch)
	n.tasks.Go(n.checkDivergence)
	n.tasks.Go(n.watchStalled)
	n.tasks.Go(n.watchDisk)
	n.tasks.Go(n.followLeader)
	n.tasks.Go(n.promotions)
	n.tasks.Go(n.evictWhenOver)
	n.tasks.Go(n.reads.run)
	n.tasks.Go(n.join)
	n.peers.start()
}

// Close leaves in an orderly way: leadership is handed over first, and nothing that
// was answered is lost. Decisions must have ended.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.tellStopping()
		n.abdicate()
		n.linger()
		close(n.stop)
		n.cancel()
		n.queue.close()
		ended := n.raft.Shutdown()
		// The library waits for exchanges that have no deadline, which end with their
		// connections. What answers other nodes waits for the library, which may forget
		// to answer: it ends with n.ended, and the port after it.
		n.peers.close()
		err := errors.Join(n.port.Cut(), ended.Error())
		close(n.ended)
		err = errors.Join(err, n.port.Close())
		n.tasks.Wait()
		n.closeErr = errors.Join(err, n.release())
	})
	return n.closeErr
}

// release lets go of what open made.
func (n *Node) release() error {
	n.cancel()
	var err error
	if n.transport != nil {
		err = n.transport.Close()
	}
	if n.port != nil {
		err = errors.Join(err, n.port.Close())
	} else {
		err = errors.Join(err, closeIf(n.options.Listener))
	}
	err = errors.Join(err, n.closeLogs())
	if n.images != nil {
		err = errors.Join(err, n.images.Close())
	}
	return err
}

func closeIf(c io.Closer) error {
	if c == nil {
		return nil
	}
	return c.Close()
}

// uptime returns the monotonic time since the start.
func (n *Node) uptime() time.Duration { return time.Since(n.started) }

func (n *Node) closing() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// housekeep does what is due a few times a second.
func (n *Node) housekeep() {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.keepTime()
			n.expire()
			n.lookAtMembers()
			n.agreeOnFormat()
			n.Topology() // takes note of who leads
			at, _ := n.machine.last()
			if n.faults.CollectEarly {
				at.NowNs += int64(time.Hour)
			}
			n.machine.table.Load().Collect(at, collectPerShard)
		case <-n.stop:
			return
		}
	}
}
