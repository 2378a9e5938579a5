package leadership

import (
	"log/slog"
	"time"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// Config has what a Leadership needs.
type Config struct {
	Self          string // the id of this node
	Group, Groups int    // as in host.Options
	Heartbeat     time.Duration
	StalledAfter  time.Duration        // see host.Options
	Downtime      persistence.Downtime // what counts as passed after a cold start
	IDLifetimeNs  int64                // of a cluster that this node founds
	EventsBytes   int64                // of a cluster that this node founds; 0: the default
	TestClock     bool
	Replicas      int // as in host.Options
	// Place returns the nodes that found each group, or nil while they cannot be chosen yet; see fsm.Constants.Placed.
	// Place is nil in all groups but the first.
	Place func() [][]string

	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Queue      *queue.Queue
	Confirms   Confirms
	AppendTime func() time.Duration // the median time of an append to this node's log; 0: not known
	// Agree returns the newest form of entries that all members read, as far as this node knows.
	Agree func() byte
	// Status returns the status of this node.
	Status     func() host.Status
	HasCluster func() bool // the cluster's first entry has been applied here
	Peers      Peers
	Members    func() []limiter.Member // the last description of the members
	Source     persistence.Source
	Life       *timers.Lifetime
	Log        *slog.Logger
	Fatal      func(error) // stops this node
	Faults     faults.Set
	Reach      func(faults.Point)
}

// Confirms are the questions whether this node still leads; see package quorum.
type Confirms interface {
	// Abandon ends every wait, because this node no longer leads.
	Abandon()
}

// Peers tells a Leadership about the other nodes.
type Peers interface {
	// Last returns the last status of a member, or false if none was received.
	Last(id string) (host.Heard, bool)
	// Askers returns the connections for questions to these nodes, without this node and unknown nodes.
	Askers(ids []string) []*peer.Client
	IsStopping(id string) bool
	// NoQuorumExplained reports whether the cluster has no majority because nodes were stopped.
	NoQuorumExplained() bool
}

// New returns the Leadership of a node that does not lead.
func New(c Config) *Leadership { return &Leadership{Config: c} }
