package service

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
)

// Service is the layer under the protocols. It makes, counts and publishes the decisions of every protocol. Its methods
// may be called from any goroutine.
type Service struct {
	// Limiter decides operations with the names that clients send.
	Limiter *limiter.Databases
	// Here are the policies and blocks everywhere as this node has them now, which may be behind other nodes. Those of
	// decisions, counters and previews may be.
	Here limiter.Common
	// Replica is the Limiter if it is a node of a cluster, else nil.
	Replica   limiter.Replica
	Redirects bool // a follower sends clients to the leader
	Log       *slog.Logger
	Version   string
	Started   time.Time

	Stats  *commandStats
	Wire   WireStats
	Book   *PolicyStats // outcomes by policy
	Recent *RecentDenials
	// Unsupported is what clients sent and weir refused because it does not support it.
	Unsupported *UnsupportedUses
	Events      *Events
	Slowlog     *slowlog
	Pause       *Pauser
	Waits       *WaitQueues
	// EventWaits counts the readers that wait for events.
	EventWaits EventWaits
	Batches    *batchPool
	RLS        RLSStats
	// PolicyFiles counts what the program read from the files of --policies.
	PolicyFiles SourceStats
	// EnvoyLimits counts what the program read from the files of --envoy-config or got from --envoy-xds.
	EnvoyLimits SourceStats

	Users         atomic.Pointer[acl.Users]
	Failed        *acl.FailedLogins
	ProtectedMode bool // without a password, answer only clients on this machine

	Check      *Command // RL.CHECK: checks of other protocols than RESP count as this command
	Inspect    *Command // RL.INSPECT, the permission that a user of the page needs
	MaxClients int
	Clients    atomic.Int64 // the number of sessions
	// SlowPath is above zero while every command must take the slow path: each monitor and each pause adds 1.
	SlowPath *atomic.Int32

	Draining atomic.Bool
	Stop     chan struct{} // closed when draining begins

	state  limiter.State
	reader limiter.Reader // copied for each client
}

// New returns a service that decides with lim. commands are all commands, in the order in which statistics show them.
// The caller sets Users and the exported settings before the first request.
func New(lim limiter.Limiter, commands []*Command, log *slog.Logger) *Service {
	replica, _ := lim.(limiter.Replica)
	slowPath := new(atomic.Int32)
	return &Service{
		Limiter: limiter.NewDatabases(lim),
		Here:    lim,
		state:   lim,
		reader:  limiter.NewReader(lim),
		Replica: replica,
		Log:     log,
		Started: time.Now(),
		Stats:   newCommandStats(commands),
		Book:    new(PolicyStats),
		Recent:  new(RecentDenials),

		Unsupported: newUnsupportedUses(),

		Events:   newEvents(slowPath),
		Slowlog:  newSlowlog(),
		Pause:    newPauser(slowPath),
		Waits:    newWaitQueues(),
		Batches:  newBatchPool(),
		Failed:   acl.NewFailedLogins(),
		SlowPath: slowPath,
		Stop:     make(chan struct{}),
	}
}

// Sleep waits for d, or until the server stops.
func (s *Service) Sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.Stop:
	}
}

// Leads reports whether this node leads any group. A server that runs alone does.
func (s *Service) Leads() bool { return s.Replica == nil || s.Replica.Topology().Led() > 0 }

// Groups returns the number of Raft groups. A server that runs alone is one.
func (s *Service) Groups() int {
	if s.Replica == nil {
		return 1
	}
	return len(s.Replica.Topology().Groups)
}

// Reader returns a reader of database 0 for one client.
func (s *Service) Reader() limiter.Reader { return s.reader }

// LenHere returns the number of keys of a database in the groups that this node has.
func (s *Service) LenHere(database int) int64 { return s.state.Len(database) }

// ReadIndexOf makes the following dry decisions of a limiter linearizable. They depend on no other group than its own.
func (s *Service) ReadIndexOf(name []byte) error {
	if s.Replica == nil {
		return nil
	}
	return s.Replica.ReadIndexOf(engine.SlotOf(name))
}

// ReadHere returns a view of the groups that this node has, and an upper bound of its age: 0 for a linearizable read.
// It asks no other node for keys, so that the page of one node does not load the others. Without a leader the page
// shows what the node has, because a dashboard matters most during a failure.
func (s *Service) ReadHere() (v limiter.View, staleMs int64) {
	v = limiter.ViewOf(s.state, 0)
	if s.Replica == nil || s.Replica.Topology().Leaderless() == 0 && s.Replica.ReadIndex() == nil {
		return v, 0
	}
	return v, CeilMs(s.Replica.StaleFor()) // taken before the read, so the state that is read is not older
}

// ReadKey calls use with a view that has a key and its policies, and with an upper bound of its age, as of ReadHere. It
// returns an error, and what use made of the last view is worth nothing, if the key is on other nodes that cannot be
// asked.
func (s *Service) ReadKey(key []byte, use func(v limiter.View, staleMs int64)) error {
	r, groups := s.Reader(), []int(nil)
	if s.Replica != nil {
		t := s.Replica.Topology()
		groups = []int{t.Base(), t.NumberOf(engine.SlotOf(key))}
		r.Stale = slices.ContainsFunc(groups, func(g int) bool { return t.Groups[g].Leader == "" })
	}
	read := func() error {
		return r.Read(func(*limiter.Topology) ([]int, bool) { return groups, false },
			func(v limiter.View, age time.Duration) { use(v, CeilMs(age)) })
	}
	err := read()
	if err != nil && !r.Stale {
		r.Stale = true
		err = read()
	}
	return err
}

// CeilMs rounds a duration up to milliseconds, so that an age is never too small.
func CeilMs(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// ClockBehind returns the clock correction that is still to be slewed.
func (s *Service) ClockBehind() time.Duration {
	at := s.Limiter.Now()
	return time.Duration(time.Now().UnixNano() - at.NowNs - at.WallOffsetNs)
}

// Storage describes the Limiter's disk, if it has one.
func (s *Service) Storage() (limiter.Storage, bool) {
	if reporter, ok := s.Limiter.Backend().(limiter.StorageReporter); ok {
		return reporter.Storage()
	}
	return limiter.Storage{}, false
}
