package persistence

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestACursorSurvivesARestart restarts a server between the calls of a scan, each time with another number of shards.
func TestACursorSurvivesARestart(t *testing.T) {
	const keys = 3000
	fs, src := vfs.NewMem(), &fakeSource{wall: noon}
	o := nodeOptions(t, fs, src)
	n := mustStart(t, o)
	limit := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10}
	for i := range keys {
		decide(t, n, engine.Op{Key: fmt.Append(nil, "key:", i), Limit: limit, Cost: 1})
	}
	seen := map[string]bool{}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = n.Scan(cursor, 300, func(key []byte, _ engine.Algorithm) { seen[string(key)] = true })
		require.NoError(t, n.Close())
		o.Table.Shards = 1 << (len(seen) % 10)
		n = mustStart(t, o)
	}
	require.NoError(t, n.Close())
	require.Len(t, seen, keys)
}

// TestADamagedSeedIsReplaced checks that a server starts with all its state whatever its file of the seed contains, and
// then has a seed that lasts.
func TestADamagedSeedIsReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "short": withChecksum("00"), "no digits": withChecksum(fmt.Sprintf("%064s", "x")),
		"a wrong checksum": fmt.Sprintf("%064d checksum 00000000\n", 0),
	} {
		fs, src := vfs.NewMem(), &fakeSource{wall: noon}
		o := nodeOptions(t, fs, src)
		n := mustStart(t, o)
		limit := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 10}
		decide(t, n, engine.Op{Key: []byte("key"), Limit: limit, Cost: 1})
		require.NoError(t, n.Close())
		require.NoError(t, directory{fs: fs, path: dataDir}.write(seedName, seedName, text), name)
		var seeds []engine.HashSeed
		for range 2 {
			n = mustStart(t, o)
			info, found := n.Inspect([]byte("key"))
			require.True(t, found, name)
			require.EqualValues(t, 1, info.Used, name)
			seeds = append(seeds, n.store.seed)
			require.NoError(t, n.Close())
		}
		require.Equal(t, seeds[0], seeds[1], name)
		require.NotZero(t, seeds[0], name)
	}
}
