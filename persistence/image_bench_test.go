package persistence

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// BenchmarkImage measures an image of which a hundredth has changed, at least 1000 entries. The store stays open
// between images, or it is closed after each.
func BenchmarkImage(b *testing.B) {
	for _, entries := range []int{1000, 1_000_000} {
		for _, eager := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/eager=%v", entries, eager), func(b *testing.B) {
				benchmarkImage(b, entries, eager)
			})
		}
	}
}

func benchmarkImage(b *testing.B, entries int, eager bool) {
	m, err := OpenImages(StoreOptions{Dir: b.TempDir(), Logger: quiet, eager: eager})
	require.NoError(b, err)
	table := engine.NewTable(engine.Options{TrackChanges: true})
	ops, out := make([]engine.Op, 1000), make([]engine.Decision, 1000)
	limit := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e15}, Max: 1000}
	at, decided, images := engine.Stamp{NowNs: noon}, 0, uint64(0)
	decide := func(n int) {
		for ; n > 0; n -= len(ops) {
			for i := range ops {
				ops[i] = engine.Op{Key: fmt.Appendf(nil, "key:%08d", decided%entries), Limit: limit, Cost: 1}
				decided++
			}
			at.NowNs++
			table.Decide(at, ops, out)
		}
	}
	image := func() {
		for more := true; more && err == nil; {
			more, err = m.Renew(table)
		}
		require.NoError(b, err)
		require.NoError(b, table.Drain(chunkEntries, m.Write))
		images++
		_, err = m.Seal(images, 1, nil, nil)
		require.NoError(b, err)
	}
	decide(entries)
	for image(); b.Loop(); image() {
		b.StopTimer()
		decide(entries / 100)
		b.StartTimer()
	}
	require.NoError(b, m.Close())
}
