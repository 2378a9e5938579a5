package raftstore

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/peer"
)

// keeper holds the identity of a running node. Each change is on the disk when it returns.
type keeper struct {
	mu sync.Mutex
	identity
	on  vfs.FS
	dir string
}

// self returns the name under which this node speaks to others.
func (k *keeper) self() peer.Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return peer.Identity{NodeID: k.NodeID, ClusterID: k.ClusterID}
}

// hasCluster reports whether the cluster's first entry has been applied here.
func (k *keeper) hasCluster() bool { return k.self().ClusterID != "" }

// servesRaft returns an error unless this node may vote and be sent entries. A node with an
// empty data directory may not before it was taken in: it may be a member that has lost its
// disk, and with it its votes. A second vote could undo what was answered.
func (k *keeper) servesRaft() error {
	if k.invited() {
		return nil
	}
	guards.NotTakenIn.Hit()
	return failure.ErrNotTakenIn
}

// invited reports whether a founder or a leader has taken this node in.
func (k *keeper) invited() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Invited
}

// markInvited records that this node was taken in.
func (k *keeper) markInvited() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Invited {
		return nil
	}
	k.Invited = true
	return k.write()
}

// hasJoined reports whether this node has been in a committed configuration.
func (k *keeper) hasJoined() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Joined
}

// joinedBefore reports whether this node was a member before the configuration at an
// entry. After a restart the newest one it knows may be older, from an image of the
// time before it joined, until the log that follows is committed again.
func (k *keeper) joinedBefore(at uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Joined && k.JoinedAt < at
}

// markJoined records that this node has been a member since the configuration at an entry:
// it never asks to be taken in again, and knows when it is no member any more.
func (k *keeper) markJoined(at uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Joined {
		return nil
	}
	k.Joined, k.JoinedAt = true, at
	return k.write()
}

// belongTo records the cluster of this node, and reports whether that is news.
func (k *keeper) belongTo(clusterID string) (news bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ClusterID == clusterID {
		return false, nil
	}
	k.ClusterID = clusterID
	return true, k.write()
}

// hasLog records that a node that was restored from a backup has a log now.
func (k *keeper) hasLog() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Restored = false
	return k.write()
}

// rename gives the directory of a node whose id is spent another id.
func (k *keeper) rename(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.NodeID = id
	return k.write()
}

// forbid records why this node must not start again.
func (k *keeper) forbid(reason string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Diverged = reason
	return k.write()
}

// write puts the identity on the disk. The caller holds mu.
func (k *keeper) write() error { return writeIdentity(k.on, k.dir, k.identity) }
