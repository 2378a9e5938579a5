package membership

import (
	"log/slog"

	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Config has what a Membership needs.
type Config struct {
	Self, RaftAddr string   // of this node
	JoinAddrs      []string // of --join
	Expect         int
	Groups         int // of this process, at least 1
	Replicas       int // as in host.Options
	Zone           string
	Reads          byte // the newest form of entries that this node reads
	KeepsPromises  bool // this node keeps its votes on disk
	// First is the first of several groups on this node. nil: this is the first group, or the only one.
	First host.FirstGroup

	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Leadership *leadership.Leadership
	Format     Format
	ReadIndex  func() error // see readindex.Reads.ReadIndex
	Identity   Identity
	Peers      Peers
	Dial       func(addr, id string) *peer.Client // id is "" if any node may answer
	Life       *timers.Lifetime
	Log        *slog.Logger
	Fatal      func(error) // stops this node
}

// Format decides whether a node can read the log.
type Format interface {
	// CheckNewcomer returns an error for a new node that cannot read the agreed form.
	CheckNewcomer(id string, reads byte) error
}

// Identity is the identity in the directory of this node.
type Identity interface {
	HasJoined() bool
	WasInvited() bool
	MarkInvited() error
	// Rename gives an empty directory another id.
	Rename(id string) error
}

// Peers connects a Membership to the other members.
type Peers interface {
	// Client returns the connection to a member, or nil for this node and unknown nodes.
	Client(id string) *peer.Client
	// Last returns the last status of a member, or false if none was received.
	Last(id string) (host.Heard, bool)
}

// New returns the Membership of a node in a group.
func New(c Config) *Membership { return &Membership{Config: c} }
