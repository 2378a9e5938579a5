package pipeline

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestOperationsThatNeedMemory checks which operations need memory. The others are still admitted when memory is short.
func TestOperationsThatNeedMemory(t *testing.T) {
	table, at := engine.NewTable(engine.Options{Shards: 1}), engine.Stamp{NowNs: 1e9}
	take := func(key string, a engine.Algorithm) engine.Op {
		return engine.Op{Key: []byte(key), Cost: 1, Limit: engine.Limit{
			Algorithm: a, Max: 10, WindowNs: 1e12, Rate: engine.Rate{Units: 1, PerNs: 1e12},
			Steps: engine.MakeSteps([]engine.Step{{Threshold: 5, PenaltyNs: 1}}),
		}}
	}
	check := func(key string) engine.Op {
		return engine.Op{Code: engine.OpCheck, Text: []byte("p"), Key: []byte(key), Cost: 1}
	}
	policy := engine.Policy{Limits: []engine.PolicyLimit{{Limit: oneBucket.Limit}}}
	done := make([]engine.Decision, 3)
	table.Decide(at, []engine.Op{
		take("known", engine.TokenBucket),
		{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{Terms: &policy}}, check("known"),
	}, done)
	for _, d := range done {
		require.Equal(t, engine.OK, d.Status)
	}
	with := func(op engine.Op, change func(op *engine.Op)) engine.Op {
		change(&op)
		return op
	}
	for name, c := range map[string]struct {
		op    engine.Op
		grows bool
	}{
		"a new key":          {take("new", engine.TokenBucket), true},
		"a known key":        {take("known", engine.TokenBucket), false},
		"a known window":     {take("known", engine.FixedWindow), false},
		"a log's next event": {take("known", engine.SlidingLog), true},
		"one more lease":     {take("known", engine.Concurrency), true},
		"one more strike":    {take("known", engine.Strike), true},
		"an id to remember": {with(take("known", engine.TokenBucket),
			func(op *engine.Op) { op.ID = []byte("id") }), true},
		"a release with an id":   {engine.Op{Code: engine.OpRelease, Key: []byte("known"), ID: []byte("id")}, true},
		"a release":              {engine.Op{Code: engine.OpRelease, Key: []byte("new")}, false},
		"a reset":                {engine.Op{Code: engine.OpReset, Key: []byte("new")}, false},
		"a look":                 {with(take("new", engine.TokenBucket), func(op *engine.Op) { op.Dry = true }), false},
		"a look at a log":        {with(take("known", engine.SlidingLog), func(op *engine.Op) { op.Cost = 0 }), false},
		"a block of a new key":   {engine.Op{Code: engine.OpBlock, Key: []byte("new")}, true},
		"a block everywhere":     {engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("new")}, true},
		"a block of a known key": {engine.Op{Code: engine.OpBlock, Key: []byte("known")}, false},
		"a check of a new key":   {check("new"), true},
		"a check of a known key": {check("known"), false},
		"a look by a policy":     {with(check("new"), func(op *engine.Op) { op.Dry = true }), false},
		"a check of no cost":     {with(check("new"), func(op *engine.Op) { op.Cost = 0 }), false},
		"a new count":            {engine.Op{Code: engine.OpIncr, Key: []byte("new")}, true},
		"a known count":          {engine.Op{Code: engine.OpIncr, Key: []byte("known")}, false},
		"a known script": {engine.Op{Code: engine.OpScript, Key: []byte("known"),
			Script: &engine.Script{ID: engine.UluleIncr}}, false},
		"a script's log": {engine.Op{Code: engine.OpScript, Key: []byte("known"),
			Script: &engine.Script{ID: engine.SlidingSet}}, true},
	} {
		require.Equal(t, c.grows, grows(&c.op, table, at), name)
	}
}

// TestNoMemoryOnlyWithoutVictims checks when a leader has no memory for new keys. If it may evict, memory must be
// full and the last search must have found no victim.
func TestNoMemoryOnlyWithoutVictims(t *testing.T) {
	table := engine.NewTable(engine.Options{Shards: 1})
	fill := func(keys int) {
		for i := range keys {
			op := engine.Op{Code: engine.OpBlock, Key: make([]byte, 1+i%engine.MaxKeyLen), TTLNs: engine.Never}
			op.Key[0] = byte(i >> 9)
			table.Decide(engine.Stamp{NowNs: 1e9}, []engine.Op{op}, make([]engine.Decision, 1))
		}
	}
	fill(1000)
	bound := 2 * table.CompactBytes()
	p := New(Config{MaxMemory: bound, FSM: machineWith(table), Budget: budget.New(bound, 1, false)})
	p.evictions.noVictims.Store(true)
	require.False(t, p.memoryExhausted(), "memory is not full")
	fill(4000)
	require.True(t, p.memoryExhausted())
	p.evictions.noVictims.Store(false)
	require.False(t, p.memoryExhausted(), "a search may still find a victim")
	p.DenyWhenFull = true
	require.True(t, p.memoryExhausted(), "a leader that may not evict must refuse")
}

// machineWith returns a state machine with a table.
func machineWith(table *engine.Table) *fsm.FSM {
	m := &fsm.FSM{}
	m.Table.Store(table)
	return m
}

// tableOf is a table of a number of bytes.
type tableOf int64

func (t tableOf) MemoryBytes() int64      { return int64(t) }
func (t tableOf) CompactAbove(_, _ int64) {}
func (t tableOf) Compact(int)             {}

// TestNoMemoryBeyondTheReservedPart checks that a group without victims takes no memory beyond its reserved part, if the other
// groups have used up the rest and do not evict.
func TestNoMemoryBeyondTheReservedPart(t *testing.T) {
	table := engine.NewTable(engine.Options{Shards: 1})
	for i := range 1000 {
		key := fmt.Appendf(nil, "%0*d", 1+i%engine.MaxKeyLen, i)
		op := engine.Op{Code: engine.OpBlock, Key: key, TTLNs: engine.Never}
		table.Decide(engine.Stamp{NowNs: 1e9}, []engine.Op{op}, make([]engine.Decision, 1))
	}
	size := table.CompactBytes()
	for name, c := range map[string]struct {
		bound, others int64
		exhausted     bool
	}{
		"memory is left":             {2 * size, 0, false},
		"the others have all":        {2 * size, 2 * size, true},
		"it has no more than is its": {8 * size, 8 * size, false},
	} {
		all := budget.New(c.bound, 2, true)
		all.Join(func() budget.Table { return tableOf(c.others) }, func() {})
		p := New(Config{MaxMemory: c.bound / 2, FSM: machineWith(table), Budget: all})
		require.False(t, p.memoryExhausted(), name)
		p.evictions.noVictims.Store(true)
		require.Equal(t, c.exhausted, p.memoryExhausted(), name)
		if !c.exhausted {
			p.evict(queue.NewBatch(wire.Decide, 0))
			require.False(t, p.evictions.noVictims.Load(), "%s: the next search may find some", name)
		}
		p.evictions.add(0, size) // evictions in flight count as done
		require.Zero(t, p.poolExcess(0), name)
	}
}
