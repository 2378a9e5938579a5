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

// Group is what a Raft group has of its own on a host: its directory and identity, its port, its peers, and its
// lifetime. The host gives the rest to all of its groups: see Process.
type Group struct {
	Options  Options
	Log      *slog.Logger
	Fatal    func(error)
	Identity *identity.Keeper
	Port     *peer.Port
	Peers    *Peers

	*timers.Lifetime
	Stopping atomic.Bool // true since Close was called
}

// NewGroup returns a group for complete options. Claim and OpenPort open its directory and its port.
func NewGroup(o Options) *Group {
	g := &Group{Options: o, Log: o.Logger, Identity: &identity.Keeper{On: o.FS, Dir: o.DataDir}}
	g.Lifetime = timers.NewLifetime(g.loop())
	if o.Group > 0 {
		g.Log = g.Log.With("group", o.Group)
	}
	g.Fatal = g.Stopper(o.OnFatal)
	return g
}

// loop returns the loop that the groups of this process share, or nil.
func (g *Group) loop() *timers.Loop {
	if g.Options.Process == nil {
		return nil
	}
	return g.Options.Process.loop
}

// SnapshotPermit returns the permit that the groups of this process share, or a new one for the only group.
func (g *Group) SnapshotPermit() *permit.Permit {
	if g.Options.Process == nil {
		return &permit.Permit{}
	}
	return &g.Options.Process.Snapshots
}

// Budget returns the memory budget that the groups of this process share, or a new one for the only group. A group
// that denies when it is full gives no memory back, so the parts are equal then.
func (g *Group) Budget() *budget.Budget {
	o, groups := &g.Options, max(g.Options.Groups, 1)
	if o.Process == nil {
		return budget.New(o.Table.MaxMemoryBytes, 1, false)
	}
	return o.Process.budget(o.Table.MaxMemoryBytes*int64(groups), groups, !o.DenyWhenFull())
}

// Reach lets a test block at a failpoint.
func (g *Group) Reach(at faults.Point) {
	if g.Options.Failpoint != nil {
		g.Options.Failpoint(at)
	}
}

// Claim makes the data directory this node's. The node may take the id of a later incarnation.
func (g *Group) Claim() error {
	o := &g.Options
	id, err := identity.Claim(o.FS, o.DataDir, identity.Identity{NodeID: o.NodeID, Durability: string(o.Durability)})
	if err != nil {
		return err
	}
	g.Identity.Identity = id
	if o.Incarnation != "" && id.NodeID == o.NodeID { // else it has an incarnation of its own
		err = g.Identity.Adopt(o.Incarnation)
	}
	o.NodeID = g.Identity.NodeID
	return err
}

// OpenPort opens the port of the group, on the hub of the process or on a hub of its own.
func (g *Group) OpenPort(serve func(net.Conn, peer.Identity)) error {
	o, group := &g.Options, uint16(g.Options.Group)
	if o.Hub == nil {
		g.Port = peer.NewPort(o.Listener, peer.Config{
			Secret: o.Secret, Certificates: o.Certificates, Dialer: o.Dialer, Group: group,
			Self: g.Identity.Self, ServesRaft: g.Identity.ServesRaft, Stops: g.Peers.StopsExplain, Logger: g.Log,
		}, serve)
		return nil
	}
	var err error
	g.Port, err = o.Hub.Open(group, peer.PortConfig{
		Self: g.Identity.Self, ServesRaft: g.Identity.ServesRaft, Stops: g.Peers.StopsExplain, Logger: g.Log,
	}, serve)
	return err
}

// Dial returns a client for the node with this id at an address. id is "" if any node may answer.
func (g *Group) Dial(addr, id string) *peer.Client { return peer.NewClient(g.Port, addr, id) }

// ClosePort closes the port, or the listener if the port was not opened. A hub of the process stays open.
func (g *Group) ClosePort() error {
	if g.Port != nil {
		return g.Port.Close()
	}
	return CloseIf(g.Options.Listener)
}

// Stopper returns the function that ends the process, or this group alone, after a fault that a node cannot survive.
func (g *Group) Stopper(onFatal func(error)) func(error) {
	stop := onFatal
	if stop == nil {
		stop = g.exit
	}
	if g.Options.OnGroupEnd == nil {
		return stop
	}
	return func(err error) {
		if !failure.EndsGroup(err) {
			stop(err)
			return
		}
		if errors.Is(err, failure.ErrRemoved) {
			err = errors.Join(err, g.Identity.MarkRemoved())
		}
		g.Options.OnGroupEnd(err)
	}
}

func (g *Group) exit(err error) {
	g.Log.Error("this node cannot go on", "error", err, "restart", failure.RestartAdvice(err, g.Alone()))
	os.Exit(1)
}

// Alone reports whether no other node has this node's state.
func (g *Group) Alone() bool {
	if members := g.Peers.Members.Load(); members != nil && len(*members) > 0 {
		return len(*members) == 1
	}
	return g.Options.Expect <= 1 // Expect is more than half of --join, so it is 1 only for a single address
}

// CloseIf closes c unless it is nil.
func CloseIf(c io.Closer) error {
	if c == nil {
		return nil
	}
	return c.Close()
}
