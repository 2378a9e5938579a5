package persistence

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

const benchNow = int64(1e18)

// fillStore writes n token buckets into a new directory. They are far from idle.
func fillStore(t testing.TB, dir string, n int) {
	s, err := OpenStore(StoreOptions{Dir: dir, Logger: slog.Default()})
	require.NoError(t, err)
	require.NoError(t, s.Begin(at()))
	table := engine.NewTable(engine.Options{TrackChanges: true})
	const batch = 1024
	ops, out := make([]engine.Op, 0, batch), make([]engine.Decision, batch)
	limit := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 3600e9}, Max: 100}
	for i := range n {
		ops = append(ops, engine.Op{Key: fmt.Appendf(nil, "client:%08d", i), Cost: 50, Limit: limit})
		if len(ops) == batch || i == n-1 {
			table.Decide(engine.Stamp{NowNs: benchNow}, ops, out)
			ops = ops[:0]
		}
		if i%1_000_000 == 0 || i == n-1 {
			require.NoError(t, s.Flush(table, at, true))
		}
	}
	require.NoError(t, s.Close())
}

// loadStore opens a directory and loads it into a new table.
func loadStore(t testing.TB, dir string) *engine.Table {
	s, err := OpenStore(StoreOptions{Dir: dir, Logger: slog.Default()})
	require.NoError(t, err)
	table := engine.NewTable(engine.Options{TrackChanges: true})
	require.NoError(t, s.Load(engine.Stamp{NowNs: benchNow}, table))
	require.NoError(t, s.Begin(at()))
	require.NoError(t, s.abandon())
	return table
}

func TestProgressOfALoad(t *testing.T) {
	const n = 3000
	dir, p := t.TempDir(), &Progress{}
	require.Equal(t, "looking for stored state", p.String())
	fillStore(t, dir, n)
	s, err := OpenStore(StoreOptions{Dir: dir, Progress: p})
	require.NoError(t, err)
	require.NoError(t, s.Load(engine.Stamp{NowNs: benchNow}, engine.NewTable(engine.Options{})))
	require.NoError(t, s.abandon())
	require.EqualValues(t, n, p.changes.Load())
	require.Regexp(t, `^the state is loaded, the start goes on: 3000 changes, \d+ bytes$`, p.String())
	p.begin(4)
	p.add(1)
	require.Regexp(t, `^loading the state: 3000 changes, \d+ bytes, 25 %, about 0s left$`, p.String())
}

func TestLoadOfManyKeys(t *testing.T) {
	const n = 200_000
	dir := t.TempDir()
	fillStore(t, dir, n)
	table := loadStore(t, dir)
	require.EqualValues(t, n, table.Len(engine.Stamp{NowNs: benchNow}))
	for _, i := range []int{0, 1, n / 2, n - 1} {
		info, ok := table.Inspect(engine.Stamp{NowNs: benchNow}, fmt.Appendf(nil, "client:%08d", i))
		require.True(t, ok)
		require.EqualValues(t, 50, info.Used)
	}
	changes := 0
	require.NoError(t, table.Drain(chunkEntries, func(c []engine.Change) error { changes += len(c); return nil }))
	require.Zero(t, changes, "a load must not count as changes")
}

// BenchmarkFlush measures the flush of a second in which 100,000 keys changed.
func BenchmarkFlush(b *testing.B) {
	s, err := OpenStore(StoreOptions{Dir: b.TempDir(), Logger: slog.Default()})
	require.NoError(b, err)
	require.NoError(b, s.Begin(at()))
	defer s.Close()
	changes := &repeated{}
	for i := range 100_000 {
		changes.chunk = append(
			changes.chunk, engine.Change{Key: fmt.Appendf(nil, "client:%08d", i), Value: make([]byte, 24)})
	}
	for b.Loop() {
		require.NoError(b, s.Flush(changes, at, true))
	}
}

// repeated is a Drainer that hands out the same changes at each Drain.
type repeated struct {
	mu    sync.Mutex
	chunk []engine.Change
}

func (r *repeated) Drain(maxChunk int, emit func([]engine.Change) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for rest := r.chunk; len(rest) > 0; rest = rest[min(maxChunk, len(rest)):] {
		if err := emit(rest[:min(maxChunk, len(rest))]); err != nil {
			return err
		}
	}
	return nil
}

func (r *repeated) Renew(uint64, int) uint64 { return 0 }

func (r *repeated) Usage() (entries, bytes int64) { return int64(len(r.chunk)), 1 << 40 }
