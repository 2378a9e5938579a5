package sim

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/clustertest/ledger"
	"github.com/weir-project/weir/internal/faults"
)

// Config describes a simulation.
type Config struct {
	Seed   uint64
	Nodes  int
	Groups int // Raft groups; 0: one
	// Replicas is the number of nodes that have a replica of each group; 0: every node has one of every group.
	Replicas int
	Faults   faults.Set // mistakes that the run must detect
	Logger   *slog.Logger

	// refundsWithoutID is a mistake of clients: they repeat a refund without an ID.
	refundsWithoutID bool

	shared bool // the clients change what all groups share, and nothing else

	rivals  bool          // every node believes that it founds the cluster
	weights weights       // nil: everything
	length  time.Duration // 0: usualLength
}

const (
	// usualLength is the time during which faults begin. A plan has ten to a hundred of them.
	usualLength = 14 * time.Second
	// settleIn is how long the clients work before the first fault.
	settleIn = time.Second
	// clients is the number of concurrent clients.
	clients = 6
	// zones is the number of zones that the machines are in, in turn.
	zones = 3
)

// Simulation is one run.
type Simulation struct {
	config   Config
	logger   *slog.Logger
	rng      *rand.Rand // of the plan; only the run's own goroutine uses it
	began    time.Time
	net      *network
	founders []string
	limits   map[byte][]*ledger.Ring // by the kind of limiter
	books    *ledger.Books
	report   *Report
	replicas ledger.Replicas

	mu    sync.Mutex
	hosts []*host

	moves     []lastMove // by group
	operators sync.WaitGroup
	healed    atomic.Bool // operators must stop
	replacing atomic.Bool // a machine that lost its disk has not got its replicas back: no move begins

	sharedSeen map[uint64]string // the shared items of groups, by version
	clears     atomic.Int64      // begun and ended calls of FLUSHALL

	mute    bool        // a member gave no answer in time: no member is asked any more
	quiet   atomic.Bool // the clients must stop
	losing  atomic.Bool // a machine that lost its disk has not rejoined yet
	tasks   sync.WaitGroup
	crashed sync.WaitGroup
}

// Run simulates a cluster and fills in the report. It must be the only content of a testing/synctest bubble.
func Run(c Config, r *Report) {
	newSimulation(c, r).run()
}

func newSimulation(c Config, r *Report) *Simulation {
	s := &Simulation{
		config: c, logger: c.Logger, report: r, net: newNetwork(), began: time.Now(),
		rng: rand.New(rand.NewPCG(c.Seed, 0x5eed)), limits: newLimits(c.Groups), books: ledger.NewBooks(holdTTL),
		sharedSeen: map[uint64]string{}, moves: make([]lastMove, max(c.Groups, 1)),
	}
	s.books.Grow()
	if c.Groups > 1 {
		s.books.ByGroup()
	}
	return s
}

func (s *Simulation) run() {
	s.start()
	if !s.answers() {
		s.violation("the cluster was not founded within %v", maxRecovery)
	} else {
		s.work()
	}
	s.end()
	s.report.Comparison = s.replicas.Compared()
}

// start starts the founders.
func (s *Simulation) start() {
	for i := range s.config.Nodes {
		s.founders = append(s.founders, addrOf(i))
	}
	for range s.config.Nodes {
		s.newHost().start()
	}
}

// foundersFor returns the addresses that a machine is told to join. The founder of the cluster comes first.
func (s *Simulation) foundersFor(h *host) []string {
	i := slices.Index(s.founders, h.addr)
	if !s.config.rivals || i < 0 {
		return s.founders
	}
	return append(slices.Clone(s.founders[i:]), s.founders[:i]...)
}

// work runs clients during the faults, and judges their histories.
func (s *Simulation) work() {
	s.makePolicies()
	var working sync.WaitGroup
	for i := range clients {
		c := &client{sim: s, number: i, rng: rand.New(rand.NewPCG(s.config.Seed, uint64(i)))}
		working.Go(c.run)
	}
	time.Sleep(settleIn)
	s.fail()
	s.heal()
	if !s.answers() {
		s.violation("no answer %v after everything healed", maxRecovery)
	}
	s.finishMoves()
	time.Sleep(settleIn)
	s.quiet.Store(true)
	working.Wait()
	s.tasks.Wait()
	s.agree()
	if s.config.shared {
		s.agreeOnShared()
		return
	}
	s.judge()
	s.closeBooks()
}

// end closes everything, so that no goroutine stays in the bubble.
func (s *Simulation) end() {
	for _, h := range s.machines() {
		if p := h.running(); p != nil {
			s.crashed.Go(p.stop)
		}
	}
	s.crashed.Wait()
	time.Sleep(time.Minute) // all deadlines have passed by then
}

func addrOf(i int) string { return fmt.Sprintf("host%d:1", i) }

// newHost adds a machine with an empty disk.
func (s *Simulation) newHost() *host {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.hosts)
	mem := vfs.NewCrashableMem()
	h := &host{
		sim: s, id: fmt.Sprint("n", i), addr: addrOf(i), zone: fmt.Sprint("z", i%zones), mem: mem,
		clock: newClock(s.rng.Int64N(2*maxDriftPPM+1)-maxDriftPPM, s.rng.Int64N(1<<50)),
	}
	s.hosts = append(s.hosts, h)
	return h
}

func (s *Simulation) machines() []*host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*host(nil), s.hosts...)
}

// anyProcess returns a process that accepts calls, or nil.
func (s *Simulation) anyProcess(rng *rand.Rand) *process {
	hosts := s.machines()
	for _, i := range rng.Perm(len(hosts)) {
		if p := hosts[i].running(); p != nil && !p.drain.Load() {
			return p
		}
	}
	return nil
}

// elapsed returns the true time since the start.
func (s *Simulation) elapsed() time.Duration { return time.Since(s.began) }

// event records an event.
func (s *Simulation) event(format string, args ...any) {
	line := fmt.Sprintf("%9.4fs  ", s.elapsed().Seconds()) + fmt.Sprintf(format, args...)
	s.report.mu.Lock()
	s.report.Trace = append(s.report.Trace, line)
	s.report.mu.Unlock()
	s.logger.Info(line)
}

// violation records a broken guarantee at once, because the run may not reach its end.
func (s *Simulation) violation(format string, args ...any) {
	line := fmt.Sprintf("seed %d, %d nodes, %d groups, %d replicas: ", s.config.Seed, s.config.Nodes, s.groups(),
		s.config.Replicas) +
		fmt.Sprintf(format, args...)
	s.event("VIOLATION: %s", line)
	if s.config.Faults == (faults.Set{}) {
		fmt.Fprintln(os.Stderr, line)
	}
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	s.report.Violations = append(s.report.Violations, line)
}

// atRest waits until every goroutine in the bubble is blocked, so that no entry is being applied.
func (s *Simulation) atRest() { synctest.Wait() }

// groups returns the number of Raft groups of the cluster.
func (s *Simulation) groups() int { return max(s.config.Groups, 1) }

// probes returns a counted key of each group.
func (s *Simulation) probes() (keys []string) {
	if s.groups() == 1 {
		return []string{"n0"}
	}
	for i := range s.groups() {
		keys = append(keys, fmt.Sprintf("%c{%s}", counted, hashslot.Tag(hashslot.OfGroup(i, s.groups()).First)))
	}
	return keys
}
