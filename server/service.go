package server

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
)

// service is the layer under the protocols: whichever way a decision comes, it is made,
// counted and told here. Its methods may be called from any goroutine.
type service struct {
	lim limiter.Limiter
	// replica is lim where it is one of several nodes, else nil.
	replica   limiter.Replica
	redirects bool // a node of a cluster that does not lead sends clients to the leader
	log       *slog.Logger
	version   string
	started   time.Time

	stats   *commandStats
	wire    wireStats
	book    *policyBook
	recent  *recentDenials
	hub     *eventHub
	slowlog *slowlog
	pause   *pauser
	waits   *waitLines
	batches *batchPool
	rls     rlsStats

	users         atomic.Pointer[acl.Users]
	failed        *acl.FailedLogins
	protectedMode bool // where nobody needs a password, answer only clients on this machine

	check      *commandInfo // RL.CHECK, which protocols other than RESP ask for
	inspect    *commandInfo // RL.INSPECT, which who looks at the page must be allowed
	maxClients int
	clients    atomic.Int64 // sessions
	// attention is above zero while every command needs a closer look: someone
	// monitors, or clients are paused.
	attention *atomic.Int32

	draining atomic.Bool
	stop     chan struct{} // closed when draining begins
}

func newService(lim limiter.Limiter, commands []*commandInfo, log *slog.Logger) *service {
	replica, _ := lim.(limiter.Replica)
	attention := new(atomic.Int32)
	return &service{
		lim:       lim,
		replica:   replica,
		log:       log,
		started:   time.Now(),
		stats:     newCommandStats(commands),
		book:      new(policyBook),
		recent:    new(recentDenials),
		hub:       newEventHub(attention),
		slowlog:   newSlowlog(),
		pause:     newPauser(attention),
		waits:     newWaitLines(),
		batches:   newBatchPool(),
		failed:    acl.NewFailedLogins(),
		attention: attention,
		stop:      make(chan struct{}),
	}
}

// sleep waits, though not longer than the server runs.
func (s *service) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.stop:
	}
}

// leads says whether this node is the master, which one that stands alone is.
func (s *service) leads() bool { return s.replica == nil || s.replica.Topology().Leads() }

// readIndex makes the reads that follow linearizable; see limiter.Replica.
func (s *service) readIndex() error {
	if s.replica == nil {
		return nil
	}
	return s.replica.ReadIndex()
}

// readForPeople prepares for a read by the page, and returns how old the state may be: 0
// for a linearizable read. Without a leader the page shows this node's own state, because
// a dashboard is needed most when something is wrong.
func (s *service) readForPeople() (staleMs int64) {
	r := s.replica
	if r == nil || r.Topology().Leader != "" && r.ReadIndex() == nil {
		return 0
	}
	return ceilMs(r.StaleFor())
}

// ceilMs rounds a duration up to milliseconds, so that an age is never told too
// small.
func ceilMs(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// clockBehind is what is left to slew.
func (s *service) clockBehind() time.Duration {
	at := s.lim.Now()
	return time.Duration(time.Now().UnixNano() - at.NowNs - at.WallOffsetNs)
}

// storage describes the Limiter's disk, if it has one.
func (s *service) storage() (limiter.Storage, bool) {
	if reporter, ok := s.lim.(limiter.StorageReporter); ok {
		return reporter.Storage()
	}
	return limiter.Storage{}, false
}
