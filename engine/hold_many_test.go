package engine_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// manyFactor is by how much limits are larger, and time passes more slowly, in traffic with many holds.
const manyFactor = 1000

func manyPolicies() map[string][]engine.Limit {
	policies := map[string][]engine.Limit{}
	for name, limits := range modelPolicies {
		limits = slices.Clone(limits)
		for i := range limits {
			limits[i].Max *= manyFactor
			limits[i].Rate.Units *= manyFactor
		}
		policies[name] = limits
	}
	return policies
}

// moreSeeds returns how many random sequences a test makes: n, or as many as an environment variable says.
func moreSeeds(n uint64) uint64 {
	if more, err := strconv.ParseUint(os.Getenv("WEIRTEST_HOLD_SEEDS"), 10, 64); err == nil {
		return more
	}
	return n
}

// TestManyHoldsAreAsTheModelSays is TestHoldsAreAsTheModelSays with hundreds and thousands of holds on each limiter.
func TestManyHoldsAreAsTheModelSays(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	most := 0
	for seed := range moreSeeds(4) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, extended: map[string]int64{},
			policies: manyPolicies(), window: []int{300, 6000}[seed/2%2]}
		if seed%2 == 1 {
			g.changes = maps.Clone(g.policies)
		}
		m := newHoldModel(g.policies)
		table := metaTable(4)
		g.setPolicies(table)
		for i := range 4000 {
			g.compare(t, m, table, i)
			if i%100 == 0 {
				for _, name := range modelNames {
					info, _ := table.Inspect(g.at, fmt.Append(nil, "policy|", name, "|0|k0"))
					most = max(most, info.Holders)
				}
			}
		}
	}
	t.Log("at most", most, "holds on one limiter")
	require.Greater(t, most, 200)
}

// TestReplicasAgreeOnManyHolds is TestReplicasAgreeOnHolds with hundreds of holds on each limiter. While no limit
// changes, one replica keeps them as older versions did.
func TestReplicasAgreeOnManyHolds(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(8) {
		g := &holdTraffic{Rand: seeded(seed), at: engine.Stamp{NowNs: 1e18 + 7}, any: true,
			policies: manyPolicies(), window: 400}
		replicas := replicasOf(t, seed)
		if seed%2 == 1 {
			g.changes = maps.Clone(g.policies)
		} else {
			old := hashTable(2)
			old.SetRules(engine.RulesManyHolds - 1)
			replicas = append(replicas, &replica{"old", old, plainly})
		}
		for _, r := range replicas {
			g.setPolicies(r.table)
		}
		for range 120 {
			b := block{at: g.at}
			for range 1 + g.IntN(40) {
				b.ops = append(b.ops, g.next())
			}
			requireAlike(t, replicas, b)
			g.pass()
		}
	}
}

// TestAFloodOfHoldsIsRefused makes holds with long ids on one limiter until memory is full. The refused ones take
// nothing, and all others give everything back.
func TestAFloodOfHoldsIsRefused(t *testing.T) {
	for name, full := range map[string]engine.FullPolicy{"evicting": engine.LeastHarm, "denying": engine.Deny} {
		h := newHolds(t, nil)
		h.table = engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 2 << 20, WhenFull: full})
		l := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e12}, Max: 1e6}
		h.do(setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{{Limit: l}}}))
		id := func(i int) string { return fmt.Sprintf("%064d", i) }
		made := 0
		for refused := 0; refused < 100; {
			before := h.left("p", "k")
			d := h.do(reserve(id(made), 1, 3600e9, "p", "k"))
			if d.Allowed == 1 {
				made++
				continue
			}
			refused++
			require.Equal(t, engine.OutOfMemory, d.Status, name)
			require.Equal(t, before, h.left("p", "k"), "a refused hold must take nothing")
			require.Equal(t, engine.NoHold, h.do(commit(id(made), 1)).Status)
		}
		require.Greater(t, made, 1000)
		require.LessOrEqual(t, h.table.MemoryBytes(), int64(2<<20), name)
		require.Equal(t, engine.OutOfMemory, h.do(extend(id(0), 1, 1)).Status)
		require.EqualValues(t, 1e6-made, h.left("p", "k"), "a refused extension must take nothing")
		info, _ := h.table.Inspect(h.at, []byte("policy|p|0|k"))
		require.Equal(t, made, info.Holders, "no hold may be evicted")
		for i := range made {
			require.EqualValues(t, 1, h.do(cancel(id(i))).Allowed)
		}
		require.EqualValues(t, 1e6, h.left("p", "k"), "each hold must give its unit back")
	}
}

// TestAFloodOfHeldKeysIsRefused makes holds on ever more keys until memory is full, and settles some of them. Each one
// that is admitted keeps its units in all limiters, and gives back what it did not use.
func TestAFloodOfHeldKeysIsRefused(t *testing.T) {
	for name, full := range map[string]engine.FullPolicy{"evicting": engine.LeastHarm, "denying": engine.Deny} {
		for limits := 1; limits <= 3; limits++ {
			h, rnd, made := newHolds(t, nil), seeded(uint64(limits)), []string{}
			h.table = engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 2 << 20, WhenFull: full})
			p := engine.Policy{}
			for range limits {
				p.Limits = append(p.Limits, quotaLimit(100))
			}
			h.do(setPolicy("p", p))
			settle := func() {
				i := rnd.IntN(len(made))
				id := made[i]
				made = slices.Delete(made, i, i+1)
				require.EqualValues(t, 20, h.left("p", "key-"+id), "%s, %d limits: %s", name, limits, id)
				require.EqualValues(t, 50, h.do(commit(id, 50)).Remaining, "%s, %d limits: %s", name, limits, id)
			}
			for i, refused := 0, 0; refused < 500; i++ {
				id := fmt.Sprintf("hold-%09d", i)
				d := h.do(reserve(id, 80, 3600e9, "p", "key-"+id))
				if d.Allowed == 1 {
					made = append(made, id)
				} else {
					refused++
					require.Equal(t, engine.OutOfMemory, d.Status, name)
				}
				if i%8 == 7 {
					settle()
				}
			}
			require.Greater(t, len(made), 1000)
			for len(made) > 0 {
				settle()
			}
		}
	}
}

// TestManyHoldsAreStoredInParts checks that a change of one of many holds is stored in few bytes, that what is stored
// can be loaded, that a cursor of a listing keeps its meaning then, and that no memory is left after a clear.
func TestManyHoldsAreStoredInParts(t *testing.T) {
	table := engine.NewTable(engine.Options{Shards: 4, TrackChanges: true})
	h := &holds{t, table, engine.Stamp{NowNs: 1e18}}
	empty := table.MemoryBytes()
	bucket := heldLimits["token"]
	bucket.Max = 1e6
	h.do(setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{{Limit: bucket}, quotaLimit(1e9)}}))
	for i := range 3000 {
		require.EqualValues(t, 1, h.do(reserve(fmt.Sprint("id", i), 5, 3600e9, "p", "k")).Allowed)
	}
	stored := entries{}
	require.NoError(t, table.Drain(100, into(t, stored)))
	changed := 0
	for i := range 20 {
		h.do(extend(fmt.Sprint("id", 7+i*100), 1, 1))
		h.do(commit(fmt.Sprint("id", 3+i*140), 2))
		require.NoError(t, table.Drain(100, func(changes []engine.Change) error {
			for _, c := range changes {
				changed += len(c.Key) + len(c.Value)
			}
			return into(t, stored)(changes)
		}))
	}
	require.Less(t, changed/20, 8<<10, "bytes that an extension and a commit store")
	again := loaded(t, h.at, stored, 2)
	require.Equal(t, table.StateHash(h.at), again.StateHash(h.at))
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		want, next := table.Holds(h.at, []byte("p"), []byte("k"), cursor, 100)
		got, same := again.Holds(h.at, []byte("p"), []byte("k"), cursor, 100)
		require.Equal(t, want, got)
		require.Equal(t, next, same)
		cursor = next
	}
	table.Clear()
	require.LessOrEqual(t, table.MemoryBytes()-empty, int64(1<<10))
}

// TestALongReleaseIsNoDenial checks that a denial without a log entry never gives a long list of ended holds back: that
// is left to Decide, which does it once.
func TestALongReleaseIsNoDenial(t *testing.T) {
	h := newHolds(t, map[string]engine.Limit{"p": quotaLimit(1000).Limit})
	for i := range 900 {
		h.do(reserve(fmt.Sprint("id", i), 1, 10e9, "p", "k"))
	}
	for name, ended := range map[string]bool{"none has ended": false, "all have ended": true} {
		at, out, denied := h.at, make([]engine.Decision, 1), make([]bool, 1)
		if ended {
			at.NowNs += 10e9
		}
		h.table.Denials(at, []engine.Op{check(1001, "p", "k")}, out, denied)
		require.Equal(t, !ended, denied[0], name)
	}
	h.pass(10e9)
	require.Zero(t, h.do(check(1001, "p", "k")).Allowed)
	require.EqualValues(t, 1000, h.left("p", "k"))
}
