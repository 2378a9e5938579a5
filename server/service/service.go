package service

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
)

// Service is the layer under the protocols: whichever way a decision comes, it is made,
// counted and told here. Its methods may be called from any goroutine.
type Service struct {
	Limiter limiter.Limiter
	// Replica is lim where it is one of several nodes, else nil.
	Replica   limiter.Replica
	Redirects bool // a node of a cluster that does not lead sends clients to the leader
	Log       *slog.Logger
	Version   string
	Started   time.Time

	Stats   *commandStats
	Wire    WireStats
	Book    *PolicyStats
	Recent  *RecentDenials
	Events  *Events
	Slowlog *slowlog
	Pause   *Pauser
	Waits   *WaitQueues
	Batches *batchPool
	RLS     RLSStats

	Users         atomic.Pointer[acl.Users]
	Failed        *acl.FailedLogins
	ProtectedMode bool // where nobody needs a password, answer only clients on this machine

	Check      *Command // RL.CHECK, which protocols other than RESP ask for
	Inspect    *Command // RL.INSPECT, which who looks at the page must be allowed
	MaxClients int
	Clients    atomic.Int64 // sessions
	// Attention is above zero while every command needs a closer look: someone
	// monitors, or clients are paused.
	Attention *atomic.Int32

	Draining atomic.Bool
	Stop     chan struct{} // closed when draining begins
}

func New(lim limiter.Limiter, commands []*Command, log *slog.Logger) *Service {
	replica, _ := lim.(limiter.Replica)
	attention := new(atomic.Int32)
	return &Service{
		Limiter:   lim,
		Replica:   replica,
		Log:       log,
		Started:   time.Now(),
		Stats:     newCommandStats(commands),
		Book:      new(PolicyStats),
		Recent:    new(RecentDenials),
		Events:    newEvents(attention),
		Slowlog:   newSlowlog(),
		Pause:     newPauser(attention),
		Waits:     newWaitLines(),
		Batches:   newBatchPool(),
		Failed:    acl.NewFailedLogins(),
		Attention: attention,
		Stop:      make(chan struct{}),
	}
}

// Sleep waits, though not longer than the server runs.
func (s *Service) Sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.Stop:
	}
}

// Leads says whether this node is the master, which one that stands alone is.
func (s *Service) Leads() bool { return s.Replica == nil || s.Replica.Topology().Leads() }

// ReadIndex makes the reads that follow linearizable; see limiter.Replica.
func (s *Service) ReadIndex() error {
	if s.Replica == nil {
		return nil
	}
	return s.Replica.ReadIndex()
}

// ReadForPeople prepares for a read by the page, and returns how old the state may be: 0
// for a linearizable read. Without a leader the page shows this node's own state, because
// a dashboard is needed most when something is wrong.
func (s *Service) ReadForPeople() (staleMs int64) {
	r := s.Replica
	if r == nil || r.Topology().Leader != "" && r.ReadIndex() == nil {
		return 0
	}
	return CeilMs(r.StaleFor())
}

// CeilMs rounds a duration up to milliseconds, so that an age is never told too
// small.
func CeilMs(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// ClockBehind is what is left to slew.
func (s *Service) ClockBehind() time.Duration {
	at := s.Limiter.Now()
	return time.Duration(time.Now().UnixNano() - at.NowNs - at.WallOffsetNs)
}

// Storage describes the Limiter's disk, if it has one.
func (s *Service) Storage() (limiter.Storage, bool) {
	if reporter, ok := s.Limiter.(limiter.StorageReporter); ok {
		return reporter.Storage()
	}
	return limiter.Storage{}, false
}
