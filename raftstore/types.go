package raftstore

import (
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

// Options configure a node.
type Options = host.Options

// Check returns an error if the options of a process are invalid. Open makes the same check for each group.
func Check(o Options) error { return o.Complete() }

// FirstGroup is the first group of a node as its other groups see it; see Options.First.
type FirstGroup = host.FirstGroup

// Host is what a process has once for all of its groups; see Options.Host.
type Host = host.Host

// NewHost returns the host of several groups for the options of the process. Close ends it after the groups.
func NewHost(o *Options) *Host { return host.NewHost(o) }

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

// The defaults of Options.SnapshotBytes and Options.Heartbeat.
const (
	DefaultSnapshotBytes = host.DefaultSnapshotBytes
	DefaultHeartbeat     = host.DefaultHeartbeat
)

// OwnerOf returns the id of the node that a data directory belongs to, or "" if it belongs to none. It does not open
// the directory, because the node may be using it. It returns ErrNewer if this program does not know the format.
func OwnerOf(dir string) (nodeID string, err error) {
	id, _, err := identity.Read(vfs.Default, dir)
	return id.NodeID, err
}

// GroupsOf returns the number of Raft groups of the cluster whose node a data directory belongs to. ok is false if the
// directory belongs to no node, or if its node has not joined a cluster yet.
func GroupsOf(o *Options) (groups int, ok bool, err error) {
	on := o.FS
	if on == nil {
		on = vfs.Default
	}
	id, found, err := identity.Read(on, o.DataDir)
	return id.Groups.N(), found && id.ClusterID != "", err
}

// GroupDir returns the data directory of a group in the data directory of its host. The first group uses the host's own
// directory.
func GroupDir(hostDir string, group int) string {
	if group == 0 {
		return hostDir
	}
	return filepath.Join(hostDir, identity.GroupsName, fmt.Sprintf("%04d", group))
}

// EndsGroup reports whether an error ends only the group that it is about; see Options.OnGroupEnd. The error may come
// from Open, too.
func EndsGroup(err error) bool { return failure.EndsGroup(err) }

// RestartAdvice returns whether a node may be started again after an error, and what to do otherwise. alone: no other
// node has its state.
func RestartAdvice(err error, alone bool) string { return failure.RestartAdvice(err, alone) }

// IsIncarnationOf reports whether id is the given id, or the id of a later incarnation of it.
func IsIncarnationOf(id, given string) bool { return identity.IsIncarnationOf(id, given) }
