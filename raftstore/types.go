package raftstore

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

// Options configure a node.
type Options = host.Options

// Entry describes a proposed batch of operations to Options.OnEntry.
type Entry = host.Entry

// Durability is the condition under which an entry counts as written.
type Durability = identity.Durability

// The durabilities.
const (
	Fsync  = identity.Fsync
	OS     = identity.OS
	Memory = identity.Memory
)

// OwnerOf returns the id of the node that a data directory belongs to, or "" if it belongs to none. It does not open
// the directory, because the node may be using it. It returns ErrNewer if this program does not know the format.
func OwnerOf(dir string) (nodeID string, err error) {
	id, _, err := identity.Read(vfs.Default, dir)
	return id.NodeID, err
}

// IsIncarnationOf reports whether id is the given id, or the id of a later incarnation of it.
func IsIncarnationOf(id, given string) bool { return identity.IsIncarnationOf(id, given) }
