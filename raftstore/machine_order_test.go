package raftstore

import (
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestAnEntryOfAnOlderTermIsVoid: a leader stamped an entry, lost its leadership, and led
// again before the Raft library took the entry. The stamp is of the older term's clock.
func TestAnEntryOfAnOlderTermIsVoid(t *testing.T) {
	m := newTestMachine(t)
	m.term = 3
	_, out := m.entry(wire.Header{Term: 3, At: at(0)}, bucket)
	require.EqualValues(t, 1, out[0].Remaining)
	before := m.state
	for _, older := range []uint64{1, 2} {
		answer, out := m.entry(wire.Header{Term: older, At: at(9000)}, bucket)
		require.ErrorIs(t, answer.(error), failure.ErrTryAgain)
		require.Empty(t, out)
		require.Equal(t, before.At, m.state.At, "its stamp counts for nothing")
	}
	require.Equal(t, before.Index+2, m.state.Index)
	require.NotEqual(t, before.History, m.state.History, "the entries are part of the history all the same")
	_, out = m.entry(wire.Header{Term: 3, At: at(0)}, bucket)
	require.Zero(t, out[0].Remaining, "the void entries took nothing, and refilled nothing")
}

// foundAs applies a founding entry.
func (m *testMachine) foundAs(f clusterConstants) any {
	data := append(make([]byte, wire.HeaderLen), f.encode()...)
	wire.Header{Kind: wire.Bootstrap, Term: 1, At: at(0)}.Put(data)
	m.index++
	return m.Apply(&raft.Log{Index: m.index, Term: 1, Type: raft.LogCommand, Data: data})
}

// TestASecondFoundingIsIgnored: the constants of a cluster and its table stay as the first
// founding entry made them.
func TestASecondFoundingIsIgnored(t *testing.T) {
	m := newTestMachine(t)
	var told []clusterConstants
	m.founded = func(f clusterConstants) { told = append(told, f) }
	first := clusterConstants{ClusterID: "first", IDLifetimeNs: 7}
	require.Nil(t, m.foundAs(first))
	m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	table := m.table.Load()
	for _, again := range []clusterConstants{{ClusterID: "second", IDLifetimeNs: 8}, first} {
		require.Nil(t, m.foundAs(again))
	}
	require.Equal(t, first, m.state.Founding)
	require.EqualValues(t, 7, m.options.IDLifetimeNs)
	require.Equal(t, []clusterConstants{first}, told)
	require.Same(t, table, m.table.Load())
	_, out := m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	require.Zero(t, out[0].Remaining, "what was taken before is still taken")
	require.Empty(t, m.fatal)
}

// TestTheHistoryHasEveryFieldOfADecision: two nodes whose answers differ in one field, by
// little or by much, have different histories. Locked is no part of it, see foldDecisions.
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
				require.Equal(t, before, foldDecisions(1, []engine.Decision{other}), "a member of the version before has none")
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

// TestTheHistoryHasTheOrder: of answers, and of entries.
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

// TestStampsThatGoBackAreCounted: each counts as the one before.
func TestStampsThatGoBackAreCounted(t *testing.T) {
	m := newTestMachine(t)
	for i, c := range []struct{ ms, at, clamps int64 }{{5, 5, 0}, {5, 5, 0}, {3, 5, 1}, {4, 5, 2}, {6, 6, 2}} {
		m.entry(wire.Header{Term: 1, At: at(c.ms)}, bucket)
		require.Equal(t, at(c.at), m.state.At, "entry %d", i)
		require.Equal(t, c.clamps, m.clamps.Load(), "entry %d", i)
	}
}

// TestATestClockGoesOnFromTheLastEntry: the end of an entry that moved it may be unknown to the
// leader, whose own clock then stays where it was.
func TestATestClockGoesOnFromTheLastEntry(t *testing.T) {
	m := newTestMachine(t)
	m.entry(wire.Header{Term: 1, At: at(7000)}, bucket)
	l := &leadership{host: &host{}, machine: m.machine}
	behind := &leaderTerm{clock: persistence.StartTestClock(at(4000))}
	ahead := &leaderTerm{clock: persistence.StartTestClock(at(9000))}
	require.Equal(t, at(7500), l.stampOf(&batch{moveNs: 500e6}, behind))
	require.Equal(t, at(9500), l.stampOf(&batch{moveNs: 500e6}, ahead))
	require.Equal(t, at(4000), l.stampOf(&batch{}, behind), "it moves nothing")
}
