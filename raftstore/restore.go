package raftstore

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/images"
)

// restoredIndex and restoredTerm are the log index and the term of a restored state. The log begins after them.
const restoredIndex, restoredTerm = 1, 1

// RestoreOptions describe the node that is made from a backup.
type RestoreOptions struct {
	NodeID, RaftAddr string              // as in Options
	Durability       identity.Durability // "" is Fsync
	// Credit bounds how much of the time since the backup counts as passed.
	Credit time.Duration
	Store  persistence.StoreOptions
	Source persistence.Source // nil: the machine's clocks
}

// Restore makes Store.Dir the data directory of the first node of a new cluster, from a backup of any node. The
// directory must be empty or missing. The node leads when it is started, and nodes with empty directories join it.
// The errors are those of persistence.Restore.
func Restore(o RestoreOptions, from io.Reader) (persistence.Contents, error) {
	if o.Durability == "" {
		o.Durability = identity.Fsync
	}
	if o.Source == nil {
		o.Source = persistence.SystemSource()
	}
	if o.Store.FS == nil {
		o.Store.FS = vfs.Default
	}
	id, err := identity.NewClusterID()
	if err = errors.Join(err, host.CheckNode(o.NodeID, o.RaftAddr), identity.CheckGivenID(o.NodeID)); err != nil {
		return persistence.Contents{}, err
	}
	return persistence.RestoreTo(o.Store, from, identity.FileName, func(into string, b *persistence.Unpacked) error {
		if err := o.writeTable(into, id, b); err != nil {
			return err
		}
		return identity.Write(o.Store.FS, into, identity.Identity{
			NodeID: o.NodeID, Durability: string(o.Durability), ClusterID: id,
			Invited: true, Joined: true, JoinedAt: restoredIndex, Restored: true,
		})
	})
}

// writeTable writes the entries of a backup as the image from which the node starts.
func (o *RestoreOptions) writeTable(into, clusterID string, b *persistence.Unpacked) (err error) {
	store := o.Store
	store.Dir = store.FS.PathJoin(into, identity.TableName)
	kept, err := persistence.OpenImages(store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	if err := b.Entries(kept.Write); err != nil {
		return err
	}
	alone := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(o.NodeID),
		Address: raft.ServerAddress(o.RaftAddr)}}}
	meta, err := json.Marshal(images.Meta{Version: raft.SnapshotVersionMax, Configuration: alone,
		ConfigurationIndex: restoredIndex})
	if err != nil {
		return err
	}
	s := fsm.State{Index: restoredIndex, Term: restoredTerm, At: b.Clock(o.Source, o.Credit)}
	s.Founding = fsm.Constants{ClusterID: clusterID, IDLifetimeNs: b.IDLifetimeNs, TestClock: b.At.Test}
	_, err = kept.Seal(restoredIndex, restoredTerm, s.Encode(), meta)
	return err
}
