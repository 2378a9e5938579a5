package fsm

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/raftstore/wire"
)

// State is the state of the FSM besides the table. Every image contains it.
type State struct {
	Index, Term uint64
	At          engine.Stamp // limiter time of the last entry
	History     uint64
	Founding    Constants
	// Format is the newest form of any entry so far, or 0 before the first entry.
	Format byte `json:",omitempty"`
	// Walls is the newest note of the members' wall clocks. A note is never changed.
	Walls *WallNote `json:",omitempty"`
	// RemovedIDs are the ids that no other node may have; see identity.RemovedIDs. The slice is never changed.
	RemovedIDs []string `json:"Gone,omitempty"`
}

// Constants are the settings that all nodes of a cluster must agree on. The cluster's first entry contains them.
type Constants struct {
	ClusterID    string
	IDLifetimeNs int64
	TestClock    bool
	// Groups is the number of Raft groups of the cluster, and Group is the number of this one, from 0.
	Groups wire.GroupCount `json:",omitempty"`
	Group  int             `json:",omitempty"`
	// Slots are the hash slots that the group owns; nil: all. The group answers limiter.ErrWrongGroup for other slots.
	Slots *hashslot.Range `json:",omitempty"`
	// HashSeed is the seed of every node's table, so that a cursor of Scan means the same on each. It is zero in a
	// cluster that older versions founded, until its leader proposes one. A table takes the seed when it is made.
	HashSeed engine.HashSeed `json:",omitzero"`
	// EventsBytes bounds the log of events of the group; 0 means engine.DefaultEventsBytes.
	EventsBytes int64 `json:",omitempty"`
	// Replicas is the number of nodes that shall have a replica of each group; 0: every node has one of every group.
	Replicas int `json:",omitempty"`
	// Placed are the nodes that found each group, by their ids in the first group. The first one founds the group. Only
	// the first group has the list, from the moment when its leader knows all founders; see Leadership.Seed.
	Placed [][]string `json:",omitempty"`
}

// ConstantsOf returns the constants Groups, Group and Slots of a group.
func ConstantsOf(group, groups int) Constants {
	f := Constants{Groups: wire.CountGroups(groups), Group: group}
	if slots := hashslot.OfGroup(group, groups); slots != hashslot.All {
		f.Slots = &slots
	}
	return f
}

// EventsBound returns the bound of the log of events.
func (f Constants) EventsBound() int64 { return cmp.Or(f.EventsBytes, engine.DefaultEventsBytes) }

// Form returns the oldest form of the log that has the constants.
func (f Constants) Form() byte {
	switch {
	case f.Replicas > 0:
		return wire.Growing
	case f.Slots != nil:
		return wire.Groups
	}
	return wire.Oldest
}

// Owned returns the slots that the group owns.
func (f Constants) Owned() hashslot.Range {
	if f.Slots == nil {
		return hashslot.All
	}
	return *f.Slots
}

// check returns an error for constants that no leader proposes.
func (f Constants) check() error {
	switch {
	case f.ClusterID == "" || f.IDLifetimeNs <= 0:
		return fmt.Errorf("a founding entry without %q", "ClusterID")
	case f.EventsBytes != 0 && f.EventsBytes < engine.MinEventsBytes:
		return fmt.Errorf("a founding entry with %d bytes of events", f.EventsBytes)
	case f.Replicas < 0 || len(f.Placed) > f.Groups.N():
		return fmt.Errorf("a founding entry with %d replicas of %d groups", f.Replicas, len(f.Placed))
	case f.Slots == nil && f.Groups == 0 && f.Group == 0:
		return nil
	case f.Slots == nil || !hashslot.ValidGroups(f.Groups.N()) || f.Group < 0 || f.Group >= f.Groups.N() ||
		f.Slots.First > f.Slots.Last || f.Slots.Last >= hashslot.Count:
		return fmt.Errorf("a founding entry of group %d of %d, which owns %v", f.Group, f.Groups, f.Slots)
	}
	return nil
}

func (f Constants) Encode() []byte {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return b
}

func decodeFounding(b []byte) (f Constants, err error) {
	if err := json.Unmarshal(b, &f); err != nil {
		return f, err
	}
	return f, f.check()
}

func (s State) Encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

func decodeState(b []byte) (s State, err error) {
	err = json.Unmarshal(b, &s)
	s.dropOldNote() // weir 0.1.0 may have kept it
	return s, err
}
