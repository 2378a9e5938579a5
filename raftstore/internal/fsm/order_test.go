package fsm

import (
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestAnEntryOfAnOlderTermIsVoid checks an entry that a leader stamped in an earlier term of its own. The stamp comes
// from the older term's clock, so the entry has no effect.
func TestAnEntryOfAnOlderTermIsVoid(t *testing.T) {
	m := newTestMachine(t)
	m.term = 3
	_, out := m.entry(wire.Header{Term: 3, At: at(0)}, bucket)
	require.EqualValues(t, 1, out[0].Remaining)
	before := m.State
	for _, older := range []uint64{1, 2} {
		answer, out := m.entry(wire.Header{Term: older, At: at(9000)}, bucket)
		require.ErrorIs(t, answer.(error), limiter.ErrTryAgain)
		require.Empty(t, out)
		require.Equal(t, before.At, m.State.At, "the stamp of a void entry must not count")
	}
	require.Equal(t, before.Index+2, m.State.Index)
	require.NotEqual(t, before.History, m.State.History, "void entries must still be part of the history")
	_, out = m.entry(wire.Header{Term: 3, At: at(0)}, bucket)
	require.Zero(t, out[0].Remaining, "void entries must neither take nor refill units")
}

// foundAs applies a bootstrap entry.
func (m *testMachine) foundAs(f Constants) any {
	data := append(make([]byte, wire.HeaderLen), f.Encode()...)
	wire.Header{Kind: wire.Bootstrap, Term: 1, At: at(0)}.Put(data)
	m.index++
	return m.Apply(&raft.Log{Index: m.index, Term: 1, Type: raft.LogCommand, Data: data})
}

// TestASecondFoundingIsIgnored checks that a second bootstrap entry changes neither the cluster's constants nor its
// table.
func TestASecondFoundingIsIgnored(t *testing.T) {
	m := newTestMachine(t)
	var told []Constants
	m.Founded = func(f Constants) { told = append(told, f) }
	first := Constants{ClusterID: "first", IDLifetimeNs: 7}
	require.Nil(t, m.foundAs(first))
	m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	table := m.Table.Load()
	for _, again := range []Constants{{ClusterID: "second", IDLifetimeNs: 8}, first} {
		require.Nil(t, m.foundAs(again))
	}
	require.Equal(t, first, m.State.Founding)
	require.EqualValues(t, 7, m.options.IDLifetimeNs)
	require.Equal(t, []Constants{first}, told)
	require.Same(t, table, m.Table.Load())
	_, out := m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	require.Zero(t, out[0].Remaining, "units taken earlier must stay taken")
	require.Empty(t, m.fatal)
}

// TestTheHistoryHasEveryFieldOfADecision checks that a difference in any single field of an answer changes the
// history. The field Locked is an exception; see foldDecisions.
func TestTheHistoryHasEveryFieldOfADecision(t *testing.T) {
	base := engine.Decision{Allowed: 1, Remaining: 5, RetryMs: 100, ResetMs: 200, Limit: 300}
	before := foldDecisions(1, []engine.Decision{base})
	for i := range reflect.TypeFor[engine.Decision]().NumField() {
		field := reflect.TypeFor[engine.Decision]().Field(i)
		for _, by := range []int64{1, 3, 1 << 20} {
			other := base
			v := reflect.ValueOf(&other).Elem().Field(i)
			switch {
			case field.Name == "Locked":
				other.Locked = uint16(by)
				require.Equal(t, before, foldDecisions(1, []engine.Decision{other}),
					"Locked must not change the history, because the previous version lacks it")
				continue
			case v.CanInt():
				v.SetInt(v.Int() + by)
			case v.Kind() == reflect.String:
				if by > 1 {
					continue
				}
				v.SetString("a")
			case by > 3:
				continue
			default:
				v.SetUint(v.Uint() + uint64(by))
			}
			require.NotEqual(t, before, foldDecisions(1, []engine.Decision{other}), "%s, %d more", field.Name, by)
		}
	}
}

// TestTheHistoryHasTheOrder checks that the history depends on the order of answers, and on the index, term and data
// of an entry.
func TestTheHistoryHasTheOrder(t *testing.T) {
	a, b := engine.Decision{Remaining: 1}, engine.Decision{Remaining: 2}
	require.NotEqual(t, foldDecisions(1, []engine.Decision{a, b}), foldDecisions(1, []engine.Decision{b, a}))
	l := raft.Log{Index: 1, Term: 1, Data: []byte("a")}
	for name, change := range map[string]func(*raft.Log){
		"index": func(l *raft.Log) { l.Index++ },
		"term":  func(l *raft.Log) { l.Term++ },
		"data":  func(l *raft.Log) { l.Data = []byte("b") },
	} {
		other := l
		change(&other)
		require.NotEqual(t, fold(1, &l), fold(1, &other), name)
	}
}

// TestStampsThatGoBackAreCounted checks that a stamp before the previous one is counted and replaced by the previous
// one.
func TestStampsThatGoBackAreCounted(t *testing.T) {
	m := newTestMachine(t)
	for i, c := range []struct{ ms, at, clamps int64 }{{5, 5, 0}, {5, 5, 0}, {3, 5, 1}, {4, 5, 2}, {6, 6, 2}} {
		m.entry(wire.Header{Term: 1, At: at(c.ms)}, bucket)
		require.Equal(t, at(c.at), m.State.At, "entry %d", i)
		require.Equal(t, c.clamps, m.Clamps.Load(), "entry %d", i)
	}
}

// TestTheSeedOfTheTables checks that the cluster's constants set the seed of the table. A seed of a later entry belongs
// to the state, and a table that is loaded from there has it. A second founding does not change it.
func TestTheSeedOfTheTables(t *testing.T) {
	m := newTestMachine(t)
	first := Constants{ClusterID: "first", IDLifetimeNs: 7}
	first.HashSeed[0] = 1
	require.Nil(t, m.foundAs(first))
	require.Equal(t, first.HashSeed, m.options.HashSeed)
	table := m.Table.Load()
	other := Constants{ClusterID: "second", IDLifetimeNs: 7}
	other.HashSeed[0] = 2
	require.Nil(t, m.foundAs(other))
	require.Equal(t, first, m.State.Founding)

	later := first
	later.HashSeed[0] = 3
	require.Nil(t, m.foundAs(later))
	require.Equal(t, later, m.State.Founding)
	require.Same(t, table, m.Table.Load())
	meta, err := m.Images.Seal(m.State.Index, 1, m.State.Encode(), nil)
	require.NoError(t, err)
	require.NoError(t, m.load(meta.ID))
	require.Equal(t, later.HashSeed, m.options.HashSeed)
	require.NotSame(t, table, m.Table.Load())
	require.Empty(t, m.fatal)
}
