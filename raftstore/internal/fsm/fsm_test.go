package fsm

import (
	"math"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/wire"
)

// testMachine is an FSM on a file system in memory, with the errors that it passed to Fatal.
type testMachine struct {
	*FSM
	t     *testing.T
	index uint64
	term  uint64 // of the log
	fatal []error
}

func newTestMachine(t *testing.T) *testMachine {
	images, err := persistence.OpenImages(persistence.StoreOptions{Dir: "table", FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { images.Close() })
	m := &testMachine{FSM: New(engine.Options{}, 1), t: t, term: 1}
	m.Source, m.Images = persistence.SystemSource(), images
	m.Answers = func(uint64) []engine.Decision { return nil }
	m.Founded = func(Constants) {}
	m.FSM.Fatal = func(err error) { m.fatal = append(m.fatal, err) }
	return m
}

// entry applies an entry of the log's term with a header, and returns the answers.
func (m *testMachine) entry(h wire.Header, ops ...engine.Op) (any, []engine.Decision) {
	b := queue.NewBatch(h.Kind, 1)
	b.Append(ops, false)
	h.Put(b.Data)
	m.Answers = func(uint64) []engine.Decision { return b.Answers() }
	m.index++
	answer := m.Apply(&raft.Log{Index: m.index, Term: m.term, Type: raft.LogCommand, Data: b.Data})
	return answer, b.Out
}

var bucket = engine.Op{
	Key: []byte("key"), Cost: 1,
	Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Second)}, Max: 2},
}

func at(ms int64) engine.Stamp { return engine.Stamp{NowNs: 1e15 + ms*1e6} }

// TestAnEntryOfAnotherTermIsVoid checks that an entry stamped in another term than the log's has no effect, because
// its clock may be ahead.
func TestAnEntryOfAnotherTermIsVoid(t *testing.T) {
	m := newTestMachine(t)
	answer, _ := m.entry(wire.Header{Term: 2, At: at(0)}, bucket)
	require.ErrorIs(t, answer.(error), limiter.ErrTryAgain)
	require.Zero(t, m.State.At.NowNs)
	answer, out := m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	require.Nil(t, answer)
	require.EqualValues(t, 1, out[0].Remaining, "the void entry must not take units")
}

func TestTimeNeverGoesBack(t *testing.T) {
	m := newTestMachine(t)
	m.entry(wire.Header{Term: 1, At: at(5000)}, bucket, bucket)
	_, out := m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	require.Zero(t, out[0].Allowed)
	require.EqualValues(t, 1000, out[0].RetryMs, "the wait must count from 5 s, not from 0")
	require.Equal(t, at(5000), m.lastStamp())
}

func (m *testMachine) lastStamp() engine.Stamp {
	stamp, _ := m.Last()
	return stamp
}

func TestADifferentHistoryIsReported(t *testing.T) {
	m := newTestMachine(t)
	var differences []Difference
	m.Differs = func(d Difference) { differences = append(differences, d) }
	m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	index, hash := m.LastHistory()
	m.entry(wire.Header{Term: 1, At: at(1), CheckIndex: index, CheckHash: hash}, bucket)
	require.Empty(t, differences)
	m.entry(wire.Header{Term: 1, At: at(2), CheckIndex: 10_000, CheckHash: 1}, bucket)
	require.Empty(t, differences, "an entry that the node does not remember must not count as a difference")
	m.entry(wire.Header{Term: 1, At: at(2), CheckIndex: index, CheckHash: hash + 1}, bucket)
	require.Equal(t, []Difference{{Index: index, Mine: hash, Theirs: hash + 1}}, differences)
	require.Empty(t, m.fatal, "a difference must not stop the node, because another node may be wrong")
}

func TestWhatCannotBeReadEndsTheNode(t *testing.T) {
	newer := make([]byte, wire.HeaderLen)
	newer[0] = wire.Version + 1
	malformed := make([]byte, wire.HeaderLen, wire.HeaderLen+1)
	wire.Header{Term: 1, At: at(0)}.Put(malformed)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"a newer version": {newer, failure.ErrNewer},
		"too short":       {[]byte{wire.Version}, failure.ErrBadEntry},
		"a cut body":      {append(malformed, 2), failure.ErrBadEntry},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTestMachine(t)
			m.Apply(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: c.data})
			require.Len(t, m.fatal, 1)
			require.ErrorIs(t, m.fatal[0], c.want)
			index, _ := m.LastHistory()
			require.Zero(t, index, "the entry must not be applied")
		})
	}
}

// TestTheHistoryTellsAnswersApart checks that nodes with the same entries and different answers have different
// histories.
func TestTheHistoryTellsAnswersApart(t *testing.T) {
	one, other := newTestMachine(t), newTestMachine(t)
	other.Table.Load().Decide(at(0), []engine.Op{bucket}, make([]engine.Decision, 1))
	for _, m := range []*testMachine{one, other} {
		m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	}
	_, a := one.LastHistory()
	_, b := other.LastHistory()
	require.NotEqual(t, a, b)
}

// TestImageComesBack checks that a restored FSM has the state, the time and the history of the image's entry.
func TestImageComesBack(t *testing.T) {
	m := newTestMachine(t)
	for i := range int64(100) {
		op := bucket
		op.Key = []byte{byte(i)}
		m.entry(wire.Header{Term: 1, At: at(i)}, op)
	}
	require.NoError(t, m.Precopy(math.MaxInt64))
	m.entry(wire.Header{Term: 1, At: at(200)}, bucket)
	want, hash := m.State, m.Table.Load().StateHash(m.lastStamp())
	taken, err := m.Snapshot()
	require.NoError(t, err)
	m.entry(wire.Header{Term: 1, At: at(300)}, bucket)
	store := images.Store{Images: m.Images}
	to, err := store.Create(1, m.index-1, 1, raft.Configuration{}, 0, nil)
	require.NoError(t, err)
	require.NoError(t, taken.Persist(to))
	require.NoError(t, to.Close())

	_, from, err := store.Open(to.ID())
	require.NoError(t, err)
	defer from.Close()
	require.NoError(t, m.Restore(from))
	require.Equal(t, want, m.State)
	require.Equal(t, hash, m.Table.Load().StateHash(m.lastStamp()))
	_, out := m.entry(wire.Header{Term: 1, At: at(200)}, bucket)
	require.EqualValues(t, 0, out[0].Remaining)
	require.Empty(t, m.fatal)
}

func TestClearReachesTheImages(t *testing.T) {
	m := newTestMachine(t)
	m.entry(wire.Header{Term: 1, At: at(0)}, bucket)
	require.NoError(t, m.Precopy(math.MaxInt64))
	m.entry(wire.Header{Kind: wire.Clear, Term: 1, At: at(1)})
	taken, err := m.Snapshot()
	require.NoError(t, err)
	store := images.Store{Images: m.Images}
	to, err := store.Create(1, m.index, 1, raft.Configuration{}, 0, nil)
	require.NoError(t, err)
	require.NoError(t, taken.Persist(to))
	_, from, err := store.Open(to.ID())
	require.NoError(t, err)
	defer from.Close()
	require.NoError(t, m.Restore(from))
	require.Zero(t, m.Table.Load().Len(m.lastStamp()))
}
