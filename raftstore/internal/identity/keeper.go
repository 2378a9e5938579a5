package identity

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// Keeper holds the identity of a running node. A method that changes it returns when the change is on disk.
type Keeper struct {
	mu sync.Mutex
	Identity
	On  vfs.FS
	Dir string
}

// Self returns the identity that this node sends to other nodes.
func (k *Keeper) Self() peer.Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return peer.Identity{NodeID: k.NodeID, ClusterID: k.ClusterID}
}

// HasCluster reports whether the cluster's first entry has been applied here.
func (k *Keeper) HasCluster() bool { return k.Self().ClusterID != "" }

// ServesRaft returns an error unless this node may vote and receive entries. A node with an empty data directory may
// not do so before it is invited. It may be a member that has lost its disk and its votes, and a second vote could
// undo acknowledged decisions.
func (k *Keeper) ServesRaft() error {
	if k.WasInvited() {
		return nil
	}
	guards.NotTakenIn.Hit()
	return failure.ErrNotMember
}

// WasInvited reports whether a founder has invited this node, or a leader has added it.
func (k *Keeper) WasInvited() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Invited
}

// MarkInvited records that a founder has invited this node, or a leader has added it.
func (k *Keeper) MarkInvited() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Invited {
		return nil
	}
	k.Invited = true
	return k.write()
}

// HasJoined reports whether this node has been in a committed configuration.
func (k *Keeper) HasJoined() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Joined
}

// JoinedSince returns the log index of the first committed configuration that has this node, or false if none is known.
func (k *Keeper) JoinedSince() (at uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.JoinedAt, k.Joined
}

// JoinedBefore reports whether this node was a member before the configuration at a log index. After a restart, the
// newest configuration that this node knows may come from an image that is older than its membership. That changes
// when the entries after the image are known to be committed again.
func (k *Keeper) JoinedBefore(at uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Joined && k.JoinedAt < at
}

// MarkJoined records that this node has been a member since the configuration at a log index. Such a node never asks
// to join again, and detects its removal.
func (k *Keeper) MarkJoined(at uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Joined {
		return nil
	}
	k.Joined, k.JoinedAt = true, at
	return k.write()
}

// BelongTo records the cluster of this node, its number of Raft groups and that of their replicas. It reports whether
// the record has changed.
func (k *Keeper) BelongTo(clusterID string, groups wire.GroupCount, replicas int) (news bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ClusterID == clusterID {
		return false, nil
	}
	k.ClusterID, k.Groups, k.Replicas = clusterID, groups, replicas
	return true, k.write()
}

// Founding returns the numbers of Raft groups and of their replicas of this node's cluster; see host.Options. It
// returns false while the node knows of no cluster.
func (k *Keeper) Founding() (groups, replicas int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Groups.N(), k.Replicas, k.ClusterID != ""
}

// MarkHasLog records that a restored node now has a log.
func (k *Keeper) MarkHasLog() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Restored = false
	return k.write()
}

// Rename replaces the id of this node, because a member with that id was removed.
func (k *Keeper) Rename(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.NodeID = id
	return k.write()
}

// Forbid records why this node must not start again.
func (k *Keeper) Forbid(reason string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Diverged = reason
	return k.write()
}

// MarkRemoved records that the cluster has removed this node, so it must not start again.
func (k *Keeper) MarkRemoved() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Removed {
		return nil
	}
	k.Removed = true
	return k.write()
}

// Adopt takes the id of a later incarnation, unless the node was invited or has been a member under its current id.
func (k *Keeper) Adopt(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Invited || k.Joined {
		return nil
	}
	k.NodeID = id
	return k.write()
}

// write puts the identity on the disk. The caller holds mu.
func (k *Keeper) write() error { return Write(k.On, k.Dir, k.Identity) }
