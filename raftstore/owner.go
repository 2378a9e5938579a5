package raftstore

import "github.com/cockroachdb/pebble/v2/vfs"

// OwnerOf says which node a data directory belongs to, "" when none, without opening it:
// the node may be using it. ErrNewer when this program does not know its format.
func OwnerOf(dir string) (nodeID string, err error) {
	id, _, err := readIdentity(vfs.Default, dir)
	return id.NodeID, err
}
