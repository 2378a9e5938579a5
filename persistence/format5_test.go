package persistence

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// The last version with format 5 wrote testdata/format5, after the operations of checksOfPolicies. Its limiters of one
// policy and key are stored one by one, in lanes of their own, and it has limiters that a later change removed.

// checksOfPolicies returns operations on the limiters of two policies, in two parts. A flush followed each part. All
// limiters of the first policy share an entry. One of the second has an entry of its own.
func checksOfPolicies() (first, second []engine.Op) {
	hour := int64(time.Hour)
	limit := func(l engine.Limit) engine.PolicyLimit { return engine.PolicyLimit{Limit: l} }
	policies := map[string][]engine.PolicyLimit{
		"four": {
			limit(engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: hour}, Max: 100}),
			limit(engine.Limit{Algorithm: engine.LeakyBucket, Rate: engine.Rate{Units: 2, PerNs: hour}, Max: 200}),
			limit(engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.FromFirst, WindowNs: 24 * hour, Max: 300}),
			limit(engine.Limit{Algorithm: engine.SlidingCounter, WindowNs: 48 * hour, Max: 400}),
		},
		"mixed": {
			limit(engine.Limit{Algorithm: engine.SlidingLog, WindowNs: 24 * hour, Max: 100}),
			limit(engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: hour}, Max: 200}),
			limit(engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 300}),
		},
	}
	for _, name := range []string{"four", "mixed"} {
		first = append(first, engine.Op{Code: engine.OpPolicy, Key: []byte(name),
			Policy: &engine.PolicyChange{Terms: &engine.Policy{Limits: policies[name]}}})
		for i := range 40 {
			check := engine.Op{Code: engine.OpCheck, Text: []byte(name), Key: fmt.Appendf(nil, "key-%d", i), Cost: 3}
			first = append(first, check)
			if i%2 == 0 {
				second = append(second, check)
			}
			if i%5 == 0 {
				limiter := engine.LimiterName(name, i/5%4, check.Key)
				second = append(second, engine.Op{Code: engine.OpReset, Key: limiter})
			}
		}
	}
	return first, second
}

// TestADirectoryOfFormat5 starts from a directory of format 5, stores newer changes beside the older ones, and starts
// again and again: each time the newest change of each limiter must win.
func TestADirectoryOfFormat5(t *testing.T) {
	fs, src := fromTestdata(t, "format5/standalone"), &fakeSource{wall: noon}
	n := mustStart(t, nodeOptions(t, fs, src))
	require.Equal(t, formatText(formatVersion), string(readFile(t, fs, dataDir+"/FORMAT")),
		"an older version must not start from it")
	want := mustStart(t, nodeOptions(t, vfs.NewMem(), &fakeSource{wall: noon}))
	first, second := checksOfPolicies()
	for _, op := range append(first, second...) {
		decide(t, want, op)
	}
	require.Len(t, look(want), 266)
	require.Equal(t, look(want), look(n))
	for range 10 {
		for i, op := range second {
			if i%3 > 0 {
				require.Equal(t, decide(t, want, op), decide(t, n, op))
			}
		}
		require.NoError(t, n.Close())
		n = mustStart(t, nodeOptions(t, fs, src))
		require.Equal(t, look(want), look(n), "old and new changes must come back together")
	}
	require.NoError(t, n.Close())
	require.NoError(t, want.Close())
}

// TestAnImageOfVersion4 loads an image of version 4, writes newer changes beside the older ones, and loads the result.
func TestAnImageOfVersion4(t *testing.T) {
	m := mustOpenImages(t, fromTestdata(t, "format5/images"))
	table, at := engine.NewTable(engine.Options{TrackChanges: true}), engine.Stamp{NowNs: noon}
	first, second := checksOfPolicies()
	apply := func(to *engine.Table, ops []engine.Op) { to.Decide(at, ops, make([]engine.Decision, len(ops))) }
	apply(table, first)
	apply(table, second)
	list, err := m.List()
	require.NoError(t, err)
	id := list[0].ID
	for i := range uint64(5) {
		loaded := engine.NewTable(engine.Options{TrackChanges: true})
		require.NoError(t, m.Load(id, func([]byte) (engine.Stamp, error) { return at, nil }, loaded))
		require.Equal(t, table.StateHash(at), loaded.StateHash(at))
		apply(table, second[i:])
		apply(loaded, second[i:])
		write(t, m, loaded)
		id = seal(t, m, 10+i).ID
	}
	require.NoError(t, m.Close())
}

// TestABackupOfVersion1 restores a backup that the last version with format 5 made.
func TestABackupOfVersion1(t *testing.T) {
	f, err := fromTestdata(t, "format5").Open(dataDir + "/backup")
	require.NoError(t, err)
	to, src := vfs.NewMem(), &fakeSource{wall: noon}
	_, err = Restore(StoreOptions{Dir: dataDir, FS: to, Logger: quiet, OnFatal: mustNotStop(t)}, f)
	require.NoError(t, errors.Join(err, f.Close()))
	restored := mustStart(t, nodeOptions(t, to, src))
	live := mustStart(t, nodeOptions(t, fromTestdata(t, "format5/standalone"), src))
	require.Equal(t, look(live), look(restored))
	require.NoError(t, errors.Join(restored.Close(), live.Close()))
}
