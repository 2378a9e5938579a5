package engine_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// replica is a table that runs a history in its own way.
type replica struct {
	name   string
	table  *engine.Table
	decide func(r *replica, b block, out []engine.Decision)
}

// replicasOf returns tables that must decide alike and end in the same state.
func replicasOf(t *testing.T, seed uint64) []*replica {
	restart := restarter(t, seed)
	return []*replica{
		{"plain", hashTable(64), plainly},
		{"collecting", hashTable(8), func(r *replica, b block, out []engine.Decision) {
			for i := range b.ops {
				r.table.Decide(b.at, b.ops[i:i+1], out[i:])
				r.table.Collect(b.at, 1000)
				if i%16 == 0 {
					r.table.Len(b.at) // collects at once
				}
			}
		}},
		{"looked at", metaTable(4), lookingAhead(seed)},
		{"restarted", metaTable(2), restart},
	}
}

func oneByOne(r *replica, b block, out []engine.Decision) {
	for i := range b.ops {
		r.table.Decide(b.at, b.ops[i:i+1], out[i:])
	}
}

func plainly(r *replica, b block, out []engine.Decision) { r.table.Decide(b.at, b.ops, out) }

func hashTable(shards int) *engine.Table {
	return engine.NewTable(engine.Options{Shards: shards, IDLifetimeNs: metaLifetimeNs})
}

// lookingAhead reads the table like a leader, at times before and after the next decision.
func lookingAhead(seed uint64) func(*replica, block, []engine.Decision) {
	rng := seeded(seed + 2000)
	return func(r *replica, b block, out []engine.Decision) {
		for i := range b.ops {
			r.table.Decide(b.at, b.ops[i:i+1], out[i:])
			at := engine.Stamp{NowNs: b.at.NowNs + rng.Int64N(1<<rng.IntN(60)), WallOffsetNs: rng.Int64N(dayNs)}
			key := b.ops[rng.IntN(len(b.ops))].Key
			switch rng.IntN(20) {
			case 0:
				r.table.Scan(at, 0, 1000, func([]byte, engine.Algorithm) {})
			case 1:
				r.table.RandomKey(at, rng.Uint64(), 0)
			case 2:
				r.table.StateHash(at)
			case 3:
				r.table.Victims(at, math.MaxInt64, 10, func(key, id []byte) { r.table.Has(at, key) })
			case 4:
				denials := make([]engine.Decision, len(b.ops))
				r.table.Denials(at, b.ops, denials, make([]bool, len(b.ops)))
			case 5, 6:
				dry := slices.Clone(b.ops)
				dry = slices.DeleteFunc(
					dry, func(op engine.Op) bool { return op.Code != engine.OpTake && op.Code != engine.OpCheck })
				for i := range dry {
					dry[i].Dry = true
				}
				r.table.Explain(at, dry, make([]engine.Decision, len(dry)))
			default:
				r.table.Inspect(at, key)
			}
		}
	}
}

// restarter sometimes drains its table into a store, and replaces it by one loaded from there.
func restarter(t *testing.T, seed uint64) func(*replica, block, []engine.Decision) {
	rng, stored := seeded(seed+1000), entries{}
	return func(r *replica, b block, out []engine.Decision) {
		r.table.Decide(b.at, b.ops, out)
		if rng.IntN(3) == 0 {
			require.NoError(t, r.table.Drain(1+rng.IntN(500), into(t, stored)))
			if rng.IntN(2) == 0 {
				r.table = loaded(t, b.at, stored, 1<<rng.IntN(6))
			}
		}
	}
}

// requireAlike makes all replicas decide a block, and compares answers and hashes.
func requireAlike(t *testing.T, replicas []*replica, b block) {
	var want []engine.Decision
	var hash uint64
	for i, r := range replicas {
		out := make([]engine.Decision, len(b.ops))
		r.decide(r, b, out)
		if i == 0 {
			want, hash = out, r.table.StateHash(b.at)
			continue
		}
		requireSame(t, r.name, []block{b}, want, out)
		require.Equal(t, hash, r.table.StateHash(b.at), r.name)
	}
}

// TestReplicasWithLateStamps checks the same with a few keys of each algorithm and with stamps that step back. All
// tables have one shard, so each raises such a stamp to the same latest stamp.
func TestReplicasWithLateStamps(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, a := range append([]engine.Algorithm{engine.NoAlgorithm, engine.Counter}, everyAlgorithm...) {
		t.Run(a.String(), func(t *testing.T) {
			for seed := range uint64(60) {
				g := newGenerator(seeded(seed), a, 3)
				g.lifetimeNs = metaLifetimeNs
				replicas := replicasOf(t, seed)
				replicas = replicas[:3] // a reloaded table has not seen the latest stamp
				for _, r := range replicas {
					r.table = metaTable(1)
				}
				for range 300 {
					s := g.next()
					requireAlike(t, replicas, block{s.at, []engine.Op{s.op}})
				}
			}
		})
	}
}

// TestStateHashSeesEveryDifference checks that one more step, or a step on another key, changes the hash. Swapping
// two keys must also change it.
func TestStateHashSeesEveryDifference(t *testing.T) {
	const nowNs = int64(1e18)
	take := func(key string, l engine.Limit, cost int64) engine.Op {
		return engine.Op{Key: []byte(key), Limit: l, Cost: cost, TTLNs: hourNs, Text: []byte("x")}
	}
	strike := windowOf(engine.Strike, hourNs, 9)
	strike.Steps = engine.MakeSteps([]engine.Step{{Threshold: 9, PenaltyNs: hourNs}})
	count := func(key string, by int64) engine.Op {
		return engine.Op{Code: engine.OpIncr, Key: []byte(key), Incr: &engine.Incr{By: by, Lower: -100, Upper: 100}}
	}
	histories := [][]engine.Op{{}, {count("a", 1)}, {count("b", 1)}, {count("a", 1), count("b", 2)},
		{count("a", 2), count("b", 1)}}
	for _, l := range append(append([]engine.Limit{}, allOfTen...), strike) {
		longer, other := l, take("a", l, 1)
		longer.Max++
		other.Text = []byte("y")
		other.TTLNs++
		withID := take("a", l, 1)
		withID.ID = []byte("id")
		histories = append(histories,
			[]engine.Op{take("a", l, 1)}, []engine.Op{take("b", l, 1)}, []engine.Op{take("a", longer, 1)},
			[]engine.Op{withID},
			[]engine.Op{take("a", l, 1), take("b", l, 2)}, []engine.Op{take("a", l, 2), take("b", l, 1)},
			[]engine.Op{take("a", l, 1), {Code: engine.OpBlock, Key: []byte("a"), TTLNs: hourNs}})
		if l.Algorithm == engine.Strike {
			// The same log, with and without a penalty in force.
			histories = append(histories, []engine.Op{take("a", l, 8)},
				[]engine.Op{take("a", l, 9), {Code: engine.OpRefund, Key: []byte("a"), Cost: 1}})
		}
		if l.Algorithm == engine.Concurrency {
			histories = append(histories, []engine.Op{other}, []engine.Op{take("a", l, 1), other})
		}
	}
	seen := map[uint64]int{}
	for i, ops := range histories {
		table := hashTable(4)
		table.Decide(engine.Stamp{NowNs: nowNs}, ops, make([]engine.Decision, len(ops)))
		hash := table.StateHash(engine.Stamp{NowNs: nowNs})
		require.NotContains(t, seen, hash, "histories %d and %d", i, seen[hash])
		seen[hash] = i
		table.Clear()
		require.Zero(t, table.StateHash(engine.Stamp{NowNs: nowNs}))
	}
}
