package persistence_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
)

// BenchmarkFlush measures the cost of saving a key when every key changes between two flushes: a key of one bucket, and
// a key of a policy with four buckets. It includes merges in the background.
func BenchmarkFlush(b *testing.B) {
	bucket := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 1e6}
	var four engine.Policy
	for i := range int64(4) {
		limit := bucket
		limit.Max += i
		four.Limits = append(four.Limits, engine.PolicyLimit{Limit: limit})
	}
	b.Run("bucket", func(b *testing.B) { benchmarkFlush(b, nil, engine.Op{Limit: bucket, Cost: 1}) })
	b.Run("four limits", func(b *testing.B) {
		benchmarkFlush(b, &four, engine.Op{Code: engine.OpCheck, Text: []byte("four"), Cost: 1})
	})
}

// benchmarkFlush repeats an operation for each of many keys before each flush. policy becomes the policy "four".
func benchmarkFlush(b *testing.B, policy *engine.Policy, op engine.Op) {
	const keys = 100_000
	store, err := persistence.OpenStore(persistence.StoreOptions{Dir: b.TempDir()})
	require.NoError(b, err)
	defer store.Close()
	table := engine.NewTable(engine.Options{TrackChanges: true})
	require.NoError(b, store.Load(engine.Stamp{NowNs: 1}, table))
	require.NoError(b, store.Begin(persistence.Record{}))
	ops, out := make([]engine.Op, keys), make([]engine.Decision, keys)
	for i := range ops {
		ops[i] = op
		ops[i].Key = fmt.Appendf(nil, "key:%011d", i*7919%keys)
	}
	if policy != nil {
		set := engine.Op{Code: engine.OpPolicy, Key: []byte("four"), Policy: &engine.PolicyChange{Terms: policy}}
		table.Decide(engine.Stamp{NowNs: 1e18}, []engine.Op{set}, out[:1])
	}
	record := func() persistence.Record { return persistence.Record{LimiterNs: 1e18} }
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		for i := range ops { // at different times, because equal states would be stored as one
			table.Decide(engine.Stamp{NowNs: 1e18 + int64(n*keys+i)*7919}, ops[i:i+1], out[:1])
		}
		b.StartTimer()
		require.NoError(b, store.Flush(table, record, false))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}
