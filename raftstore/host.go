package raftstore

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/peer"
)

// host is what belongs to the process and not to a group: the inter-node port and the other
// nodes behind it, the identity of the node, its disk, its clocks and timers, and the bound of
// its memory. The parts of a group embed it.
type host struct {
	options  Options
	log      *slog.Logger
	fatal    func(error)
	source   persistence.Source
	faults   faults.Set
	identity *identity.Keeper
	port     *peer.Port
	peers    *peers

	maxAge       time.Duration // of a decision
	maxMemory    int64
	denyWhenFull bool
	idLifetimeNs int64
	testClock    bool

	started  time.Time
	ctx      context.Context // ends with the node
	cancel   context.CancelFunc
	stop     chan struct{}
	tasks    sync.WaitGroup
	stopping atomic.Bool // since Close was called
}

func newHost(o Options) *host {
	h := &host{
		options: o, log: o.Logger, source: o.Source, faults: o.Faults,
		identity: &identity.Keeper{On: o.FS, Dir: o.DataDir},
		maxAge:   o.MaxDecisionAge, testClock: o.TestClock,
		maxMemory: o.Table.MaxMemoryBytes, denyWhenFull: o.Table.WhenFull != 0, idLifetimeNs: o.Table.IDLifetimeNs,
		started: time.Now(),
		stop:    make(chan struct{}),
	}
	if h.idLifetimeNs == 0 {
		h.idLifetimeNs = int64(time.Minute)
	}
	h.fatal = h.stopper(o.OnFatal)
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// electionTimeout is how long a fresh leader waits for its followers.
func (h *host) electionTimeout() time.Duration { return 5 * h.options.Heartbeat }

// uptime returns the monotonic time since the start.
func (h *host) uptime() time.Duration { return time.Since(h.started) }

func (h *host) closing() bool {
	select {
	case <-h.stop:
		return true
	default:
		return false
	}
}

// reach lets a test wait at a failpoint.
func (h *host) reach(at faults.Point) {
	if h.options.Failpoint != nil {
		h.options.Failpoint(at)
	}
}

// claim makes the data directory this node's. The node may go by a later incarnation of its id.
func (h *host) claim() error {
	o := &h.options
	id, err := identity.Claim(o.FS, o.DataDir, identity.Identity{NodeID: o.NodeID, Durability: string(o.Durability)})
	if err != nil {
		return err
	}
	h.identity.Identity, o.NodeID = id, id.NodeID
	return nil
}

// openPort lets other nodes in.
func (h *host) openPort(serve func(net.Conn, peer.Identity)) {
	h.port = peer.NewPort(h.options.Listener, peer.Config{
		Secret: h.options.Secret, Certificates: h.options.Certificates, Self: h.identity.Self,
		ServesRaft: h.identity.ServesRaft, Stops: h.peers.stopsExplain, Logger: h.log, Dialer: h.options.Dialer,
	}, serve)
}

// closePort closes the port, or the listener that it was to have.
func (h *host) closePort() error {
	if h.port != nil {
		return h.port.Close()
	}
	return closeIf(h.options.Listener)
}

// stopper returns what ends the process at a fault that a node cannot live with.
func (h *host) stopper(onFatal func(error)) func(error) {
	if onFatal != nil {
		return onFatal
	}
	return func(err error) {
		h.log.Error("this node cannot go on", "error", err, "restart", failure.RestartAdvice(err, h.alone()))
		os.Exit(1)
	}
}

// alone reports whether no other node has this one's state.
func (h *host) alone() bool {
	if members := h.peers.members.Load(); members != nil && len(*members) > 0 {
		return len(*members) == 1
	}
	return h.options.Expect <= 1 // which more than half of --join is never
}
