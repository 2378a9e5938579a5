package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// asked is the result of Denials for a batch.
type asked struct {
	out    []engine.Decision
	denied []bool
	rest   []engine.Op // the operations that were not answered
}

func askDenials(t *testing.T, table *engine.Table, at engine.Stamp, ops []engine.Op) asked {
	a := asked{out: make([]engine.Decision, len(ops)), denied: make([]bool, len(ops))}
	n := table.Denials(at, ops, a.out, a.denied)
	for i, denied := range a.denied {
		if !denied {
			a.rest = append(a.rest, ops[i])
		}
	}
	require.Equal(t, len(ops)-len(a.rest), n)
	return a
}

// TestDenialsLeaveNoTrace checks that Denials changes nothing. Two tables get the same history, and one of them is
// also asked for denials, at its time or ahead of it. Every answer must equal the decision of a copy, and both tables
// must end in the same state.
func TestDenialsLeaveNoTrace(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	answered, total := map[engine.Algorithm]int{}, 0
	for seed := range uint64(120) {
		rng, stored := seeded(seed+3000), entries{}
		leader, follower := metaTable(4), metaTable(16)
		for _, b := range someBlocks(seed, 60, 200) {
			at := b.at
			if rng.IntN(2) == 0 {
				at.NowNs += rng.Int64N(1 << rng.IntN(50))
			}
			require.NoError(t, follower.Drain(500, into(t, stored)))
			expect := make([]engine.Decision, len(b.ops))
			copied := loaded(t, at, stored, 2)
			copied.Decide(at, b.ops, expect)

			a := askDenials(t, leader, at, b.ops)
			for i, denied := range a.denied {
				if denied {
					require.Equal(t, expect[i], a.out[i], "seed %d, %s", seed, describe(b.ops[i]))
					answered[b.ops[i].Limit.Algorithm]++
				}
				if traceless(b.ops[i], expect[i]) {
					total++
				}
			}
			var got, want [200]engine.Decision
			leader.Decide(b.at, a.rest, got[:])
			follower.Decide(b.at, a.rest, want[:])
			require.Equal(t, want, got)
			require.Equal(t, follower.StateHash(b.at), leader.StateHash(b.at), "seed %d", seed)
		}
	}
	t.Logf("answered %v, of about %d", answered, total)
	for _, a := range everyAlgorithm {
		require.Greater(t, answered[a], 10, "%v", a)
	}
}

// traceless estimates whether Denials could answer an operation. It does not know other limits in force, or earlier
// operations of the same batch.
func traceless(op engine.Op, d engine.Decision) bool {
	return op.Code == engine.OpTake && op.Cost > 0 && !op.Dry && len(op.ID) == 0 && d.Status == engine.OK &&
		d.Allowed == 0
}

// TestDenialsAreAnswered checks each reason to answer an operation or not.
func TestDenialsAreAnswered(t *testing.T) {
	key := []byte("key")
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		late := engine.Op{Key: key, Limit: l, Cost: 1, Text: []byte("late"), TTLNs: 60e9}
		answers := func(ops ...engine.Op) (denied []bool) {
			return askDenials(t, b.table, engine.Stamp{NowNs: b.nowNs}, ops).denied
		}
		require.Equal(t, []bool{false}, answers(late), "an operation that fits must not be answered")
		tooMuch := late
		tooMuch.Cost = 100
		require.Equal(t, []bool{true}, answers(tooMuch),
			"an operation that never fits must be answered, even on an idle key")
		require.EqualValues(t, 10, b.admits(l, 10))

		look, dry, withID, wider := late, late, late, late
		look.Cost, dry.Dry, withID.ID, wider.Limit.Max = 0, true, []byte("id"), l.Max+1
		reset := engine.Op{Code: engine.OpReset, Key: key}
		before := b.table.Stats(engine.Stamp{NowNs: b.nowNs})
		require.Equal(t, []bool{true, true}, answers(late, late))
		require.Equal(t, []bool{false}, answers(look))
		require.Equal(t, []bool{false}, answers(dry))
		require.Equal(t, []bool{false}, answers(withID))
		require.Equal(t, []bool{false}, answers(wider),
			"an operation must not be answered if its limit takes effect or fits")
		require.Equal(t, []bool{true, false, false}, answers(late, reset, late),
			"operations on one key must keep their order")
		after := b.table.Stats(engine.Stamp{NowNs: b.nowNs})
		require.Equal(t, before.Denied[l.Algorithm]+3, after.Denied[l.Algorithm])
		requireForOne(t, []bool{false, true}, func(other string) []bool {
			elsewhere := tooMuch
			elsewhere.Key = []byte(other)
			return answers(reset, elsewhere)
		})

		b.do(engine.Op{Code: engine.OpReset})
		b.do(engine.Op{Code: engine.OpBlock, TTLNs: engine.Never})
		require.Equal(t, []bool{true, false}, answers(late, look), "a block must deny, and a look must not be answered")
	})
}

// TestDenialsComeAfterWhatConcernsTheirKey checks a reset of a policy's limiter by the limiter's own name. Denials then
// answers no later check of the same key, but still answers checks of other keys.
func TestDenialsComeAfterWhatConcernsTheirKey(t *testing.T) {
	at, table := engine.Stamp{NowNs: 1e18}, engine.NewTable(engine.Options{})
	decideAt(table, at, setPolicy("p", engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(1)}}))
	for _, key := range append([]string{"key"}, otherKeys...) {
		require.EqualValues(t, 1, decideAt(table, at, check(1, "p", key)).Allowed)
	}
	again := engine.Op{Code: engine.OpReset, Key: []byte("policy|p|0|key")}
	requireForOne(t, []bool{true, false, false, true}, func(other string) []bool {
		return askDenials(t, table, at,
			[]engine.Op{check(1, "p", "key"), again, check(1, "p", "key"), check(1, "p", other)}).denied
	})
}

var otherKeys = []string{"another", "a third", "a fourth"}

// requireForOne checks that ask returns what is wanted for at least one of otherKeys. Denials compares keys by 12 bits of
// their hashes, so one other key in 4,096 counts as the same key.
func requireForOne(t *testing.T, want []bool, ask func(other string) []bool) {
	t.Helper()
	var got []bool
	for _, key := range otherKeys {
		if got = ask(key); slices.Equal(want, got) {
			return
		}
	}
	require.Equal(t, want, got)
}

// TestDenialsOfLongLogs checks that denials are answered from a log whose older part has left the window, once a
// decision has dropped that part.
func TestDenialsOfLongLogs(t *testing.T) {
	b := newProbe()
	l := windowOf(engine.SlidingLog, 1e9, 1000)
	for range 1000 {
		b.nowNs += 1e6
		b.take(l, 1)
	}
	op := engine.Op{Key: []byte("key"), Limit: l, Cost: 900}
	ask := func(at engine.Stamp) bool { return askDenials(t, b.table, at, []engine.Op{op}).denied[0] }
	require.True(t, ask(engine.Stamp{NowNs: b.nowNs}))
	require.True(t, ask(engine.Stamp{NowNs: b.nowNs + 1e6}), "about one unit must have left the window")
	require.False(t, ask(engine.Stamp{NowNs: b.nowNs + 500e6}))
	b.nowNs += 500e6
	require.Zero(t, b.do(op).Allowed)
	require.True(t, ask(engine.Stamp{NowNs: b.nowNs}))
}

// TestDenialsAllocateNothing checks that Denials does not allocate, whether it answers or not.
func TestDenialsAllocateNothing(t *testing.T) {
	for _, cost := range []int64{1, 100} {
		table, ops := engine.NewTable(engine.Options{}), make([]engine.Op, 128)
		for i := range ops {
			ops[i] = engine.Op{Key: keyOf(i), Limit: bucketOf(1, 1e9, 10), Cost: cost}
		}
		out, denied := make([]engine.Decision, len(ops)), make([]bool, len(ops))
		require.Zero(t, testing.AllocsPerRun(10, func() { table.Denials(engine.Stamp{NowNs: 1e18}, ops, out, denied) }))
	}
}
