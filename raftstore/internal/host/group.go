package host

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Group is what a Raft group has of its own on a host: its directory and identity, its port, its peers, and its
// lifetime. The host gives the rest to all of its groups: see Host.
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

// NewGroup returns a group for complete options. Claim and OpenPort open the directory and the port.
func NewGroup(o Options) *Group {
	g := &Group{Options: o, Log: o.Logger, Identity: &identity.Keeper{On: o.FS, Dir: o.DataDir}}
	g.Lifetime = timers.NewLifetime(o.Host.loop)
	if o.Group > 0 {
		g.Log = g.Log.With("group", o.Group)
	}
	g.Fatal = g.Stopper(o.OnFatal)
	return g
}

// Budget returns the memory budget of all groups. A group that denies when it is full gives no memory back, so the
// parts are equal then.
func (g *Group) Budget() *budget.Budget {
	o := &g.Options
	return o.Host.budget(o.Table.MaxMemoryBytes*int64(o.Groups), o.Groups, !o.DenyWhenFull())
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

// OpenPort opens the port of the group on the hub of the host.
func (g *Group) OpenPort(serve func(net.Conn, peer.Identity)) (err error) {
	g.Port, err = g.Options.Host.Hub.Open(uint16(g.Options.Group), peer.PortConfig{
		Self: g.Identity.Self, ServesRaft: g.Identity.ServesRaft, Stops: g.Peers.StopsExplain, Logger: g.Log,
	}, serve)
	return err
}

// Dial returns a client for the node with this id at an address. id is "" if any node may answer.
func (g *Group) Dial(addr, id string) *peer.Client { return peer.NewClient(g.Port, addr, id) }

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
