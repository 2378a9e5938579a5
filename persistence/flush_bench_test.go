package persistence_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
)

// BenchmarkFlush measures the cost of saving a key when every key changes between two flushes. It includes merges in
// the background.
func BenchmarkFlush(b *testing.B) {
	const keys = 100_000
	store, err := persistence.OpenStore(persistence.StoreOptions{Dir: b.TempDir()})
	require.NoError(b, err)
	defer store.Close()
	table := engine.NewTable(engine.Options{TrackChanges: true})
	require.NoError(b, store.Load(engine.Stamp{NowNs: 1}, table))
	require.NoError(b, store.Begin(persistence.Record{}))
	ops, out := make([]engine.Op, keys), make([]engine.Decision, keys)
	limit := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 1e6}
	for i := range ops {
		ops[i] = engine.Op{Key: fmt.Appendf(nil, "key:%011d", i*7919%keys), Limit: limit, Cost: 1}
	}
	record := func() persistence.Record { return persistence.Record{LimiterNs: 1e18} }
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		table.Decide(engine.Stamp{NowNs: 1e18 + int64(n)}, ops, out)
		b.StartTimer()
		require.NoError(b, store.Flush(table, record, false))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}
