package raftstore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
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
	// Groups is the number of Raft groups of the new cluster; 0: as many as the backup has.
	Groups int
	// Replicas is the number of nodes that shall have a replica of each group, as in Options. This node has all until
	// they are moved.
	Replicas int
	// EndHolds ends the holds whose id and keys would be in different groups. Without it, such a hold fails the
	// restore.
	EndHolds bool
	Store    persistence.StoreOptions
	Source   persistence.Source // nil: the machine's clocks
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
	if o.Store.Logger == nil {
		o.Store.Logger = slog.Default()
	}
	err := errors.Join(host.CheckNode(o.NodeID, o.RaftAddr), identity.CheckGivenID(o.NodeID))
	if o.Groups != 0 && !hashslot.ValidGroups(o.Groups) {
		err = errors.Join(err, fmt.Errorf("--groups must be a power of two from 1 to %d, not %d", hashslot.MaxGroups,
			o.Groups))
	}
	err = errors.Join(err, host.CheckReplicas(o.Replicas))
	if err != nil {
		return persistence.Contents{}, err
	}
	return persistence.RestoreTo(o.Store, from, identity.FileName, o.writeGroups)
}

// writeGroups writes the data directories of all groups.
func (o *RestoreOptions) writeGroups(into string, b *persistence.Unpacked) error {
	groups := cmp.Or(o.Groups, b.Groups())
	b.EndHolds = o.EndHolds
	for group := range groups {
		if err := o.writeGroup(GroupDir(into, group), group, groups, b); err != nil {
			return err
		}
	}
	if b.EndedHolds > 0 {
		o.Store.Logger.Warn("the restore ended holds whose id and keys are in different groups", "holds", b.EndedHolds)
	}
	return nil
}

// writeGroup writes the data directory of one group.
func (o *RestoreOptions) writeGroup(into string, group, groups int, b *persistence.Unpacked) error {
	founding := fsm.ConstantsOf(group, groups)
	founding.HashSeed, founding.Replicas = engine.NewHashSeed(), o.Replicas
	if group == 0 && o.Replicas > 0 {
		founding.Placed = slices.Repeat([][]string{{o.NodeID}}, groups)
	}
	var err error
	if founding.ClusterID, err = identity.NewClusterID(); err != nil {
		return err
	}
	if err := o.writeTable(into, founding, b); err != nil {
		return err
	}
	return identity.Write(o.Store.FS, into, identity.Identity{
		NodeID: o.NodeID, Durability: string(o.Durability), ClusterID: founding.ClusterID, Groups: founding.Groups,
		Replicas: o.Replicas,
		Invited:  true, Joined: true, JoinedAt: restoredIndex, Restored: true,
	})
}

// writeTable writes the entries of a group as the image from which its node starts.
func (o *RestoreOptions) writeTable(into string, founding fsm.Constants, b *persistence.Unpacked) (err error) {
	store := o.Store
	store.Dir = store.FS.PathJoin(into, identity.TableName)
	kept, err := persistence.OpenImages(store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	if err := b.Entries(founding.Owned(), kept.Write); err != nil {
		return err
	}
	alone := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(o.NodeID),
		Address: raft.ServerAddress(o.RaftAddr)}}}
	meta, err := json.Marshal(images.Meta{Version: raft.SnapshotVersionMax, Configuration: alone,
		ConfigurationIndex: restoredIndex})
	if err != nil {
		return err
	}
	from := b.Within(founding.Owned())
	founding.IDLifetimeNs, founding.TestClock = from.IDLifetimeNs, from.At.Test
	s := fsm.State{
		Index: restoredIndex, Term: restoredTerm, At: from.Clock(o.Source, o.Credit), Founding: founding,
		Format: founding.Form(),
	}
	_, err = kept.Seal(restoredIndex, restoredTerm, s.Encode(), meta)
	return err
}
