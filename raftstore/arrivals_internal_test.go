package raftstore

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// setSource is hardware that shows what it is told.
type setSource struct{ rawNs, wallNs int64 }

func (s *setSource) MonotonicNs() int64 { return s.rawNs }
func (s *setSource) WallNs() int64      { return s.wallNs }

func commands(term uint64, indexes ...uint64) (ls []*raft.Log) {
	for _, i := range indexes {
		ls = append(ls, &raft.Log{Index: i, Term: term, Type: raft.LogCommand})
	}
	return ls
}

// arrivalsAt opens a log that has entries 1 to 3 of term 1, at a time.
func arrivalsAt(t *testing.T, src *setSource) *arrivals {
	store := raft.NewInmemStore()
	require.NoError(t, store.StoreLogs(commands(1, 1, 2, 3)))
	require.NoError(t, store.SetUint64(keyCurrentTerm, 1))
	a, err := noteArrivals(guard(store, func(err error) { t.Error(err) }), src)
	require.NoError(t, err)
	return a
}

// TestArrivals: no entry may seem to have arrived before it was stamped.
func TestArrivals(t *testing.T) {
	src := &setSource{rawNs: 100}
	a := arrivalsAt(t, src)
	src.rawNs = 200
	require.Equal(t, arrival{3, 100, false}, a.of(3), "it was there at the start")
	require.NoError(t, a.StoreLogs(commands(1, 4)))
	src.rawNs = 300
	require.Equal(t, arrival{4, 200, true}, a.of(4), "applied later than it arrived")

	require.NoError(t, a.SetUint64(keyCurrentTerm, 2))
	require.NoError(t, a.StoreLogs(commands(1, 5)))
	require.Equal(t, arrival{5, 300, false}, a.of(5), "a later leader sends what an earlier one stamped")

	require.NoError(t, a.StoreLogs(commands(2, 2)))
	src.rawNs = 400
	require.Equal(t, arrival{2, 300, true}, a.of(2), "another entry in the place of one that was there")
	require.Equal(t, arrival{3, 400, true}, a.of(3), "what was behind it is gone, whatever comes")
	require.Equal(t, arrival{1, 100, false}, a.of(1))
}

// TestALongQueueOfArrivals: an entry that is not remembered counts from now.
func TestALongQueueOfArrivals(t *testing.T) {
	src := &setSource{rawNs: 100}
	a := arrivalsAt(t, src)
	for i := range uint64(maxArrivals + 1) {
		require.NoError(t, a.StoreLogs(commands(1, 4+i)))
	}
	src.rawNs = 900
	require.Equal(t, arrival{4, 900, true}, a.of(4))
	require.Equal(t, arrival{5, 100, true}, a.of(5))
}

func tick(t *testing.T, m *testMachine, at engine.Stamp, body string) {
	data := append(make([]byte, wire.HeaderLen), body...)
	wire.Header{Kind: wire.Tick, Term: 1, At: at}.Put(data)
	m.index++
	require.Nil(t, m.Apply(&raft.Log{Index: m.index, Term: 1, Type: raft.LogCommand, Data: data}))
}

// TestNotesOfWallClocks: a note counts while it says how clocks stood at the last
// entry, and anything in its place is no harm.
func TestNotesOfWallClocks(t *testing.T) {
	m := newTestMachine(t)
	noted := func() *wallNote { s, _ := m.lastArrival(); return s.walls() }
	tick(t, m, at(0), "")
	require.Nil(t, noted(), "a tick of an older weir")
	tick(t, m, at(1), "no JSON")
	require.Nil(t, noted())
	tick(t, m, at(2), `{"n0":7}`)
	require.Equal(t, &wallNote{Term: 1, AtNs: at(2).NowNs, AheadNs: map[string]int64{"n0": 7}}, noted())
	tick(t, m, at(3), "")
	require.NotNil(t, noted())
	m.entry(wire.Header{Term: 1, At: at(2 + noteLife.Milliseconds() + 1)}, bucket)
	require.Nil(t, noted(), "too old")

	tick(t, m, at(20_000), `{"n0":7}`)
	require.NotNil(t, noted())
	m.entry(wire.Header{Term: 1, At: at(19_999)}, bucket)
	require.Nil(t, noted(), "the leader's clock went back")

	tick(t, m, at(20_001), `{"n0":7}`)
	s, _ := m.lastArrival()
	s.Term++
	require.Nil(t, s.walls(), "another leader stamped the last entry")
	require.Empty(t, m.fatal)
}

func TestAgreedWallClocks(t *testing.T) {
	for _, c := range []struct {
		values []int64
		quorum int
		want   int64
		ok     bool
	}{
		{[]int64{5}, 1, 5, true},
		{[]int64{5, 900, 4}, 2, 5, true},
		{[]int64{5, -900, 4}, 2, 4, true},
		{[]int64{5, 900}, 2, 5, true},
		{[]int64{900}, 2, 0, false},
		{nil, 1, 0, false},
		{[]int64{900, 800, 3, 2, 1}, 3, 3, true},
	} {
		got, ok := agreed(c.values, c.quorum)
		require.Equal(t, c.want, got, "%v", c.values)
		require.Equal(t, c.ok, ok, "%v", c.values)
	}
}

// TestAWallClockIsNeverUnderstated: what was heard of another's counts on by the clock
// of this machine that shows more.
func TestAWallClockIsNeverUnderstated(t *testing.T) {
	h := heard{at: time.Now(), wallNs: 1000, rawNs: 50}
	require.GreaterOrEqual(t, h.wallNow(40), int64(1000), "the monotonic clock went back")
	require.Equal(t, 1000+int64(time.Hour), h.wallNow(50+int64(time.Hour)))
}
