package host

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/permit"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Host holds the parts that belong to a node and not to its Raft group. They are the inter-node port, the other nodes,
// the identity, the disk, the clocks and timers, and the memory bound. The parts of a group embed it. A process with
// several groups has one host for each of them, and the hosts share Options.Hub and Options.Process.
type Host struct {
	Options  Options
	Log      *slog.Logger
	Fatal    func(error)
	Identity *identity.Keeper
	Port     *peer.Port
	Peers    *Peers

	*timers.Lifetime
	Stopping atomic.Bool // true since Close was called
}

// New returns a host for complete options. Claim and OpenPort open its directory and its port.
func New(o Options) *Host {
	h := &Host{Options: o, Log: o.Logger, Identity: &identity.Keeper{On: o.FS, Dir: o.DataDir}}
	h.Lifetime = timers.NewLifetime(h.loop())
	if o.Group > 0 {
		h.Log = h.Log.With("group", o.Group)
	}
	h.Fatal = h.Stopper(o.OnFatal)
	return h
}

// loop returns the loop that the groups of this process share, or nil.
func (h *Host) loop() *timers.Loop {
	if h.Options.Process == nil {
		return nil
	}
	return h.Options.Process.loop
}

// SnapshotPermit returns the permit that the groups of this process share, or a new one for the only group.
func (h *Host) SnapshotPermit() *permit.Permit {
	if h.Options.Process == nil {
		return &permit.Permit{}
	}
	return &h.Options.Process.Snapshots
}

// Budget returns the memory budget that the groups of this process share, or a new one for the only group. A group
// that denies when it is full gives no memory back, so the parts are equal then.
func (h *Host) Budget() *budget.Budget {
	o, groups := &h.Options, max(h.Options.Groups, 1)
	if o.Process == nil {
		return budget.New(o.Table.MaxMemoryBytes, 1, false)
	}
	return o.Process.budget(o.Table.MaxMemoryBytes*int64(groups), groups, !o.DenyWhenFull())
}

// Reach lets a test block at a failpoint.
func (h *Host) Reach(at faults.Point) {
	if h.Options.Failpoint != nil {
		h.Options.Failpoint(at)
	}
}

// Claim makes the data directory this node's. The node may take the id of a later incarnation.
func (h *Host) Claim() error {
	o := &h.Options
	id, err := identity.Claim(o.FS, o.DataDir, identity.Identity{NodeID: o.NodeID, Durability: string(o.Durability)})
	if err != nil {
		return err
	}
	h.Identity.Identity = id
	if o.Incarnation != "" && id.NodeID == o.NodeID { // else it has an incarnation of its own
		err = h.Identity.Adopt(o.Incarnation)
	}
	o.NodeID = h.Identity.NodeID
	return err
}

// OpenPort opens the port of the group, on the hub of the process or on a hub of its own.
func (h *Host) OpenPort(serve func(net.Conn, peer.Identity)) error {
	o, group := &h.Options, uint16(h.Options.Group)
	if o.Hub == nil {
		h.Port = peer.NewPort(o.Listener, peer.Config{
			Secret: o.Secret, Certificates: o.Certificates, Dialer: o.Dialer, Group: group,
			Self: h.Identity.Self, ServesRaft: h.Identity.ServesRaft, Stops: h.Peers.StopsExplain, Logger: h.Log,
		}, serve)
		return nil
	}
	var err error
	h.Port, err = o.Hub.Open(group, peer.PortConfig{
		Self: h.Identity.Self, ServesRaft: h.Identity.ServesRaft, Stops: h.Peers.StopsExplain, Logger: h.Log,
	}, serve)
	return err
}

// Dial returns a client for the node with this id at an address. id is "" if any node may answer.
func (h *Host) Dial(addr, id string) *peer.Client { return peer.NewClient(h.Port, addr, id) }

// ClosePort closes the port, or the listener if the port was not opened. A hub of the process stays open.
func (h *Host) ClosePort() error {
	if h.Port != nil {
		return h.Port.Close()
	}
	return CloseIf(h.Options.Listener)
}

// Stopper returns the function that ends the process, or this group alone, after a fault that a node cannot survive.
func (h *Host) Stopper(onFatal func(error)) func(error) {
	stop := onFatal
	if stop == nil {
		stop = h.exit
	}
	if h.Options.OnGroupEnd == nil {
		return stop
	}
	return func(err error) {
		if !failure.EndsGroup(err) {
			stop(err)
			return
		}
		if errors.Is(err, failure.ErrRemoved) {
			err = errors.Join(err, h.Identity.MarkRemoved())
		}
		h.Options.OnGroupEnd(err)
	}
}

func (h *Host) exit(err error) {
	h.Log.Error("this node cannot go on", "error", err, "restart", failure.RestartAdvice(err, h.Alone()))
	os.Exit(1)
}

// Alone reports whether no other node has this node's state.
func (h *Host) Alone() bool {
	if members := h.Peers.Members.Load(); members != nil && len(*members) > 0 {
		return len(*members) == 1
	}
	return h.Options.Expect <= 1 // Expect is more than half of --join, so it is 1 only for a single address
}

// CloseIf closes c unless it is nil.
func CloseIf(c io.Closer) error {
	if c == nil {
		return nil
	}
	return c.Close()
}
