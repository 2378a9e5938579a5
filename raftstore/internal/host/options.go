package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// defaultMaxDecisionAge is how late an admission may reach its caller: later, it
	// would come on top of what a new leader admits.
	defaultMaxDecisionAge = 2 * time.Second
	// stalledAfter is how long a member may answer calls and yet apply nothing new
	// while others do: far longer than an image takes to be sent and loaded.
	stalledAfter = 20 * time.Second
	// snapshotBytes of entries behind the newest snapshot make a new one; three times
	// as many bound the log, with what is kept for slow followers.
	snapshotBytes = 64 << 20
)

// Options say what a node is and how it finds the others.
type Options struct {
	// NodeID has 1 to maxGivenID characters. The node of an empty directory whose
	// id was another's before goes by a later incarnation of it, see Topology.Self.
	NodeID  string
	DataDir string
	// Listener takes the connections of other nodes; the node owns it. RaftAddr is the
	// address under which they reach it, ClientAddr the one under which clients reach
	// this node's server.
	Listener             net.Listener
	RaftAddr, ClientAddr string
	// WebURL is where people reach this node's page from elsewhere; "": nowhere.
	WebURL string
	// Join are the addresses of the nodes that may be there, the same and in the same
	// order on all: the first one founds the cluster, as soon as Expect nodes that
	// belong to none have found each other.
	Join   []string
	Expect int
	// Secret and Certificates keep strangers out: one of them is needed where the port
	// can be reached from other machines.
	Secret       []byte
	Certificates peer.Certificates

	Durability identity.Durability // "" is Fsync
	// Heartbeat is how long a follower waits for its leader before it asks for an
	// election, once to twice this; 0 means 750 ms.
	Heartbeat time.Duration
	// MaxDecisionAge is how late an answer may come; 0 means two seconds.
	MaxDecisionAge time.Duration
	// MaxDowntimeCredit is how much of the time that the whole cluster was down may
	// count as passed; 0 gives nothing.
	MaxDowntimeCredit time.Duration
	// MaxCalendarStep is how far windows follow the wall clocks after that; 0 means
	// persistence.DefaultMaxCalendarStep.
	MaxCalendarStep time.Duration
	// SnapshotBytes of log make a snapshot; 0 means 64 MiB.
	SnapshotBytes int64
	// StalledAfter is how long a member may be up without getting entries before the
	// leader steps aside; 0 means twenty seconds.
	StalledAfter time.Duration
	// MaxValueBytes is how long the strings are that clients may keep.
	MaxValueBytes int
	Table         engine.Options
	TestClock     bool
	Logger        *slog.Logger // nil: slog.Default
	// OnFatal is called when the node must stop, and must not return. nil logs the
	// error and ends the process with code 1.
	OnFatal func(error)
	// OnEntry is told of each entry that this node proposed, one after the other, and must
	// be quick; nil: nobody wants to know.
	OnEntry func(Entry)
	Faults  faults.Set

	// Format is the newest form of entries that this node can read; 0 means all that
	// this weir knows. For tests.
	Format byte
	// For tests; nil means the machine's own.
	Source persistence.Source
	FS     vfs.FS
	Dialer func(ctx context.Context, addr string) (net.Conn, error)
	Log    raftlog.Store
	// Failpoint is called where another node may act between two steps of this one, and may
	// block; nil: nobody does.
	Failpoint func(at faults.Point)
}

const (
	defaultHeartbeat = 750 * time.Millisecond
	minHeartbeat     = 20 * time.Millisecond
	maxJoin          = 64
)

// Complete fills in what was left open and refuses what cannot work.
func (o *Options) Complete() error {
	if o.Durability == "" {
		o.Durability = identity.Fsync
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.MaxDecisionAge == 0 {
		o.MaxDecisionAge = defaultMaxDecisionAge
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = snapshotBytes
	}
	if o.StalledAfter == 0 {
		o.StalledAfter = stalledAfter
	}
	if o.MaxCalendarStep == 0 {
		o.MaxCalendarStep = persistence.DefaultMaxCalendarStep
	}
	if o.Format == 0 {
		o.Format = wire.Version
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Source == nil {
		o.Source = persistence.SystemSource()
	}
	if o.Durability == identity.Memory {
		if err := identity.CheckGivenID(o.NodeID); err != nil {
			return err
		}
		o.useVolatileIdentity()
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Expect == 0 {
		o.Expect = max(len(o.Join), 1)
	}
	return o.check()
}

func (o *Options) check() error {
	if err := CheckNode(o.NodeID, o.RaftAddr); err != nil {
		return err
	}
	switch {
	case o.Heartbeat < minHeartbeat:
		return fmt.Errorf("--raft-heartbeat must be at least %v, not %v", minHeartbeat, o.Heartbeat)
	case len(o.Join) > maxJoin:
		return fmt.Errorf("--join must name at most %d addresses, not %d", maxJoin, len(o.Join))
	case o.Expect < 1 || o.Expect > max(len(o.Join), 1):
		return fmt.Errorf("--expect must be between 1 and the %d addresses of --join, not %d", len(o.Join), o.Expect)
	case 2*o.Expect <= len(o.Join):
		return fmt.Errorf("--expect must be more than half of the %d addresses of --join, not %d", len(o.Join), o.Expect)
	case !slices.Contains([]identity.Durability{identity.Fsync, identity.OS, identity.Memory}, o.Durability):
		return fmt.Errorf("--durability must be fsync, os or memory, not %q", o.Durability)
	}
	host, _, _ := net.SplitHostPort(o.RaftAddr)
	if len(o.Secret) == 0 && o.Certificates == nil && !loopback(host) {
		return fmt.Errorf("%w: give --raft-tls-cert-file or --cluster-secret-file", errors.Join(failure.ErrNoSecret))
	}
	return nil
}

// CheckNode refuses a name or an address that no node can have.
func CheckNode(id, raftAddr string) error {
	if id == "" || len(id) > peer.MaxNameLen {
		return fmt.Errorf("--node-id must have 1 to %d characters, not %q", peer.MaxNameLen, id)
	}
	host, _, err := net.SplitHostPort(raftAddr)
	if err != nil {
		return fmt.Errorf("--raft-addr must be like 10.0.0.1:6390, not %q", raftAddr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("--raft-addr must be the address by which other nodes reach this one, not %q", raftAddr)
	}
	return nil
}

// loopback reports whether a host is this machine alone.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// useVolatileIdentity makes a node that keeps everything in memory. What it promised before it
// was stopped is gone, so it must not come back as the node that promised it.
func (o *Options) useVolatileIdentity() {
	o.NodeID = identity.NewIncarnation(o.NodeID)
	o.FS, o.DataDir = vfs.NewMem(), "memory"
}

// Entry is how a batch of operations went through the log of the node that led.
type Entry struct {
	Ops int
	// From Begun to Proposed it gathered operations, and waited for those before it; when
	// it was Settled a majority had it, it was applied and its callers were told.
	Begun, Proposed, Settled time.Time
	Err                      error
}
