package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/internal/race"
)

// TestDrainIsBoundedInBytes checks that a chunk of large logs is no longer than its bound plus one log, whatever
// number of entries it may have.
func TestDrainIsBoundedInBytes(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const keys, units = 10, 100_000
	table := NewTable(Options{Shards: 1, TrackChanges: true})
	out := make([]Decision, 1)
	for k := range keys {
		limit := Limit{Algorithm: SlidingLog, WindowNs: MaxWindowNs, Max: units}
		for n := range int64(units) {
			op := Op{Key: []byte{byte(k)}, Limit: limit, Cost: 1}
			table.Decide(Stamp{NowNs: 1e18 + (int64(k*units)+n)*3e9}, []Op{op}, out)
		}
	}
	chunks, longest, largest := 0, 0, 0
	require.NoError(t, table.Drain(1<<20, func(changes []Change) error {
		bytes := 0
		for _, c := range changes {
			bytes += len(c.Value)
			largest = max(largest, len(c.Value))
		}
		chunks, longest = chunks+1, max(longest, bytes)
		return nil
	}))
	require.Greater(t, chunks, 1)
	require.LessOrEqual(t, longest, store.DrainBytes+largest)
}

// TestADrainIsOneMoment checks that what several drains have handed out is the state of one moment, while decisions go
// on. A batch takes one unit from each key, so all keys have used the same. A check of a policy writes an event for each
// tenth of the limit, so a key has as many events as tenths that it has used.
func TestADrainIsOneMoment(t *testing.T) {
	limit := Limit{Algorithm: FixedWindow, WindowNs: MaxWindowNs, Max: 1000}
	tenths := &Policy{Limits: []PolicyLimit{{Limit: limit, Notify: "\x0a\x14\x1e\x28\x32\x3c\x46\x50"}}}
	var batch, check []Op
	for i := range 8 {
		key := fmt.Append(nil, "key", i)
		batch = append(batch, Op{Key: key, Limit: limit, Cost: 1})
		check = append(check, Op{Code: OpCheck, Text: []byte("tenths"), Key: key, Cost: 20})
	}
	used := func(table *Table, name []byte) int64 {
		info, found := table.Inspect(drainAt, name)
		require.True(t, found)
		return info.Limit.Max - info.Remaining
	}
	t.Run("batch", func(t *testing.T) {
		drainBeside(t, batch, (*Table).DecideAtomic, nil, func(table *Table) {
			for _, op := range batch {
				require.Equal(t, used(table, batch[0].Key), used(table, op.Key))
			}
		})
	})
	t.Run("events", func(t *testing.T) {
		drainBeside(t, check, (*Table).Decide, tenths, func(table *Table) {
			events := map[string]int64{}
			list, _, _ := table.Events(0, 1000)
			for _, e := range list {
				events[e.Key]++
			}
			for _, op := range check {
				require.Equal(t, min(used(table, LimiterName("tenths", 0, op.Key))/100, 8), events[string(op.Key)])
			}
		})
	})
}

var drainAt = Stamp{NowNs: 1e18}

// drainBeside drains a table that decides after some chunks, and may have the policy "tenths". After each drain it
// checks a table with all that was handed out.
func drainBeside(t *testing.T, ops []Op, decide func(*Table, Stamp, []Op, []Decision), p *Policy, check func(*Table)) {
	out := make([]Decision, len(ops))
	table, stored := NewTable(Options{Shards: 8, TrackChanges: true}), []Change(nil)
	if p != nil {
		set := Op{Code: OpPolicy, Key: []byte("tenths"), Policy: &PolicyChange{Terms: p}}
		table.Decide(drainAt, []Op{set}, out)
		require.NoError(t, table.Drain(1, func([]Change) error { return nil }))
		table.Renew(0, 100)
	}
	rng := rand.New(rand.NewPCG(3, 5))
	for range 50 {
		decide(table, drainAt, ops, out)
		require.NoError(t, table.Drain(1+rng.IntN(4), func(changes []Change) error {
			for _, c := range changes {
				stored = append(stored, Change{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value)})
			}
			if rng.IntN(3) == 0 {
				decide(table, drainAt, ops, out)
			}
			return nil
		}))
		again := NewTable(Options{Shards: 2})
		_, err := again.Load(drainAt, stored)
		require.NoError(t, err)
		check(again)
	}
}

// TestADrainBesideBatches checks that a Drain that runs beside batches hands out a limiter together with its event: each
// check makes a limiter and writes one event.
func TestADrainBesideBatches(t *testing.T) {
	limit := Limit{Algorithm: FixedWindow, WindowNs: MaxWindowNs, Max: 100}
	told := &Policy{Limits: []PolicyLimit{{Limit: limit, Notify: "\x01"}}}
	table := NewTable(Options{Shards: 8, TrackChanges: true})
	set := Op{Code: OpPolicy, Key: []byte("told"), Policy: &PolicyChange{Terms: told}}
	table.Decide(drainAt, []Op{set}, make([]Decision, 1))
	var stop atomic.Bool
	var keys atomic.Int64
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop.Store(true)
	for range 2 {
		writers.Go(func() {
			ops, out := make([]Op, 32), make([]Decision, 32)
			for !stop.Load() {
				for i := range ops {
					key := fmt.Append(nil, "key", keys.Add(1))
					ops[i] = Op{Code: OpCheck, Text: []byte("told"), Key: key, Cost: 1}
				}
				table.Decide(drainAt, ops, out)
			}
		})
	}
	var stored []Change
	for keys.Load() < 60_000 { // the log of events drops none of them
		require.NoError(t, table.Drain(8, func(changes []Change) error {
			for _, c := range changes {
				stored = append(stored, Change{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value)})
			}
			return nil
		}))
		again := NewTable(Options{Shards: 2})
		_, err := again.Load(drainAt, stored)
		require.NoError(t, err)
		_, at, _ := again.Events(0, 0)
		require.EqualValues(t, again.Len(drainAt), at.Last)
	}
}
