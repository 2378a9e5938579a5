package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// Identity is the content of the identity file of a data directory. It is written before the node contacts any other
// node.
type Identity struct {
	Version    int
	NodeID     string
	Durability string
	Invited    bool            // a founder or a leader has accepted the node; before, it takes no part in elections
	Joined     bool            // the node has been in a committed configuration
	JoinedAt   uint64          // log index of the first such configuration
	Restored   bool            `json:",omitempty"` // the directory comes from a backup, and its node has had no log since
	ClusterID  string          // "" until the node has read the cluster's first entry
	Groups     wire.GroupCount `json:",omitempty"` // of the cluster, once it is known
	Replicas   int             `json:",omitempty"` // of the cluster; see host.Options
	Diverged   string          // why the node must not start again; "" when it may
	Removed    bool            `json:",omitempty"` // the node was removed from the group, and must not start in it again
}

const (
	FileName  = persistence.NodeName
	TableName = "table" // the directory of images
	LogName   = "log"   // the directory of the log that version 0.1.0 keeps for the only group of a cluster
	// SharedLogName is the directory of the shared log in the data directory of a host. PartName is the file in the
	// directory of a group that names the group's part of it.
	SharedLogName, PartName = "shared-log", "log-part"
	// GroupsName is the directory in a host's data directory that has a data directory for each Raft group but the
	// first.
	GroupsName = "groups"
	// version is the format of a node's directory, and oldest the oldest that is read. From 2 on, the only group of a
	// cluster has its log in the shared log.
	version, oldest = 2, 1
	MaxBytes        = 4 << 10
)

// Read returns the identity of a directory. It reports false if the directory has no identity file.
func Read(on vfs.FS, dir string) (Identity, bool, error) {
	f, err := on.Open(on.PathJoin(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes))
	if err != nil {
		return Identity{}, false, err
	}
	id, err := decodeIdentity(b)
	return id, err == nil, err
}

// Write replaces the identity of a directory atomically.
func Write(on vfs.FS, dir string, id Identity) error {
	b, err := id.encode()
	if err != nil {
		return err
	}
	return persistence.WriteFile(on, dir, FileName, string(b))
}

// Claim makes the directory the node's own, or returns an error that names its owner or its damage. It returns the
// identity that the directory has then.
func Claim(on vfs.FS, dir string, want Identity) (Identity, error) {
	if err := persistence.MakeDirectory(on, dir); err != nil {
		return Identity{}, err
	}
	if _, err := on.Stat(on.PathJoin(dir, "FORMAT")); err == nil {
		return Identity{}, failure.ErrStandalone
	} else if !errors.Is(err, os.ErrNotExist) {
		return Identity{}, err
	}
	have, ok, err := Read(on, dir)
	switch {
	case err != nil:
		return Identity{}, err
	case !ok && persistence.RestoreUnfinished(on, dir):
		return Identity{}, failure.ErrRestoring
	case !ok && hasState(on, dir):
		return Identity{}, fmt.Errorf("%w (its %s file is missing)", failure.ErrDamaged, FileName)
	case !ok && want.Durability != string(Memory) && CheckGivenID(want.NodeID) != nil:
		return Identity{}, CheckGivenID(want.NodeID)
	case !ok:
		return want, Write(on, dir, want)
	case !IsIncarnationOf(have.NodeID, want.NodeID):
		return Identity{}, fmt.Errorf("%w: it is of node %q, and this is node %q: start it with --node-id %[2]s, or "+
			"give this node a directory of its own", failure.ErrOtherNode, have.NodeID, want.NodeID)
	case have.Diverged != "":
		return Identity{}, fmt.Errorf("%w (%s): %s", failure.ErrDiverged, have.Diverged, failure.AdviceRejoin)
	case have.Removed:
		return Identity{}, failure.ErrRemoved
	}
	return have, nil
}

// hasState reports whether a log, a part of one or a directory of images exists. A node creates them only after it has
// written its identity.
func hasState(on vfs.FS, dir string) bool {
	for _, name := range []string{LogName, PartName, TableName} {
		if _, err := on.Stat(on.PathJoin(dir, name)); err == nil {
			return true
		}
	}
	return false
}
