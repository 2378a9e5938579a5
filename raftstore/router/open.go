package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/away"
	"github.com/weir-project/weir/raftstore/internal/detector"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Node hosts a replica of every Raft group of a cluster behind one inter-node port.
type Node struct {
	*Router
	options  raftstore.Options
	nodes    []atomic.Pointer[raftstore.Node] // by group; nil: the group had ended before, or is away
	host     *host.Host
	hosts    *peer.Port // for messages between hosts; nil until all groups are open
	detector *detector.Detector
	unwatch  context.CancelFunc // ends the detector

	resting     []atomic.Pointer[time.Time] // by group: when its replica was told to rest
	hearing     []timers.Single             // by group: see hearIfRemoved
	opening     sync.Mutex                  // held while a replica is opened
	changing    sync.Mutex                  // held while groups are replaced
	toldOpening time.Time                   // see openPlaced
	backups     away.Backups                // backups that other nodes read
	clients     *away.Clients               // for groups that are away
	life        context.Context             // of calls about such groups
	end         context.CancelFunc
	sending     sync.WaitGroup // of these calls

	endings chan ending   // of groups that must end
	ending  []atomic.Bool // by group: the group is in endings, or was
	closing sync.WaitGroup
}

// minSnapshotBytes is the least size of a group's log that makes a snapshot due, unless that of all groups is less.
const minSnapshotBytes = 4 << 20

// Open starts a node of a cluster with o.Groups groups. See raftstore.Open. The node owns o.Listener. A group that had
// ended on this node stays closed, unless no other group is left.
func Open(o raftstore.Options) (opened *Node, err error) {
	if err := raftstore.Check(o); err != nil {
		return nil, errors.Join(err, closeIf(o.Listener))
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	n := &Node{
		options: o, nodes: make([]atomic.Pointer[raftstore.Node], o.Groups),
		resting: make([]atomic.Pointer[time.Time], o.Groups), hearing: make([]timers.Single, o.Groups),
		endings: make(chan ending, o.Groups), ending: make([]atomic.Bool, o.Groups), host: host.NewHost(&o),
	}
	n.clients = away.NewClients(func() *peer.Port { return n.hosts }, o.RaftAddr)
	n.life, n.end = context.WithCancel(context.Background())
	n.options.MaxDecisionAge = cmp.Or(o.MaxDecisionAge, host.DefaultMaxDecisionAge)
	defer func() {
		if opened == nil { // after an error, or a panic of the Raft library about a log that it cannot read
			err = errors.Join(err, n.closeGroups())
		}
	}()
	groups := make([]replica, o.Groups)
	if groups[0], err = n.openGroup(0); err != nil { // as log lines, errors of the first group name no group
		return nil, err
	}
	if err := n.openOthers(groups); err != nil {
		return nil, err
	}
	if err := noneLeft(groups); err != nil {
		return nil, err
	}
	for i, m := range groups {
		if m.why != nil {
			n.tell(i, m.why)
		}
	}
	n.Router = New(groups, o.Replicas, o.Logger, o.Faults)
	if err := errors.Join(n.freeLog(), n.watch()); err != nil {
		n.Router.Close()
		return nil, err
	}
	n.tasks.Go(n.endGroups)
	if o.Replicas > 0 {
		for _, m := range groups[1:] {
			n.sending.Go(m.away.Run)
		}
		n.tasks.Go(n.keepPlaced)
	}
	return n, nil
}

// openAtOnce bounds the groups that load their state at the same time. A small group loads on few processors, and each
// load takes some megabytes for every processor.
const openAtOnce = 4

// openOthers opens all groups but the first one, several at a time. It returns the error of the lowest group that
// failed, and opens no group after an error.
func (n *Node) openOthers(groups []replica) error {
	var next atomic.Int64
	var failed atomic.Bool
	var open sync.WaitGroup
	errs := make([]error, len(groups))
	for range min(openAtOnce, runtime.GOMAXPROCS(0), len(groups)-1) {
		open.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1))
				if i >= len(groups) {
					return
				}
				if groups[i], errs[i] = n.openGroup(i); errs[i] != nil {
					errs[i] = fmt.Errorf("group %d: %w", i, errs[i])
					failed.Store(true)
				}
			}
		})
	}
	open.Wait()
	return cmp.Or(errs...)
}

// openGroup opens a group, unless it had ended or is away. It deletes the state of a replica that was moved away, which
// the last process may not have done.
func (n *Node) openGroup(group int) (replica, error) {
	if n.options.Replicas == 0 || group == 0 {
		return n.openHere(group)
	}
	other := n.newAway(group, func() []string { return n.founders(group) })
	has, err := raftstore.ReplicaIn(n.options, group)
	if has.Removed {
		err = raftstore.DropState(n.options, group)
	}
	if err != nil || has.Removed || !has.Joined {
		return replica{away: other}, err
	}
	m, err := n.openHere(group)
	m.away = other
	return m, err
}

// openHere opens a group of which this node has a replica, unless it had ended.
func (n *Node) openHere(group int) (replica, error) {
	node, err := raftstore.Open(n.ofGroup(group))
	switch {
	case err == nil:
		n.nodes[group].Store(node)
		return replica{live: node}, nil
	case failure.EndsGroup(err):
		last := limiter.Group{Slots: hashslot.OfGroup(group, n.options.Groups), Ended: err.Error()}
		return replica{why: err, last: last}, nil
	}
	return replica{}, err
}

// ofGroup returns the options of one group. The first group joins the cluster first. The other groups then join under
// the id that this node has in the first group.
func (n *Node) ofGroup(group int) raftstore.Options {
	o := n.options
	o.Group, o.Host = group, n.host
	o.OnGroupEnd = func(err error) { n.endSoon(group, err) }
	if group == 0 {
		o.Leads = n.leads
	}
	if first := n.nodes[0].Load(); group > 0 {
		o.First = firstGroup{n, first}
		if first != nil {
			o.Incarnation = first.Topology().Self
		}
	}
	o.DataDir = raftstore.GroupDir(o.DataDir, group)
	all := cmp.Or(o.SnapshotBytes, host.DefaultSnapshotBytes)
	o.SnapshotBytes = max(all/int64(o.Groups), min(minSnapshotBytes, all))
	// Each group gets an equal part of the memory. Package budget lets it take more while the others take less.
	o.Table.MaxMemoryBytes /= int64(o.Groups)
	o.Table.Shards = max(cmp.Or(o.Table.Shards, engine.ShardsFor(1))/o.Groups, 1) // an empty shard takes 6 KiB
	return o
}

func closeIf(l net.Listener) error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// Close stops the node. Each group transfers its leadership first, and no acknowledged decision is lost.
func (n *Node) Close() error {
	n.unwatch()
	n.Router.Close()
	n.closing.Wait()
	n.end()
	for _, m := range n.all() {
		if m.away != nil {
			m.away.Close()
		}
	}
	n.sending.Wait()
	n.backups.Close()
	n.clients.Close()
	return n.closeGroups()
}

// closeGroups closes all groups at the same time, and then the host.
func (n *Node) closeGroups() error {
	errs := make(chan error, len(n.nodes))
	n.opening.Lock() // a replica may just be opening
	for i := range n.nodes {
		node := n.nodes[i].Load()
		go func() {
			if node == nil {
				errs <- nil
				return
			}
			errs <- node.Close()
		}()
	}
	n.opening.Unlock()
	var all error
	for range n.nodes {
		all = errors.Join(all, <-errs)
	}
	return errors.Join(all, n.host.Close())
}
