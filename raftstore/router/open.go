package router

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/peer"
)

// Node hosts a replica of every Raft group of a cluster behind one inter-node port.
type Node struct {
	*Router
	nodes []*raftstore.Node
	hub   *peer.Hub
}

// minSnapshotBytes is the least size of a group's log that makes a snapshot due.
const minSnapshotBytes = 4 << 20

// Open starts a node of a cluster with o.Groups groups, at least two. See raftstore.Open.
func Open(o raftstore.Options) (opened *Node, err error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	n := &Node{hub: peer.NewHub(o.Listener, peer.HubConfig{
		Secret: o.Secret, Certificates: o.Certificates, Logger: o.Logger, Dialer: o.Dialer,
	})}
	defer func() {
		if opened == nil { // after an error, or a panic of the Raft library about a log that it cannot read
			err = errors.Join(err, n.closeGroups())
		}
	}()
	var groups []Group
	for i := range o.Groups {
		node, err := raftstore.Open(ofGroup(o, i, n.hub))
		if err != nil {
			return nil, fmt.Errorf("group %d: %w", i, err)
		}
		n.nodes, groups = append(n.nodes, node), append(groups, node)
	}
	n.Router = New(groups, o.Logger, o.Faults)
	return n, nil
}

// ofGroup returns the options of one group. Groups share the bounds of the host equally.
func ofGroup(o raftstore.Options, group int, hub *peer.Hub) raftstore.Options {
	o.Group, o.Hub = group, hub
	o.Listener, o.Secret, o.Certificates, o.Dialer = nil, nil, nil, nil // the hub has them
	o.DataDir = raftstore.GroupDir(o.DataDir, group)
	if o.Logs != nil {
		o.Log = o.Logs[group]
	}
	o.SnapshotBytes = max(cmp.Or(o.SnapshotBytes, raftstore.DefaultSnapshotBytes)/int64(o.Groups), minSnapshotBytes)
	o.Table.MaxMemoryBytes /= int64(o.Groups)
	return o
}

// Close stops the node. Each group transfers its leadership first, and no acknowledged decision is lost.
func (n *Node) Close() error {
	n.Router.Close()
	return n.closeGroups()
}

// closeGroups closes all groups at the same time, and then the port.
func (n *Node) closeGroups() error {
	errs := make(chan error, len(n.nodes))
	for _, node := range n.nodes {
		go func() { errs <- node.Close() }()
	}
	var all error
	for range n.nodes {
		all = errors.Join(all, <-errs)
	}
	return errors.Join(all, n.hub.Close())
}
