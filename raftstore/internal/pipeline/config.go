package pipeline

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// Config has what a Pipeline needs.
type Config struct {
	Heartbeat    time.Duration
	MaxAge       time.Duration // of a decision; see host.Options.MaxDecisionAge
	MaxMemory    int64         // the equal part of this group; 0: no bound
	DenyWhenFull bool
	OnEntry      func(host.Entry) // see host.Options; nil: no calls

	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Queue      *queue.Queue
	Leadership *leadership.Leadership
	Confirms   Confirms
	Reads      Reads
	Format     Format
	Agreed     *atomic.Int32 // the newest form that may be written
	Disputed   *atomic.Bool  // a divergence check is under way
	Budget     Budget
	Peers      Peers
	Life       *timers.Lifetime
	Log        *slog.Logger
	Faults     faults.Set
	Reach      func(faults.Point)
}

// Confirms asks a majority whether this node still leads; see quorum.Rounds.
type Confirms interface {
	Join(term uint64) *quorum.Round
	Await(mine *quorum.Round, term uint64) error
	Expire(maxAge time.Duration)
}

// Reads are the reads of this node; see readindex.Reads.
type Reads interface {
	ReadIndex() error
	AwaitCommitted() error
	StillLeads(r *leadership.Term) error
	LookStamp() engine.Stamp
}

// Format chooses the forms of entries; see format.Format.
type Format interface {
	CheckReadable(ops []engine.Op) error
	Of(forms wire.Forms) byte
}

// Budget divides the memory of the process among its groups; see budget.Budget.
type Budget interface {
	Join(table func() budget.Table, evict func()) *budget.Share
}

// Peers connects a Pipeline to the leader.
type Peers interface {
	// Client returns the connection to a member, or nil for this node and unknown nodes.
	Client(id string) *peer.Client
}

// New returns the Pipeline of a group.
func New(c Config) *Pipeline {
	p := &Pipeline{Config: c, Proposals: make(chan Proposal, queue.MaxInFlight), evictions: newEvictions()}
	p.Memory = c.Budget.Join(func() budget.Table { return c.FSM.Table.Load() }, p.EvictIfOver)
	return p
}
