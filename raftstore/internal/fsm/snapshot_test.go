package fsm

import (
	"math"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/wire"
)

// persist completes a snapshot that was taken at an index.
func (m *testMachine) persist(taken raft.FSMSnapshot, index uint64) (id string, err error) {
	to, err := images.Store{Images: m.Images}.Create(1, index, 1, raft.Configuration{}, 0, nil)
	require.NoError(m.t, err)
	return idAfter(to.(*images.Sink), taken.Persist(to))
}

func idAfter(s *images.Sink, err error) (string, error) { return s.ID(), err }

// image takes and stores a whole snapshot the way the node does.
func (m *testMachine) image() string {
	require.NoError(m.t, m.Precopy(math.MaxInt64))
	taken, err := m.Snapshot()
	require.NoError(m.t, err)
	id, err := m.persist(taken, m.index)
	require.NoError(m.t, err)
	return id
}

func (m *testMachine) reload(id string) {
	_, from, err := images.Store{Images: m.Images}.Open(id)
	require.NoError(m.t, err)
	defer from.Close()
	require.NoError(m.t, m.Restore(from))
}

// same fails if the state does not have the wanted hash.
func (m *testMachine) same(want uint64) {
	m.t.Helper()
	require.Equal(m.t, want, m.Table.Load().StateHash(m.lastStamp()))
}

func (m *testMachine) hash() uint64 { return m.Table.Load().StateHash(m.lastStamp()) }

func (m *testMachine) take(key string) {
	op := bucket
	op.Key = []byte(key)
	m.entry(wire.Header{Term: 1, At: at(int64(m.index))}, op)
}

// TestAGivenUpSnapshotLosesNothing checks that the next image is complete after the Raft library took a snapshot and
// never wrote it.
func TestAGivenUpSnapshotLosesNothing(t *testing.T) {
	m := newTestMachine(t)
	m.take("before")
	m.image()
	m.take("taken at the standstill")
	_, err := m.Snapshot()
	require.NoError(t, err)
	m.take("after")
	want := m.hash()
	m.reload(m.image())
	m.same(want)
}

// TestASnapshotOfAnEmptiedTable checks that a snapshot fails if the table is cleared before it is written. The next
// image has none of the old entries.
func TestASnapshotOfAnEmptiedTable(t *testing.T) {
	m := newTestMachine(t)
	m.take("old")
	taken, err := m.Snapshot()
	require.NoError(t, err)
	index := m.index
	m.entry(wire.Header{Kind: wire.Clear, Term: 1, At: at(50)})
	m.take("new")
	_, err = m.persist(taken, index)
	require.Error(t, err, "this image would not be the state at its entry")
	want := m.hash()
	m.reload(m.image())
	m.same(want)
	require.EqualValues(t, 1, m.Table.Load().Len(m.lastStamp()))
}

// TestASnapshotOfAReplacedTable checks that changes of a replaced table do not get into the image of the new table.
func TestASnapshotOfAReplacedTable(t *testing.T) {
	m := newTestMachine(t)
	m.take("a")
	first := m.image()
	m.take("b")
	taken, err := m.Snapshot()
	require.NoError(t, err)
	index := m.index
	m.reload(first)
	m.index = 1
	m.take("c")
	_, err = m.persist(taken, index)
	require.Error(t, err)
	want := m.hash()
	m.index = 100
	m.reload(m.image())
	m.same(want)
}

// TestRestsOfASnapshotAreBounded checks that the pauses of a snapshot are proportional to its work and bounded. It
// does not pause while much log arrives, so it ends on any machine.
func TestRestsOfASnapshotAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		took, times, want time.Duration
		calm              bool
	}{
		"in proportion":       {100 * time.Microsecond, 7, 700 * time.Microsecond, true},
		"a later pass":        {100 * time.Microsecond, 0, 0, true},
		"work without a turn": {time.Second, 7, 2 * time.Millisecond, true},
		"much log":            {100 * time.Microsecond, 7, 0, false},
	} {
		require.Equal(t, c.want, pauseAfter(c.took, c.times, c.calm), name)
	}
}

// TestAnImageKeepsTheFormOfTheLog checks that an image keeps the newest wire format of the log, because the log
// entries with it may be gone.
func TestAnImageKeepsTheFormOfTheLog(t *testing.T) {
	m := newTestMachine(t)
	m.take("old")
	older := m.image()
	require.LessOrEqual(t, m.Written(), byte(wire.Oldest))
	m.entry(wire.Header{Term: 1, At: at(1), Format: wire.Version}, bucket)
	m.take("in the oldest form again")
	newer := m.image()
	m.reload(older)
	require.NotEqualValues(t, wire.Version, m.Written())
	require.Equal(t, engine.RulesOldest, m.Table.Load().Rules())
	m.reload(newer)
	require.EqualValues(t, wire.Version, m.Written())
	require.Equal(t, engine.RulesNewest, m.Table.Load().Rules())

	m.Newest = wire.Version - 1
	_, from, err := images.Store{Images: m.Images}.Open(newer)
	require.NoError(t, err)
	defer from.Close()
	require.ErrorIs(t, m.Restore(from), failure.ErrNewer)
	require.Len(t, m.fatal, 1)
}
