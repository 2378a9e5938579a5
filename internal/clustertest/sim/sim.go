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

	"github.com/weir-project/weir/internal/faults"
)

// Config says what to simulate.
type Config struct {
	Seed   uint64
	Nodes  int
	Faults faults.Set // mistakes that are to be found
	Logger *slog.Logger

	// refundsWithoutID is a mistake of clients: they repeat a refund and send no ID with it.
	refundsWithoutID bool

	rivals  bool          // every node takes itself for the one that founds the cluster
	weights weights       // nil: everything
	length  time.Duration // 0: usualLength
}

const (
	// usualLength is how long things fail: ten to a hundred faults.
	usualLength = 14 * time.Second
	// settleIn is how long the clients work before the first fault.
	settleIn = time.Second
	// clients is how many ask at the same time.
	clients = 6
)

// Simulation is one run.
type Simulation struct {
	config   Config
	logger   *slog.Logger
	rng      *rand.Rand // of the plan; only the run's own goroutine uses it
	began    time.Time
	net      *network
	founders []string
	history  history
	books    books
	report   *Report
	seen     states

	mu    sync.Mutex
	hosts []*host

	mute    bool        // the members did not answer
	quiet   atomic.Bool // the clients are to stop
	losing  atomic.Bool // a machine that lost its disk is not back yet
	tasks   sync.WaitGroup
	zombies sync.WaitGroup
}

// Run simulates a cluster and fills in the report. It must be called in a bubble of
// testing/synctest, as its only content.
func Run(c Config, r *Report) {
	newSimulation(c, r).run()
}

func newSimulation(c Config, r *Report) *Simulation {
	return &Simulation{
		config: c, logger: c.Logger, report: r, net: newNetwork(), began: time.Now(),
		rng: rand.New(rand.NewPCG(c.Seed, 0x5eed)), seen: states{}, books: newBooks(),
	}
}

func (s *Simulation) run() {
	s.start()
	if !s.answers() {
		s.violation("the cluster was not founded within %v", maxRecovery)
	} else {
		s.work()
	}
	s.end()
	s.report.Decisions = s.history.count(acked)
	s.report.Reads, s.report.StaleReads = s.history.countReads()
	s.report.Refused, s.report.Unknown = s.history.count(refused), s.history.count(unknown)
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

// foundersFor returns the addresses that a machine is told to join, the one that founds the
// cluster first.
func (s *Simulation) foundersFor(h *host) []string {
	i := slices.Index(s.founders, h.addr)
	if !s.config.rivals || i < 0 {
		return s.founders
	}
	return append(slices.Clone(s.founders[i:]), s.founders[:i]...)
}

// work lets clients work while things fail, and judges what they saw.
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
	time.Sleep(settleIn)
	s.quiet.Store(true)
	working.Wait()
	s.tasks.Wait()
	s.agree()
	s.judge(s.ask)
	s.closeBooks()
}

// end closes everything, so that nothing is left in the bubble.
func (s *Simulation) end() {
	for _, h := range s.machines() {
		if p := h.running(); p != nil {
			s.zombies.Go(p.stop)
		}
	}
	s.zombies.Wait()
	time.Sleep(time.Minute) // what was waiting for a deadline has met it
}

func addrOf(i int) string { return fmt.Sprintf("host%d:1", i) }

// newHost adds a machine with an empty disk.
func (s *Simulation) newHost() *host {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.hosts)
	mem := vfs.NewCrashableMem()
	h := &host{
		sim: s, id: fmt.Sprint("n", i), addr: addrOf(i), mem: mem,
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

// anyProcess returns a process that takes calls, or nil.
func (s *Simulation) anyProcess(rng *rand.Rand) *process {
	hosts := s.machines()
	for _, i := range rng.Perm(len(hosts)) {
		if p := hosts[i].running(); p != nil && !p.drain.Load() {
			return p
		}
	}
	return nil
}

// elapsed is true time since the start.
func (s *Simulation) elapsed() time.Duration { return time.Since(s.began) }

// event notes what happened.
func (s *Simulation) event(format string, args ...any) {
	line := fmt.Sprintf("%9.4fs  ", s.elapsed().Seconds()) + fmt.Sprintf(format, args...)
	s.report.mu.Lock()
	s.report.Trace = append(s.report.Trace, line)
	s.report.mu.Unlock()
	s.logger.Info(line)
}

// violation notes a broken promise, at once: the run may not come to its end.
func (s *Simulation) violation(format string, args ...any) {
	line := fmt.Sprintf("seed %d, %d nodes: ", s.config.Seed, s.config.Nodes) + fmt.Sprintf(format, args...)
	s.event("VIOLATION: %s", line)
	if s.config.Faults == (faults.Set{}) {
		fmt.Fprintln(os.Stderr, line)
	}
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	s.report.Violations = append(s.report.Violations, line)
}

// atRest waits until everything in the bubble waits: nothing is being applied.
func (s *Simulation) atRest() { synctest.Wait() }
