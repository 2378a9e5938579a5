package router

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
)

// Group is one Raft group as this node sees it: a *raftstore.Node.
type Group interface {
	limiter.Limiter
	limiter.StorageReporter
	limiter.ConsensusReporter
	limiter.Archiver
	reachable
	// SharedVersion and Shared read the policies and the blocks everywhere; see engine.SharedItems.
	SharedVersion() uint64
	Shared() *engine.SharedItems
	// LookAtMembers brings the members of Topology up to date.
	LookAtMembers()
	// The following methods are those of limiter.Replica.
	StaleFor() time.Duration
	Snapshot() error
	Digest() (index, hash uint64)
}

// Router is a Limiter in front of all groups of a cluster. Its methods may be called from any goroutine.
type Router struct {
	reads
	groups atomic.Pointer[[]replica] // in the order of their slots; replaced when a group ends, and never changed
	// replicas is the number of nodes that shall have a replica of each group; 0: every node has one of every group.
	replicas int
	log      *slog.Logger
	faults   faults.Set
	plans    sync.Pool // of *plan
	views    viewCache

	bringFor time.Duration // how long a command waits for groups that do not have it yet
	adopted  atomic.Uint64 // the last version that this router has seen all groups have; 0 after a start

	stop  chan struct{}
	tasks sync.WaitGroup
}

var (
	_ limiter.Limiter           = (*Router)(nil)
	_ limiter.Replica           = (*Node)(nil)
	_ limiter.StorageReporter   = (*Node)(nil)
	_ limiter.ConsensusReporter = (*Router)(nil)
)

// New returns a router in front of the groups, which own equal ranges of slots in their order. Their number must be
// valid for package hashslot, and one must be live. Close ends its goroutines, and not the groups.
func New(groups []replica, replicas int, log *slog.Logger, mistakes faults.Set) *Router {
	if !hashslot.ValidGroups(len(groups)) {
		panic("router: the number of groups must be a power of two")
	}
	r := &Router{replicas: replicas, log: log, faults: mistakes, stop: make(chan struct{}), bringFor: bringFor}
	r.reads.of = r
	r.groups.Store(&groups)
	r.plans.New = func() any { return &plan{counts: make([]int, len(groups))} }
	if r.only() == nil {
		r.tasks.Go(r.followFirst)
		r.tasks.Go(r.spreadLeaders)
	}
	return r
}

// Close ends the goroutines of the router.
func (r *Router) Close() {
	close(r.stop)
	r.tasks.Wait()
}

// all returns the groups in the order of their slots.
func (r *Router) all() []replica { return *r.groups.Load() }

// only returns the group that owns all slots, or nil if several groups share them. It decides operations on keys of
// different slots as one step, and changes of policies without the others.
func (r *Router) only() Group {
	if groups := r.all(); len(groups) == 1 {
		return groups[0].live
	}
	return nil
}

// groupOf returns the number of the group that owns the slot of a key.
func (r *Router) groupOf(name []byte) int { return r.ofSlot(engine.SlotOf(name)) }

// route returns the number of the group that decides the operations on a slot: the owner of the slot. That group
// checks the slot again.
func (r *Router) route(slot uint16) int {
	if r.faults.Has(faults.StaleMap) && rand.IntN(2) == 0 {
		return hashslot.Group(slot, len(r.all())/2)
	}
	return r.ofSlot(slot)
}

// Group returns a group by its number, or nil if it has ended on this node or is away.
func (r *Router) Group(number int) Group { return r.all()[number].live }

// forAll calls each with every group at the same time, wherever it is, and returns the errors in the order of the
// groups.
func (r *Router) forAll(each func(i int, g reachable) error) []error {
	errs := make([]error, len(r.all()))
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() {
			errs[i] = r.reach(i, func(g reachable) error { return each(i, g) })
		})
	}
	wait.Wait()
	return errs
}
