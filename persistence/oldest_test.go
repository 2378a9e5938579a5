package persistence

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// The first commit of weir 0.1.0 wrote testdata/oldest, after the operations of storedByTheOldest. Its limiters of one
// policy and key are stored one by one, in lanes of their own, and it has limiters that a later change removed.

// fromTestdata copies a directory below testdata into memory.
func fromTestdata(t *testing.T, name string) *vfs.MemFS {
	fs := vfs.NewMem()
	ok, err := vfs.Clone(vfs.Default, fs, "testdata/"+name, dataDir)
	require.NoError(t, err)
	require.True(t, ok)
	return fs
}

// storedByTheOldest returns operations in two parts, at the time noon. A flush followed each part. The first part has
// an operation of each kind, and checks of two policies. All limiters of the first policy share an entry now. One of
// the second has an entry of its own.
func storedByTheOldest() (first, second []engine.Op) {
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
	first = append(takes(noon),
		engine.Op{Code: engine.OpTake, Key: []byte("once"), Cost: 1, ID: []byte("request-1"),
			Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: hour}, Max: 5}},
		engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:192.0.2.1"), TTLNs: hour, Text: []byte("abuse")})
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
	first = append(first, engine.Op{Code: engine.OpReserve, Text: []byte("four"), Key: []byte("key-1"), Cost: 2,
		ID: []byte("hold-1"), TTLNs: hour})
	return first, second
}

// TestADirectoryOfTheOldestFormat starts from a directory of the oldest format, stores newer changes beside the older
// ones, and starts again and again: each time the newest change of each limiter must win.
func TestADirectoryOfTheOldestFormat(t *testing.T) {
	format, err := FormatOf("testdata/oldest/standalone")
	require.NoError(t, err)
	require.Equal(t, oldestFormat, format)
	fs, src := fromTestdata(t, "oldest/standalone"), &fakeSource{wall: noon}
	n := mustStart(t, nodeOptions(t, fs, src))
	require.Equal(t, formatText(formatVersion), string(readFile(t, fs, dataDir+"/FORMAT")),
		"an older version must not start from it")
	want := mustStart(t, nodeOptions(t, vfs.NewMem(), &fakeSource{wall: noon}))
	first, second := storedByTheOldest()
	for _, op := range append(first, second...) {
		decide(t, want, op)
	}
	require.Len(t, look(want), 281)
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

// TestAnImageOfTheOldestVersion loads an image of the oldest version, writes newer changes beside the older ones, and
// loads the result.
func TestAnImageOfTheOldestVersion(t *testing.T) {
	m := mustOpenImages(t, fromTestdata(t, "oldest/images"))
	table, at := engine.NewTable(engine.Options{TrackChanges: true}), engine.Stamp{NowNs: noon}
	first, second := storedByTheOldest()
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

// TestABackupOfTheOldestVersion restores a backup of the oldest version.
func TestABackupOfTheOldestVersion(t *testing.T) {
	f, err := fromTestdata(t, "oldest").Open(dataDir + "/backup")
	require.NoError(t, err)
	to, src := vfs.NewMem(), &fakeSource{wall: noon}
	_, err = Restore(StoreOptions{Dir: dataDir, FS: to, Logger: quiet, OnFatal: mustNotStop(t)}, f)
	require.NoError(t, errors.Join(err, f.Close()))
	restored := mustStart(t, nodeOptions(t, to, src))
	live := mustStart(t, nodeOptions(t, fromTestdata(t, "oldest/standalone"), src))
	require.Equal(t, look(live), look(restored))
	require.NoError(t, errors.Join(restored.Close(), live.Close()))
}

// TestContentOfAnOlderFormatIsRefused checks that a directory of the oldest format is refused and left unchanged, if a
// part of its content is older.
func TestContentOfAnOlderFormatIsRefused(t *testing.T) {
	for says, change := range map[string]func(db *pebble.DB) error{
		"it has entries outside its journal": func(db *pebble.DB) error {
			return db.Set([]byte("ekey"), nil, pebble.Sync)
		},
		"has an older encoding than format 5": changeFirst("", []byte{0, 0, 1, 'k', 0}),
	} {
		fs := fromTestdata(t, "oldest/standalone")
		changeStore(t, fs, change)
		_, err := loadState(t, fs)
		require.ErrorIs(t, err, ErrOlder)
		require.ErrorContains(t, err, says)
		require.Equal(t, formatText(oldestFormat), string(readFile(t, fs, dataDir+"/FORMAT")))
	}
}

func TestAnEmptyDirectoryHasNoFormat(t *testing.T) {
	format, err := FormatOf(t.TempDir())
	require.NoError(t, err)
	require.Zero(t, format)
}
