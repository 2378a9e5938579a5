package raftstore

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

// Options configure a node.
type Options = host.Options

// Check returns an error if the options of a process are invalid. Open makes the same check for each group.
func Check(o Options) error { return o.Complete() }

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

// Founding has the numbers that a cluster keeps from its founding; see Options.
type Founding struct{ Groups, Replicas int }

// FoundingOf returns the numbers of the cluster whose node a data directory belongs to. ok is false if the directory
// belongs to no node, or if its node has not joined a cluster yet.
func FoundingOf(o *Options) (f Founding, ok bool, err error) {
	id, found, err := identity.Read(cmp.Or(o.FS, vfs.Default), o.DataDir)
	return Founding{id.Groups.N(), id.Replicas}, found && id.ClusterID != "", err
}

// GroupDir returns the data directory of a group in the data directory of its host. The first group uses the host's own
// directory.
func GroupDir(hostDir string, group int) string {
	if group == 0 {
		return hostDir
	}
	return filepath.Join(hostDir, identity.GroupsName, fmt.Sprintf("%04d", group))
}

// IsIncarnationOf reports whether id is the given id, or the id of a later incarnation of it.
func IsIncarnationOf(id, given string) bool { return identity.IsIncarnationOf(id, given) }

// Replica is what the data directory of a node says about its replica of a group.
type Replica struct {
	NodeID  string // of the node in the group; "": the node has never had a replica
	Joined  bool   // the node has been a member
	Removed bool   // the group has removed the node
}

// ReplicaIn returns what the data directory of the node with these options says about a group.
func ReplicaIn(o Options, group int) (Replica, error) {
	if o.Durability == Memory {
		return Replica{}, nil
	}
	id, _, err := identity.Read(cmp.Or(o.FS, vfs.Default), GroupDir(o.DataDir, group))
	return Replica{id.NodeID, id.Joined, id.Removed}, err
}

// DropState deletes the state of a replica that its group has removed. The identity stays, so that the node does not
// open the replica again by itself.
func DropState(o Options, group int) error {
	if o.Durability == Memory {
		return nil
	}
	fs, dir := cmp.Or(o.FS, vfs.Default), GroupDir(o.DataDir, group)
	return errors.Join(fs.RemoveAll(fs.PathJoin(dir, identity.TableName)),
		fs.RemoveAll(fs.PathJoin(dir, identity.PartName)))
}

// Renew lets a node that a group has removed join the group again, under a new id.
func Renew(o Options, group int, id string) error {
	if err := DropState(o, group); err != nil {
		return err
	}
	return identity.Write(cmp.Or(o.FS, vfs.Default), GroupDir(o.DataDir, group), identity.Identity{
		NodeID: id, Durability: string(cmp.Or(o.Durability, Fsync)),
	})
}
