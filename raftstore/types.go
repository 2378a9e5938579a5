package raftstore

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/readindex"
)

// Options say what a node is and how it finds the others.
type Options = host.Options

// Entry is how a batch of operations went through the log of the node that led.
type Entry = host.Entry

// Durability says when an entry counts as written.
type Durability = identity.Durability

// The durabilities.
const (
	Fsync  = identity.Fsync
	OS     = identity.OS
	Memory = identity.Memory
)

// UnknownAge is what StaleFor returns while the age is not known: longer than any state
// can be old.
const UnknownAge = readindex.UnknownAge

// OwnerOf says which node a data directory belongs to, "" when none, without opening it:
// the node may be using it. ErrNewer when this program does not know its format.
func OwnerOf(dir string) (nodeID string, err error) {
	id, _, err := identity.Read(vfs.Default, dir)
	return id.NodeID, err
}

// IsIncarnationOf reports whether a node's id is the one that was given, or that of a later
// incarnation.
func IsIncarnationOf(id, given string) bool { return identity.IsIncarnationOf(id, given) }
