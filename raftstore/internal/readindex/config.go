package readindex

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Config has what Reads need.
type Config struct {
	Self      string // the id of this node
	Heartbeat time.Duration
	MaxAge    time.Duration // of a decision; see host.Options.MaxDecisionAge

	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Leadership *leadership.Leadership
	Transport  Transport
	StuckFor   func() time.Duration // how long the append to this node's log takes that is under way
	Confirms   Confirms
	Disputed   *atomic.Bool // a divergence check is under way
	Peers      Peers
	Life       *timers.Lifetime
	Log        *slog.Logger
	Faults     faults.Set
}

// Transport sends messages of the Raft library.
type Transport interface {
	LocalAddr() raft.ServerAddress
	EncodePeer(id raft.ServerID, addr raft.ServerAddress) []byte
	AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest,
		resp *raft.AppendEntriesResponse) error
}

// Confirms asks a majority whether this node still leads; see package quorum.
type Confirms interface {
	// Confirm returns nil if no leader of a later term was elected before the call.
	Confirm(term uint64) error
}

// Peers connects Reads to the leader.
type Peers interface {
	// Clients returns the connections to a member for questions and for operations, or nil for this node and unknown
	// nodes.
	Clients(id string) (asker, client *peer.Client)
}

// New returns the Reads of a node.
func New(c Config) *Reads {
	rd := &Reads{Config: c, commitMessages: make(chan struct{}, maxCommitMessages)}
	rd.asker = timers.NewWorker(c.Life.Go, c.Life.Stop, rd.askAll)
	return rd
}
