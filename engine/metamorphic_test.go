package engine_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// These tests check that the same operations give the same answers for any number of shards, any batches, and any
// collecting, saving and loading.

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 77)) }

// block is a batch of operations at one instant.
type block struct {
	at  engine.Stamp
	ops []engine.Op
}

const metaLifetimeNs = int64(1e9)

// someBlocks returns a random history over 400 keys of all algorithms.
func someBlocks(seed uint64, blocks, most int) (history []block) {
	g := newGenerator(seeded(seed), engine.NoAlgorithm, 400)
	g.lifetimeNs = metaLifetimeNs
	for range blocks {
		b := block{}
		for range 1 + g.IntN(most) {
			b.ops = append(b.ops, g.next().op)
		}
		b.at = g.at
		// The answers are unknown here, so aim at the usual waits.
		g.saw(engine.Decision{RetryMs: g.Int64N(g.scaleNs/1e6 + 2), ResetMs: g.scaleNs / 1e6})
		history = append(history, b)
	}
	return history
}

func metaTable(shards int) *engine.Table {
	return engine.NewTable(engine.Options{Shards: shards, IDLifetimeNs: metaLifetimeNs, TrackChanges: true})
}

// TestMetamorphic checks that tables of any shape have the same answers and the same hash after every block, in any
// batches. They collect, are read ahead of time, are restarted, or are replayed from a journal.
func TestMetamorphic(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			replicas := append(replicasOf(t, seed),
				&replica{"one shard", metaTable(1), oneByOne},
				&replica{"more shards than lanes", metaTable(512), plainly},
				&replica{"atomic batches", metaTable(4), func(r *replica, b block, out []engine.Decision) {
					r.table.DecideAtomic(b.at, b.ops, out)
				}},
				&replica{"replayed from a journal", metaTable(8), replaying(t, seed)})
			history := someBlocks(seed, 100, 512/(1+int(seed)%8))
			for _, b := range history {
				requireAlike(t, replicas, b)
			}
			at := history[len(history)-1].at
			for _, r := range replicas {
				require.Equal(t, replicas[0].table.Len(at), r.table.Len(at), r.name)
			}
		})
	}
}

func requireSame(t *testing.T, name string, history []block, want, got []engine.Decision) {
	i := 0
	for _, b := range history {
		for _, op := range b.ops {
			if want[i] != got[i] {
				require.Equal(t, want[i], got[i], "%s: answer %d, %s at %+v", name, i, describe(op), b.at)
			}
			i++
		}
	}
}

// replaying decides on a table whose changes are kept in order, without those from before the last complete pass of
// Renew. Sometimes it is replaced by a table loaded from all kept changes.
func replaying(t *testing.T, seed uint64) func(*replica, block, []engine.Decision) {
	rng := seeded(seed + 2000)
	var (
		journal []engine.Change
		cursor  uint64
		begun   int // the number of changes when the pass began
	)
	return func(r *replica, b block, out []engine.Decision) {
		r.table.Decide(b.at, b.ops, out)
		if rng.IntN(3) > 0 {
			return
		}
		if cursor == 0 {
			begun = len(journal)
		}
		cursor = r.table.Renew(cursor, rng.IntN(200))
		require.NoError(t, r.table.Drain(1+rng.IntN(500), func(changes []engine.Change) error {
			for _, c := range changes {
				journal = append(journal, engine.Change{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value)})
			}
			return nil
		}))
		if cursor == 0 {
			journal = journal[begun:]
		}
		if rng.IntN(3) == 0 {
			r.table, cursor = replayed(t, b.at, journal, 1<<rng.IntN(6)), 0
		}
	}
}

func replayed(t *testing.T, at engine.Stamp, journal []engine.Change, shards int) *engine.Table {
	table := metaTable(shards)
	_, err := table.Load(at, journal)
	require.NoError(t, err)
	requireUnchanged(t, table)
	return table
}

func requireUnchanged(t *testing.T, table *engine.Table) {
	require.NoError(t, table.Drain(100, func(c []engine.Change) error {
		require.Empty(t, c, "a load must not count as a change")
		return nil
	}))
}

// entries are the last change of each storage key. The changes of different keys have an order too, because limiters of
// a policy may be stored together or one by one.
type entries map[string]keyChanges

// keyChanges are the values that the last change of a key consists of: several for a log that was stored in parts, and
// none for a removal.
type keyChanges struct {
	last   int64 // the number of the last change
	values [][]byte
}

var changeNumber atomic.Int64

// into returns a function that stores changes.
func into(t *testing.T, stored entries) func([]engine.Change) error {
	return func(changes []engine.Change) error {
		for _, c := range changes {
			of := keyChanges{last: changeNumber.Add(1)}
			if c.Key[0] == 'l' && len(c.Value) > 0 && c.Value[0]&0x80 != 0 { // more of a log
				of.values = stored[string(c.Key)].values
			}
			if c.Value != nil {
				of.values = append(of.values, bytes.Clone(c.Value))
			}
			stored[string(c.Key)] = of
		}
		return nil
	}
}

// inOrder iterates over all values, in the order of the last changes of their keys.
func (e entries) inOrder() iter.Seq2[[]byte, keyChanges] {
	return func(yield func([]byte, keyChanges) bool) {
		keys := slices.SortedFunc(maps.Keys(e), func(a, b string) int { return cmp.Compare(e[a].last, e[b].last) })
		for _, key := range keys {
			if !yield([]byte(key), e[key]) {
				return
			}
		}
	}
}

func loaded(t *testing.T, at engine.Stamp, stored entries, shards int) *engine.Table {
	table := metaTable(shards)
	loadInto(t, table, at, stored)
	requireUnchanged(t, table)
	return table
}

func loadInto(t *testing.T, table *engine.Table, at engine.Stamp, stored entries) {
	var changes []engine.Change
	for key, of := range stored.inOrder() {
		if len(of.values) == 0 {
			changes = append(changes, engine.Change{Key: key})
		}
		for _, v := range of.values {
			changes = append(changes, engine.Change{Key: key, Value: v})
		}
	}
	_, err := table.Load(at, changes)
	require.NoError(t, err)
}

// TestDrainStopsAtAnError checks that a drain stops at an error and returns the rest the next time.
func TestDrainStopsAtAnError(t *testing.T) {
	table, at := metaTable(4), engine.Stamp{NowNs: 1e18}
	for n := range 1000 {
		decideOne(table, step{at, engine.Op{Key: keyOf(n), Limit: bucketOf(1, 1e9, 10), Cost: 1}})
	}
	full, stored := errors.New("disk full"), entries{}
	keep := into(t, stored)
	require.ErrorIs(t, table.Drain(10, func(c []engine.Change) error { return errors.Join(keep(c), full) }), full)
	require.Len(t, stored, 10)
	require.NoError(t, table.Drain(10, keep))
	require.Len(t, stored, 1000)
	require.EqualValues(t, 1000, loaded(t, at, stored, 8).Len(at))
}

// TestLoadSkipsWhatIsIdle checks that Load does not add an idle entry.
func TestLoadSkipsWhatIsIdle(t *testing.T) {
	table, at, stored := metaTable(4), engine.Stamp{NowNs: 1e18}, entries{}
	decideOne(table, step{at, engine.Op{Key: keyOf(1), Limit: bucketOf(1, 1e9, 10), Cost: 1}})
	require.NoError(t, table.Drain(10, into(t, stored)))
	for k, v := range stored {
		for waitNs, want := range map[int64]bool{1e9 - 1: true, 1e9: false} {
			later, again := engine.Stamp{NowNs: at.NowNs + waitNs}, metaTable(2)
			_, err := again.Load(later, []engine.Change{{Key: []byte(k), Value: v.values[0]}})
			require.NoError(t, err)
			require.Equal(t, one(want), again.Len(later))
		}
	}
}

// TestLoadOfDamage checks that loading damaged entries gives an error or some entry. It must not panic then or later.
func TestLoadOfDamage(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	rng := seeded(1)
	for seed := range uint64(40) {
		stored := entries{}
		before := metaTable(2)
		history := someBlocks(seed, 5, 200)
		for _, b := range history {
			before.Decide(b.at, b.ops, make([]engine.Decision, len(b.ops)))
		}
		require.NoError(t, before.Drain(100, into(t, stored)))
		table, at := metaTable(2), history[len(history)-1].at
		for k, of := range stored.inOrder() {
			if len(of.values) == 0 {
				continue
			}
			for range 5 {
				v := of.values[rng.IntN(len(of.values))]
				_, _ = table.Load(at, []engine.Change{{Key: k, Value: engine.Damaged(rng, v)}})
				_, _ = table.Load(at, []engine.Change{{Key: engine.Damaged(rng, k), Value: v}})
			}
		}
		for _, b := range history {
			table.Decide(b.at, b.ops, make([]engine.Decision, len(b.ops)))
		}
		at.NowNs += dayNs
		table.Collect(at, 1_000_000)
		table.Len(at)
	}
	_, err := metaTable(1).Load(engine.Stamp{}, []engine.Change{{}})
	require.Error(t, err)
}

// TestScanSeesEveryKey checks that a scan visits every key that exists the whole time, while others come and go.
func TestScanSeesEveryKey(t *testing.T) {
	table, at := metaTable(16), engine.Stamp{NowNs: 1e18}
	lasting := bucketOf(1, hourNs, 10)
	const keys = 5_000
	for n := range keys {
		decideOne(table, step{at, engine.Op{Key: keyOf(n), Limit: lasting, Cost: 5}})
	}
	seen := map[string]bool{}
	for cursor, calls := uint64(0), 0; ; calls++ {
		cursor = table.Scan(at, cursor, 50, func(key []byte, a engine.Algorithm) {
			require.Equal(t, engine.TokenBucket, a)
			seen[string(key)] = true
		})
		if cursor == 0 {
			break
		}
		require.Less(t, cursor, uint64(1<<53))
		require.Less(t, calls, keys)
		for n := range 40 {
			decideOne(table, step{at, engine.Op{Key: keyOf(keys + calls*40 + n), Limit: lasting, Cost: 1}})
			decideOne(table, step{at, engine.Op{Code: engine.OpReset, Key: keyOf(keys + calls*40 + n - 60)}})
		}
	}
	for n := range keys - 60 {
		require.True(t, seen[string(keyOf(n))], "key %d", n)
	}
	require.NotNil(t, table.RandomKey(at, 12345, 0))
	at.NowNs += dayNs
	require.Zero(t, table.Scan(at, 0, 1_000_000, func(key []byte, _ engine.Algorithm) { t.Fatalf("%x is idle", key) }))
	require.Nil(t, table.RandomKey(at, 12345, 0))
}
