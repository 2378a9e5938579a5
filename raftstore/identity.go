package raftstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// identity is what a data directory says of the node it belongs to. It is written
// before the node speaks to anyone.
type identity struct {
	Version    int
	NodeID     string
	Durability string
	Invited    bool   // a founder or a leader has taken it in; before, it takes no part in elections
	Joined     bool   // it has been in a committed configuration
	JoinedAt   uint64 // the entry of the first of those
	Restored   bool   `json:",omitempty"` // it is from a backup and has not led or followed since, so it has no log
	ClusterID  string // "" until the node has read the cluster's first entry
	Diverged   string // why the node must not start again; "" when it may

	unsummed bool // the file has no checksum: an older weir wrote it
}

const (
	identityName    = persistence.NodeName
	tableName       = "table" // the directory of images
	logName         = "log"   // the directory of the log
	identityVersion = 1
	maxIdentity     = 4 << 10
)

// readIdentity returns what the directory says; false in an empty one.
func readIdentity(on vfs.FS, dir string) (identity, bool, error) {
	f, err := on.Open(on.PathJoin(dir, identityName))
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, false, nil
	}
	if err != nil {
		return identity{}, false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err != nil {
		return identity{}, false, err
	}
	id, err := decodeIdentity(b)
	return id, err == nil, err
}

// writeIdentity replaces what the directory says, in one step.
func writeIdentity(on vfs.FS, dir string, id identity) error {
	b, err := id.encode()
	if err != nil {
		return err
	}
	path := on.PathJoin(dir, identityName)
	if err := writeFile(on, path+".tmp", b); err != nil {
		return err
	}
	if err := on.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDirectory(on, dir)
}

func writeFile(on vfs.FS, path string, b []byte) error {
	f, err := on.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDirectory(on vfs.FS, dir string) error {
	d, err := on.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// claim makes the directory this node's, or says whose it is.
func claim(on vfs.FS, dir string, want identity) (identity, error) {
	if err := persistence.MakeDirectory(on, dir); err != nil {
		return identity{}, err
	}
	if _, err := on.Stat(on.PathJoin(dir, "FORMAT")); err == nil {
		return identity{}, fmt.Errorf("%w: use another one, or start without --node-id and --durability", failure.ErrStandalone)
	} else if !errors.Is(err, os.ErrNotExist) {
		return identity{}, err
	}
	have, ok, err := readIdentity(on, dir)
	switch {
	case err != nil:
		return identity{}, err
	case !ok && persistence.RestoreUnfinished(on, dir):
		return identity{}, failure.ErrRestoring
	case !ok && hasState(on, dir):
		return identity{}, fmt.Errorf("%w (its %s file is missing)", failure.ErrDamaged, identityName)
	case !ok && want.Durability != string(Memory) && checkGivenID(want.NodeID) != nil:
		return identity{}, checkGivenID(want.NodeID)
	case !ok:
		return want, writeIdentity(on, dir, want)
	case !IsLifeOf(have.NodeID, want.NodeID):
		return identity{}, fmt.Errorf("%w: it is %q, this node is to be %q", failure.ErrOtherNode, have.NodeID, want.NodeID)
	case have.Diverged != "":
		return identity{}, fmt.Errorf("%w (%s): %s", failure.ErrDiverged, have.Diverged, adviceRejoin)
	}
	if have.unsummed {
		have.unsummed = false
		return have, writeIdentity(on, dir, have)
	}
	return have, nil
}

// hasState reports whether there is a log or a directory of images. A node makes them only
// after it has written its identity.
func hasState(on vfs.FS, dir string) bool {
	for _, name := range []string{logName, tableName} {
		if _, err := on.Stat(on.PathJoin(dir, name)); err == nil {
			return true
		}
	}
	return false
}
