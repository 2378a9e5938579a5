package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

const topMinuteNs = int64(60e9)

func forever(most int64) engine.Limit {
	return engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}
}

// topText returns the entries of Top as text.
func topText(table *engine.Table, at engine.Stamp, v engine.Verdict) (text []string) {
	for _, h := range table.Top(at, v, math.MaxInt) {
		text = append(text, fmt.Sprintf("%s %d", h.Key, h.Units))
	}
	return text
}

// TestTopAgainstExactCounts checks the counts of a shard. The first 8192 units are exact, and later ones are within
// the error of the sketch and the sample. The sample depends on the order of decisions, so a run can be repeated
// exactly.
func TestTopAgainstExactCounts(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, test := range []struct {
		name   string
		uneven float64
		ops    int
		most   int64 // units of one decision
	}{
		{"few", 1.3, 8000, 1}, {"many", 1.3, 1_000_000, 1}, {"many and even", 1.02, 1_000_000, 1},
		{"of all sizes", 1.3, 300_000, 5000},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := engine.NewTable(engine.Options{Shards: 1})
			at := engine.Stamp{NowNs: 1000 * topMinuteNs}
			r := rand.New(rand.NewPCG(42, 1))
			keys := rand.NewZipf(r, test.uneven, 1, 9_999)
			exact, total := map[string]int64{}, int64(0)
			for range test.ops {
				op := engine.Op{Key: fmt.Appendf(nil, "key:%d", keys.Uint64()), Limit: forever(engine.MaxUnits),
					Cost: 1 + r.Int64N(test.most)}
				require.EqualValues(t, 1, decideAt(table, at, op).Allowed)
				exact[string(op.Key)] += op.Cost
				total += op.Cost
			}
			found := map[string]engine.Heavy{}
			for _, h := range table.Top(at, engine.Admitted, math.MaxInt) {
				found[string(h.Key)] = h
			}
			for key, units := range exact {
				h, listed := found[key]
				chance := 6 * math.Sqrt(float64(units)*float64(total)) / 64
				if total <= 8192 {
					chance = 0
				}
				bound := float64(total) / 32 * 1.05 // the sample may have up to 5 % more units than total
				require.LessOrEqual(t, float64(h.Units), float64(units+h.Error)+chance, key)
				require.True(t, !listed || float64(h.Units) >= float64(units)-chance, "%s: %d of %d", key,
					h.Units, units)
				require.True(t, listed || float64(units) <= bound+chance, "%s has %d of %d", key, units, total)
				require.LessOrEqual(t, float64(h.Error), bound)
			}
		})
	}
}

// TestTopNames checks which operations count, under which name and how much.
func TestTopNames(t *testing.T) {
	at := engine.Stamp{NowNs: 1000 * topMinuteNs}
	one := engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(10)}}
	two := engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(100), quotaLimit(3)}}
	shadow := engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(1)}, Shadow: true}
	take := func(key string, most, cost int64) engine.Op {
		return engine.Op{Key: []byte(key), Limit: forever(most), Cost: cost}
	}
	partial := func(op engine.Op) engine.Op { op.Partial = true; return op }
	dry := func(op engine.Op) engine.Op { op.Dry = true; return op }
	once := func(op engine.Op) engine.Op { op.ID = []byte("id"); return op }
	block := func(key string) engine.Op {
		return engine.Op{Code: engine.OpBlock, Key: []byte(key), TTLNs: engine.Never}
	}
	incr := func(by int64) engine.Op {
		return engine.Op{Code: engine.OpIncr, Key: []byte("n"), Incr: &engine.Incr{By: by, Lower: 0, Upper: 10}}
	}
	for _, test := range []struct {
		name             string
		ops              []engine.Op
		admitted, denied []string
	}{
		{"admitted and denied", []engine.Op{take("a", 5, 4), take("a", 5, 2), take("b", 9, 3)},
			[]string{"a 4", "b 3"}, []string{"a 2"}},
		{"of a partial grant what was granted", []engine.Op{partial(take("a", 5, 9)), partial(take("a", 5, 9))},
			[]string{"a 5"}, []string{"a 9"}},
		{"looks do not count", []engine.Op{take("a", 5, 0), dry(take("a", 5, 1)), dry(take("a", 5, 6))}, nil, nil},
		{"a repetition does not count", []engine.Op{once(take("a", 5, 4)), once(take("a", 5, 4))},
			[]string{"a 4"}, nil},
		{"a blocked key", []engine.Op{block("a"), take("a", 5, 1)}, nil, []string{"a 1"}},
		{"counters", []engine.Op{incr(7), incr(-2), incr(6)}, []string{"n 7"}, []string{"n 6"}},
		{"a check by one limit", []engine.Op{check(7, "one", "k"), check(7, "one", "k")}, []string{"policy|one|0|k 7"},
			[]string{"policy|one|0|k 7"}},
		{"a check by several", []engine.Op{check(2, "two", "k", "one", "k"), check(2, "one", "k", "two", "k")},
			[]string{"policy|one|0|k 2", "policy|two|0|k 2"}, []string{"policy|two|1|k 2"}},
		{"a shadow that would deny", []engine.Op{check(2, "shadow", "k", "one", "k")}, []string{"policy|one|0|k 2"},
			nil},
		{"a check of a blocked key", []engine.Op{block("k"), check(2, "one", "k"), check(2, "one", "x", "two", "k"),
			dry(check(2, "one", "k"))}, nil, []string{"k 4"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := engine.NewTable(engine.Options{})
			for name, p := range map[string]engine.Policy{"one": one, "two": two, "shadow": shadow} {
				decideAt(table, at, setPolicy(name, p))
			}
			for _, op := range test.ops {
				decideAt(table, at, op)
			}
			require.Equal(t, test.admitted, topText(table, at, engine.Admitted))
			require.Equal(t, test.denied, topText(table, at, engine.Denied))
		})
	}
}

// TestTopCountsWhatDenialsAnswers checks that answers of Denials count, because they are not decided again.
func TestTopCountsWhatDenialsAnswers(t *testing.T) {
	at := engine.Stamp{NowNs: 1000 * topMinuteNs}
	table := engine.NewTable(engine.Options{})
	decideAt(table, at, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(3)}}))
	ops := []engine.Op{{Key: []byte("a"), Limit: forever(1), Cost: 1}, check(3, "p", "k")}
	for range 3 {
		table.Decide(at, ops, make([]engine.Decision, 2))
	}
	before := table.StateHash(at)
	a := askDenials(t, table, engine.Stamp{NowNs: at.NowNs + 5}, ops)
	require.Empty(t, a.rest)
	require.Equal(t, []string{"policy|p|0|k 9", "a 3"}, topText(table, at, engine.Denied))
	require.Equal(t, before, table.StateHash(at))
}

// TestTopFades checks that counts halve every minute, whether the table is read or used, and that Clear removes them.
func TestTopFades(t *testing.T) {
	at := func(minute int64) engine.Stamp { return engine.Stamp{NowNs: minute * topMinuteNs} }
	table := engine.NewTable(engine.Options{Shards: 4})
	take := func(minute, cost int64) {
		decideAt(table, at(minute), engine.Op{Key: []byte("a"), Limit: forever(engine.MaxUnits), Cost: cost})
	}
	take(1000, 100)
	require.Equal(t, []string{"a 100"}, topText(table, at(1000), engine.Admitted))
	require.Equal(t, []string{"a 50"}, topText(table, at(1001), engine.Admitted))
	take(1001, 30)
	require.Equal(t, []string{"a 80"}, topText(table, at(1001), engine.Admitted))
	require.Equal(t, []string{"a 80"}, topText(table, at(1), engine.Admitted),
		"a read at an earlier time must not change the counts")
	require.Equal(t, []string{"a 10"}, topText(table, at(1004), engine.Admitted))
	require.Empty(t, topText(table, at(9000), engine.Admitted))
	take(9000, 5)
	require.Equal(t, []string{"a 5"}, topText(table, at(9000), engine.Admitted))
	table.Clear()
	require.Empty(t, topText(table, at(9000), engine.Admitted))
}

func TestTopLists(t *testing.T) {
	at := engine.Stamp{NowNs: 1000 * topMinuteNs}
	table := engine.NewTable(engine.Options{})
	for i, key := range []string{"c", "b", "a"} {
		decideAt(table, at, engine.Op{Key: []byte(key), Limit: forever(9), Cost: 1 + int64(i)/2})
	}
	require.Equal(t, []string{"a 2", "b 1", "c 1"}, topText(table, at, engine.Admitted),
		"the heaviest key must come first, then the names in order")
	require.Len(t, table.Top(at, engine.Admitted, 2), 2)
	require.Empty(t, table.Top(at, engine.Denied, 2))
}

// TestTopAllocatesNothing checks that counting does not allocate, whether a unit is in the sample or not.
func TestTopAllocatesNothing(t *testing.T) {
	table := engine.NewTable(engine.Options{Shards: 1})
	at, out, i := engine.Stamp{NowNs: 1000 * topMinuteNs}, make([]engine.Decision, 1), 0
	ops := []engine.Op{{Limit: bucketOf(1, 1e9, 1), Cost: 2}}
	keys := make([][]byte, 64) // twice as many as a shard tracks
	for k := range keys {
		keys[k] = fmt.Appendf(nil, "key:%02d", k)
	}
	require.Zero(t, testing.AllocsPerRun(10_000, func() {
		ops[0].Key = keys[i%64]
		table.Decide(at, ops, out)
		i++
	}))
}
