package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// DefaultMaxDecisionAge is the default time in which an admission must reach its caller. A later admission would
	// add to what a new leader admits.
	DefaultMaxDecisionAge = 2 * time.Second
	// stalledAfter is the default time in which a member may answer calls and apply no new entry while others do. It is
	// far longer than the transfer and the load of an image.
	stalledAfter = 20 * time.Second
	// DefaultSnapshotBytes is the default of Options.SnapshotBytes. With the entries that are kept for slow followers,
	// the log stays below three times this size.
	DefaultSnapshotBytes = 64 << 20
)

// Options configure a node.
type Options struct {
	// NodeID is the given id of the node; see identity.CheckGivenID. If a member with this id was removed, a node with
	// an empty directory takes the id of a later incarnation; see Topology.Self.
	NodeID  string
	DataDir string
	// Listener accepts the connections of other nodes; the host owns it. Other nodes connect to RaftAddr, and clients
	// connect to the server at ClientAddr.
	Listener             net.Listener
	RaftAddr, ClientAddr string
	// Host is the host of a group. Its owner closes it after the groups.
	Host *Host
	// WebURL is the public URL of this node's web page; "": none.
	WebURL string
	// Join are the addresses of the possible nodes, in the same order on all of them. The first node bootstraps the
	// cluster as soon as Expect nodes without a cluster have found each other.
	Join   []string
	Expect int
	// Secret and Certificates authenticate nodes. One of them is required if other machines can reach the port.
	Secret       []byte
	Certificates peer.Certificates

	// Groups is the number of Raft groups of the cluster, and Group is the number of this one, from 0. The cluster
	// keeps the number with which it was founded.
	Groups, Group int
	// Replicas is the number of nodes that shall have a replica of each group; 0: every node has one of every group.
	// The cluster keeps the number with which it was founded. Every node is a member of the first group: so many of
	// them vote in it, and the others only follow it.
	Replicas int
	// Zone is where this node is. Replicas of a group are in different zones where that is possible.
	Zone string
	// Leads returns the groups that this host leads, for the status that the first group exchanges; nil: none.
	Leads func() []Led

	Durability identity.Durability // "" is Fsync
	// Heartbeat is the heartbeat timeout: a follower without a message from its leader starts an election after one to
	// two such times. 0 means 750 ms.
	Heartbeat time.Duration
	// MaxDecisionAge is the time in which an answer must reach its caller; 0 means two seconds.
	MaxDecisionAge time.Duration
	// MaxDowntimeCredit is the most downtime of the whole cluster that counts as passed time; 0 credits none.
	MaxDowntimeCredit time.Duration
	// MaxCalendarStep is the most by which windows follow the wall clocks after such downtime; 0 means
	// persistence.DefaultMaxCalendarStep.
	MaxCalendarStep time.Duration
	// SnapshotBytes is the size of the log since the newest snapshot at which a new snapshot is due; 0 means 64 MiB.
	SnapshotBytes int64
	// StalledAfter is how long a member may be up without new entries before the leader transfers leadership; 0 means
	// twenty seconds.
	StalledAfter time.Duration
	// MaxValueBytes is the greatest length of the strings that clients may store.
	MaxValueBytes int
	Table         engine.Options
	TestClock     bool
	Logger        *slog.Logger // nil: slog.Default
	// OnFatal is called when the node must stop, and must not return. nil logs the
	// error and ends the process with code 1.
	OnFatal func(error)
	// OnGroupEnd is called instead of OnFatal when only this group must end and the other groups of the process can
	// serve. It returns, and may be called again until the node is closed. nil: OnFatal is called.
	OnGroupEnd func(error)
	// First is the first group on this node. nil: this is the first group, or the only one.
	First FirstGroup
	// Incarnation is the id under which this process joins a cluster; "": NodeID. A node that was never invited to the
	// cluster of its group adopts the id.
	Incarnation string
	// OnEntry is called for each entry that this node proposed, one after the other, and must return quickly; nil: no
	// calls.
	OnEntry func(Entry)
	Faults  faults.Set
	// Progress is of the load of the stored state; nil: nobody asks.
	Progress *persistence.Progress

	// Format is the newest form of entries that this node can read; 0 means all that this weir knows. For tests.
	Format byte
	// For tests; nil means the clocks, the file system, the network and the disk of the machine.
	Source persistence.Source
	FS     vfs.FS
	Dialer func(ctx context.Context, addr string) (net.Conn, error)
	Log    []raftlog.Store // by group
	// Failpoint is called at points where another node may act between two steps of this one, and may block; nil: no
	// calls.
	Failpoint func(at faults.Point)
}

// FirstGroup is the first of several groups as the other groups of its node see it. It decides which nodes belong to
// the cluster. A node joins it first, and a node that has left it leaves every other group.
type FirstGroup interface {
	// Joined reports whether this node has been in a committed configuration of the first group, which runs here.
	Joined() bool
	// Members returns the ids in the newest committed configuration that this node knows, or nil.
	Members() []string
	// Addrs returns the addresses of these members, as Options.RaftAddr.
	Addrs() []string
	// Belongs asks the leader of the first group whether a node belongs to the cluster. It returns nil if the first
	// group has this id, or has another incarnation of the node and has not removed this id. It returns
	// failure.ErrRemovedID if the node certainly does not belong. After any other error the caller knows nothing.
	Belongs(id string) error
}

const (
	// DefaultHeartbeat is the default of Options.Heartbeat.
	DefaultHeartbeat = 750 * time.Millisecond
	minHeartbeat     = 20 * time.Millisecond
	maxJoin          = 64
	// MaxReplicas bounds Options.Replicas. More replicas make each decision dearer, and two of five may fail.
	MaxReplicas = 5
)

// Complete sets defaults and returns an error for options that cannot work.
func (o *Options) Complete() error {
	if o.Durability == "" {
		o.Durability = identity.Fsync
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.MaxDecisionAge == 0 {
		o.MaxDecisionAge = DefaultMaxDecisionAge
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = DefaultSnapshotBytes
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
		return fmt.Errorf("--expect must be more than half of the %d addresses of --join, not %d",
			len(o.Join), o.Expect)
	case !hashslot.ValidGroups(o.Groups):
		return fmt.Errorf("--groups must be a power of two from 1 to %d, not %d", hashslot.MaxGroups, o.Groups)
	case CheckReplicas(o.Replicas) != nil:
		return CheckReplicas(o.Replicas)
	case o.Replicas > 0 && o.Durability == identity.Memory: // a restart would lose its replicas for good
		return errors.New("--replicas needs --durability fsync or os: a node without a disk cannot keep its replicas")
	case len(o.Zone) > peer.MaxNameLen:
		return fmt.Errorf("--zone must have at most %d characters, not %d", peer.MaxNameLen, len(o.Zone))
	case o.Group < 0 || o.Group >= o.Groups:
		return fmt.Errorf("there is no group %d among %d", o.Group, o.Groups)
	case !slices.Contains([]identity.Durability{identity.Fsync, identity.OS, identity.Memory}, o.Durability):
		return fmt.Errorf("--durability must be fsync, os or memory, not %q", o.Durability)
	}
	host, _, _ := net.SplitHostPort(o.RaftAddr)
	if len(o.Secret) == 0 && o.Certificates == nil && !loopback(host) {
		return fmt.Errorf("%w: give --raft-tls-cert-file or --cluster-secret-file", errors.Join(failure.ErrNoSecret))
	}
	return nil
}

// CheckReplicas returns an error for a number that Options.Replicas cannot have.
func CheckReplicas(n int) error {
	if n < 0 || n > MaxReplicas || n > 0 && n%2 == 0 {
		return fmt.Errorf("--replicas must be 1, 3 or %d, or 0 for one on every node, not %d", MaxReplicas, n)
	}
	return nil
}

// IDLifetimeNs returns how long a cluster that this node founds remembers idempotency keys.
func (o *Options) IDLifetimeNs() int64 { return cmp.Or(o.Table.IDLifetimeNs, int64(time.Minute)) }

// EventsBytes returns the bound of the events of a cluster that this node founds, 0 for the default.
func (o *Options) EventsBytes() int64 {
	if o.Table.EventsBytes == engine.DefaultEventsBytes {
		return 0
	}
	return o.Table.EventsBytes
}

// DenyWhenFull reports whether a leader without memory denies, and does not evict.
func (o *Options) DenyWhenFull() bool { return o.Table.WhenFull != 0 }

// commitTimeout is how long a leader waits before it sends the commit index without entries, for each group.
const commitTimeout = 50 * time.Millisecond

// CommitTimeout returns how long a leader waits before it sends a follower the commit index without entries. Each group
// of the host makes it longer, because these messages cause most of the load of an idle group. Reads do not wait for
// them: a ReadIndex question makes the leader send the commit index at once.
func (o *Options) CommitTimeout() time.Duration {
	return min(time.Duration(o.Groups)*min(commitTimeout, o.Heartbeat/10), o.Heartbeat)
}

// CheckNode returns an error for an id or an address that no node can have. Port 0 is for a cluster of one, which no
// other node calls.
func CheckNode(id, raftAddr string) error {
	if id == "" || len(id) > peer.MaxNameLen {
		return fmt.Errorf("--node-id must have 1 to %d characters, not %q", peer.MaxNameLen, id)
	}
	host, port, err := net.SplitHostPort(raftAddr)
	if err != nil || port != "0" && !limiter.Reachable(raftAddr) || !limiter.Reachable(net.JoinHostPort(host, "1")) {
		return fmt.Errorf("--raft-addr must be the address by which other nodes reach this one, like 10.0.0.1:6390, "+
			"not %q", raftAddr)
	}
	return nil
}

// loopback reports whether only this machine can reach a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// useVolatileIdentity keeps all data of the node in memory, under a new incarnation. A node that restarts has
// forgotten its votes, so it must not return under the earlier id.
func (o *Options) useVolatileIdentity() {
	o.NodeID = identity.NewIncarnation(o.NodeID)
	o.FS, o.DataDir = vfs.NewMem(), "memory"
}

// Entry describes a proposed batch of operations to OnEntry.
type Entry struct {
	Ops int
	// Begun is the creation of the batch. Until Proposed, the batch gathered operations and waited for earlier batches.
	// At Answered, its entry was committed and applied, and its callers were answered.
	Begun, Proposed, Answered time.Time
	Err                       error
}
