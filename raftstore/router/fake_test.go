package router

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
)

// fakeGroup is a group with a table of its own and without a log. It decides while err is nil.
type fakeGroup struct {
	Group // the methods that no test calls
	table *engine.Table
	slots hashslot.Range

	mu       sync.Mutex
	err      error // of the next calls
	calls    [][]engine.Op
	atomic   int
	changes  int // that it has followed
	topology limiter.Topology
	moved    []string // calls of TransferLeadership

	transferred time.Time
}

var at = engine.Stamp{NowNs: int64(time.Hour)}

func (g *fakeGroup) Now() engine.Stamp { return at }

func (g *fakeGroup) Decide(ops []engine.Op, out []engine.Decision) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, ops)
	if g.err != nil && !errors.Is(g.err, limiter.ErrUnknownOutcome) {
		return g.err
	}
	for i := range ops {
		if !ops[i].Within(g.slots) {
			return fmt.Errorf("slot %d is not in %v", engine.SlotOf(ops[i].Key), g.slots)
		}
	}
	g.table.Decide(at, ops, out)
	return g.err // of an answer that is lost
}

func (g *fakeGroup) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.atomic++
	if g.err == nil || errors.Is(g.err, limiter.ErrUnknownOutcome) { // the answer is lost
		g.table.DecideAtomic(at, ops, out)
		if ops[0].Code == engine.OpFollow && out[0].Status == engine.OK {
			g.changes += len(ops) - 1
		}
	}
	return g.err
}

func (g *fakeGroup) Clear() error {
	if err := g.failure(); err != nil {
		return err
	}
	g.table.Clear()
	return nil
}

// lead makes this node the leader of the group.
func (g *fakeGroup) lead() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.topology.Self, g.topology.Leader = "a", "a"
}

func (g *fakeGroup) ReadIndex() error { return g.failure() }

func (g *fakeGroup) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *fakeGroup) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

func (g *fakeGroup) Inspect(key []byte) (engine.Info, bool)    { return g.table.Inspect(at, key) }
func (g *fakeGroup) Len(database int) int64                    { return g.table.LenWithin(at, database, g.slots) }
func (g *fakeGroup) BlocksEverywhere() engine.BlocksEverywhere { return g.table.BlocksEverywhere(at) }
func (g *fakeGroup) FromBlock(key []byte) engine.FromBlock     { return g.table.FromBlock(at, key) }
func (g *fakeGroup) Policies() *engine.Policies                { return g.table.Policies() }
func (g *fakeGroup) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	return g.table.Holds(at, policy, key, cursor, count)
}

// Events reads the log of events; see engine.Table.Events.
func (g *fakeGroup) Events(_ int, after uint64, n int) ([]engine.Event, engine.EventsPosition, <-chan struct{}) {
	return g.table.Events(after, n)
}

// EventsBefore returns the cursor of the newest event before a time; see engine.Table.EventsBefore.
func (g *fakeGroup) EventsBefore(_ int, atMs int64) uint64 { return g.table.EventsBefore(atMs) }
func (g *fakeGroup) RandomKey(database int) []byte         { return g.table.RandomKey(at, 7, database) }
func (g *fakeGroup) ClearDatabase(database int) error {
	return g.Decide([]engine.Op{engine.Flush(database, g.slots.First)}, make([]engine.Decision, 1))
}
func (g *fakeGroup) Stats() engine.Stats { return g.table.StatsWithin(at, g.slots) }

func (g *fakeGroup) SharedVersion() uint64       { return g.table.SharedVersion() }
func (g *fakeGroup) Shared() *engine.SharedItems { return g.table.Shared(at) }

func (g *fakeGroup) Top(v engine.Verdict, n int) []engine.Heavy { return g.table.Top(at, v, n) }

func (g *fakeGroup) Scan(cursor uint64, count int, visit func([]byte, engine.Algorithm)) uint64 {
	return g.table.Scan(at, cursor, count, visit)
}

func (g *fakeGroup) Topology() *limiter.Topology {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.topology
	return &t
}

func (g *fakeGroup) LastTransfer() time.Time { return g.transferred }

func (g *fakeGroup) TransferLeadership(to string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return g.err
	}
	g.moved = append(g.moved, to)
	return nil
}

func (g *fakeGroup) AddNode(id, raftAddr string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.topology.Nodes = append(slices.Clone(g.topology.Nodes), limiter.Member{ID: id, RaftAddr: raftAddr})
	return nil
}

func (g *fakeGroup) RemoveNode(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.topology.Nodes = slices.DeleteFunc(slices.Clone(g.topology.Nodes),
		func(m limiter.Member) bool { return m.ID == id })
	return nil
}

func (g *fakeGroup) LookAtMembers() {}

func (g *fakeGroup) knows(id string) bool { return g.Topology().Member(id) != nil }

// liveGroups returns replicas of groups that have not ended.
func liveGroups(groups ...Group) *[]replica {
	var all []replica
	for _, g := range groups {
		all = append(all, replica{live: g})
	}
	return &all
}

// newTest returns a router in front of fake groups. No group has a leader, so its background work changes nothing.
func newTest(t *testing.T, n int) (*Router, []*fakeGroup) {
	var fakes []*fakeGroup
	var groups []Group
	for i := range n {
		g := &fakeGroup{table: engine.NewTable(engine.Options{}), slots: hashslot.OfGroup(i, n)}
		fakes, groups = append(fakes, g), append(groups, g)
	}
	r := New(*liveGroups(groups...), 0, slog.New(slog.DiscardHandler), faults.Set{})
	r.bringFor = 0
	t.Cleanup(r.Close)
	return r, fakes
}

func quota(key string, most int64) engine.Op {
	return engine.Op{Key: []byte(key), Cost: 1,
		Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}}
}

func decide(t *testing.T, r *Router, ops ...engine.Op) []engine.Decision {
	out := make([]engine.Decision, len(ops))
	require.NoError(t, r.Decide(ops, out))
	return out
}

// keysOf returns n keys of a group.
func keysOf(r *Router, group, n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint("k", i); r.groupOf([]byte(key)) == group {
			keys = append(keys, key)
		}
	}
	return keys
}
