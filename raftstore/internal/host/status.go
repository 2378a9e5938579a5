package host

import (
	"encoding/json"

	"github.com/weir-project/weir/raftstore/wire"
)

// Status is a node's report about itself to another node.
type Status struct {
	NodeID, ClusterID    string
	RaftAddr, ClientAddr string
	Pristine             bool   // belongs to no cluster and has no log
	Leader               string // the id of the leader, "" when it knows none
	LeaderAddr           string // its inter-node address
	Term, Commit, Index  uint64
	Format               byte // the newest form it can read, at least wire.Oldest
	WallNs               int64
	AppendNs             int64    // the median of its last appends to the log, the latency of its disk; 0: not known
	MaxMemory            int64    // bytes; 0: no bound
	MembersAt            uint64   // the log index of the configuration of Members
	Members              []string // ids in the newest committed configuration it knows
	Held                 Held
	Stopping             bool   `json:",omitempty"`
	WebURL               string `json:",omitempty"` // of its page; "": nowhere, or an older weir
	// Groups is the number of Raft groups of the node's cluster, or the number that it would found.
	Groups wire.GroupCount `json:",omitempty"`
	// Replicas and Zone are as in Options.
	Replicas int    `json:",omitempty"`
	Zone     string `json:",omitempty"`
	// Leads are the groups that the host leads, in the status of the first group.
	Leads []Led `json:",omitempty"`
}

// Led is a group as the host that leads it describes it.
type Led struct {
	Group                 int
	Leader                string // the id of the host's node in the group
	Term, Applied, Commit uint64
	Members               []LedMember
}

// LedMember is a member of a led group.
type LedMember struct {
	ID, Addr string // in the group
	Voter    bool
	Up       bool   // the leader hears from it
	Lag      uint64 // committed entries that it has not applied
}

// Held describes how long a node has had the entry whose stamp it applied last.
type Held struct {
	Index uint64
	Ns    int64 // since the entry arrived, by the node's monotonic clock
	Live  bool  // the node has been up since the entry was proposed
}

func (s Status) Encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return b
}
