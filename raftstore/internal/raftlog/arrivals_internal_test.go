package raftlog

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// setSource is a clock that a test sets.
type setSource struct{ rawNs, wallNs int64 }

func (s *setSource) MonotonicNs() int64 { return s.rawNs }
func (s *setSource) WallNs() int64      { return s.wallNs }

func commands(term uint64, indexes ...uint64) (ls []*raft.Log) {
	for _, i := range indexes {
		ls = append(ls, &raft.Log{Index: i, Term: term, Type: raft.LogCommand})
	}
	return ls
}

// arrivalsAt opens a log that already has entries 1 to 3 of term 1.
func arrivalsAt(t *testing.T, src *setSource) *Arrivals {
	store := raft.NewInmemStore()
	require.NoError(t, store.StoreLogs(commands(1, 1, 2, 3)))
	require.NoError(t, store.SetUint64(KeyTerm, 1))
	a, err := NoteArrivals(Guard(store, func(err error) { t.Error(err) }), src)
	require.NoError(t, err)
	return a
}

// TestArrivals checks the recorded arrival of log entries. No entry may seem to arrive before it was stamped.
func TestArrivals(t *testing.T) {
	src := &setSource{rawNs: 100}
	a := arrivalsAt(t, src)
	src.rawNs = 200
	require.Equal(t, Arrival{Index: 3, RawNs: 100, Live: false}, a.Of(3), "the entry was there at the start")
	require.NoError(t, a.StoreLogs(commands(1, 4)))
	src.rawNs = 300
	require.Equal(t, Arrival{Index: 4, RawNs: 200, Live: true}, a.Of(4),
		"the arrival must be earlier than the application")

	require.NoError(t, a.SetUint64(KeyTerm, 2))
	require.NoError(t, a.StoreLogs(commands(1, 5)))
	require.Equal(t, Arrival{Index: 5, RawNs: 300, Live: false}, a.Of(5),
		"a later leader may send entries that an earlier one stamped")

	require.NoError(t, a.StoreLogs(commands(2, 2)))
	src.rawNs = 400
	require.Equal(t, Arrival{Index: 2, RawNs: 300, Live: true}, a.Of(2),
		"the entry replaced an earlier one")
	require.Equal(t, Arrival{Index: 3, RawNs: 400, Live: true}, a.Of(3), "entries after the replaced one must be gone")
	require.Equal(t, Arrival{Index: 1, RawNs: 100, Live: false}, a.Of(1))
}

// TestALongQueueOfArrivals checks that an entry whose arrival was dropped from a long queue counts as arriving when
// it is applied.
func TestALongQueueOfArrivals(t *testing.T) {
	src := &setSource{rawNs: 100}
	a := arrivalsAt(t, src)
	for i := range uint64(MaxArrivals + 1) {
		require.NoError(t, a.StoreLogs(commands(1, 4+i)))
	}
	src.rawNs = 900
	require.Equal(t, Arrival{Index: 4, RawNs: 900, Live: true}, a.Of(4))
	require.Equal(t, Arrival{Index: 5, RawNs: 100, Live: true}, a.Of(5))
}

// TestMemoryOfArrivals checks that the ring grows only while entries wait for their application.
func TestMemoryOfArrivals(t *testing.T) {
	src := &setSource{rawNs: 100}
	a := arrivalsAt(t, src)
	index := uint64(3)
	store := func() {
		index++
		src.rawNs++
		require.NoError(t, a.StoreLogs(commands(1, index)))
	}
	for range 10 * leastArrivals {
		store()
		require.Equal(t, src.rawNs, a.Of(index).RawNs)
	}
	require.Len(t, a.ring, leastArrivals)
	applied, at := index, src.rawNs
	for range 2*leastArrivals + 1 {
		store()
	}
	require.Len(t, a.ring, 4*leastArrivals)
	for i := range uint64(2*leastArrivals + 1) {
		require.Equal(t, Arrival{Index: applied + 1 + i, RawNs: at + 1 + int64(i), Live: true}, a.Of(applied+1+i))
	}
}

// TestAGapInArrivals checks that no entry is forgotten when the ring grows although some places are empty, as after an
// image of the leader.
func TestAGapInArrivals(t *testing.T) {
	src := &setSource{rawNs: 100}
	a := arrivalsAt(t, src)
	const first = 100 * leastArrivals // in the first place of the ring
	stored := []uint64{first, first + 1, first + leastArrivals + 1}
	for _, index := range stored {
		require.NoError(t, a.StoreLogs(commands(1, index)))
	}
	require.Len(t, a.ring, 2*leastArrivals)
	src.rawNs = 900
	for _, index := range stored {
		require.Equal(t, Arrival{Index: index, RawNs: 100, Live: true}, a.Of(index))
	}
}

// TestArrivalsOfReplacedEntries checks that entries which replace applied ones are remembered like others. An image
// of a recovery may be older than the state of this node.
func TestArrivalsOfReplacedEntries(t *testing.T) {
	src := &setSource{rawNs: 100}
	a := arrivalsAt(t, src)
	a.Of(10 * leastArrivals)
	src.rawNs = 200
	for i := range uint64(leastArrivals + 1) {
		require.NoError(t, a.StoreLogs(commands(1, 4+i)))
	}
	src.rawNs = 900
	require.EqualValues(t, 200, a.Of(4).RawNs)
}
