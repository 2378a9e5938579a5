package fsm

import (
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/engine"
)

// State is the state of the FSM besides the table. Every image contains it.
type State struct {
	Index, Term uint64
	At          engine.Stamp // limiter time of the last entry
	History     uint64
	Founding    Constants
	// Format is the newest form of any entry so far; 0 if an older weir made the image.
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
	if f.ClusterID == "" || f.IDLifetimeNs <= 0 {
		return f, fmt.Errorf("a founding entry without %q", "ClusterID")
	}
	return f, nil
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
	return s, err
}
