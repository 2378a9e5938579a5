package persistence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// closedStore returns a directory with a few flushes that was closed cleanly.
func closedStore(t *testing.T) (*vfs.MemFS, map[string]string) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(1, 1))
	s, table := mustOpen(t, fs, dataDir)
	for n := range 20 {
		change(rng, table, n)
		flush(t, s, table)
		if n%7 == 0 {
			require.NoError(t, s.db.Flush())
		}
	}
	require.NoError(t, s.Close())
	return fs, table.state()
}

// copyDir copies a directory tree into a new file system.
func copyDir(t *testing.T, from vfs.FS) *vfs.MemFS {
	to := vfs.NewMem()
	ok, err := vfs.Clone(from, to, dataDir, dataDir)
	require.NoError(t, err)
	require.True(t, ok)
	return to
}

// loadState opens a directory and returns the state that it loads.
func loadState(t *testing.T, fs vfs.FS) (map[string]string, error) {
	s, table, err := openStore(fs, dataDir, mustNotStop(t))
	if err != nil {
		return nil, err
	}
	require.NoError(t, s.abandon())
	return table.state(), nil
}

// flipPoints returns every byte of a small file, and a sample of a large one.
func flipPoints(n int) (points []int) {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	const most = 120
	for i := range n {
		if n <= most || rng.IntN(n) < most || i < 16 || n-i <= 16 {
			points = append(points, i)
		}
	}
	return points
}

// kindOf returns the kind of a file: its path without numbers.
func kindOf(path string) string {
	base := vfs.Default.PathBase(path)
	kind, _, _ := strings.Cut(base, "-")
	if name, ok := strings.CutPrefix(base, "marker."); ok {
		name, _, _ = strings.Cut(name, ".")
		return "marker." + name
	}
	if i := strings.LastIndexByte(kind, '.'); i > 0 {
		kind = kind[i+1:]
	}
	return kind
}

// TestDamageInTheMiddleOfTheEntries checks that a start is refused at damage that only the load finds. The entries
// before the damage must not be taken for the whole state.
func TestDamageInTheMiddleOfTheEntries(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	rng, value := rand.NewChaCha8([32]byte{9}), make([]byte, 1000)
	for i := range 1000 {
		_, _ = rng.Read(value) // so that it does not compress
		table.set(fmt.Sprintf("k%06d", i), string(value))
	}
	flush(t, s, table)
	require.NoError(t, s.Close())
	for _, path := range files(t, fs, dataDir) {
		content := readFile(t, fs, path)
		if kindOf(path) != "sst" || len(content) < 500_000 {
			continue
		}
		content[len(content)/2] ^= 4
		writeFile(t, fs, path, content)
		_, err := loadState(t, fs)
		require.ErrorIs(t, err, ErrDamaged)
		return
	}
	t.Fatal("no large table")
}

func TestDirectoriesOfOtherProgramsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		want                error
		says                string
	}{
		{"somebody's files", "holiday.jpg", "x", ErrForeign, `"holiday.jpg"`},
		{"another Pebble store", "MANIFEST-000001", "x", ErrForeign, "MANIFEST"},
		{"a newer version of weir", "FORMAT", "weir data format 7\n", ErrNewer, "format 7, this weir reads 5 to 6"},
		{"an older version of weir", "FORMAT", "weir data format 4\n", ErrOlder, "format 4, this weir reads 5 to 6"},
		{"a negative format", "FORMAT", "weir data format -1\n", ErrOlder, "format -1"},
		{"not a format file", "FORMAT", "something", ErrDamaged, `"something"`},
		{"an endless format file", "FORMAT", strings.Repeat("9", 1<<20), ErrDamaged, "FORMAT"},
		{"format without state", "FORMAT", formatText(oldestFormat), ErrDamaged, "state is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			require.NoError(t, fs.MkdirAll(dataDir, 0o750))
			writeFile(t, fs, fs.PathJoin(dataDir, c.file), []byte(c.content))
			_, _, err := openStore(fs, dataDir, mustNotStop(t))
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, `data directory "data"`)
			require.Equal(t, []string{fs.PathJoin(dataDir, c.file)}, files(t, fs, dataDir),
				"nothing may be added to the directory")
		})
	}
}

func TestAStoreThatLostItsFilesIsRefused(t *testing.T) {
	fs, _ := closedStore(t)
	state := fs.PathJoin(dataDir, stateName)
	require.NoError(t, fs.RemoveAll(state))
	require.NoError(t, fs.MkdirAll(state, 0o750))
	_, err := loadState(t, fs)
	require.ErrorIs(t, err, ErrDamaged)
}

// TestAnUnfinishedFirstStart checks that the directory starts after a crash at any point of its first start.
func TestAnUnfinishedFirstStart(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, err := OpenStore(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)})
	require.NoError(t, err)
	require.NoError(t, s.Load(engine.Stamp{NowNs: 1e18}, newFakeTable()))
	for _, percent := range []int{0, 100} {
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 2))})
		again, table := mustOpen(t, clone, dataDir)
		table.set("a", "1")
		flush(t, again, table)
		require.NoError(t, again.Close())
		got, err := loadState(t, clone)
		require.NoError(t, err)
		require.True(t, maps.Equal(table.state(), got))
		require.NotContains(t, fmt.Sprint(files(t, clone, dataDir)), freshName)
	}
	require.NoError(t, s.abandon())
}

func TestOneStoreAtATime(t *testing.T) {
	fs := vfs.NewMem()
	s, _ := mustOpen(t, fs, dataDir)
	_, _, err := openStore(fs, dataDir, mustNotStop(t))
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, s.Close())
	again, _ := mustOpen(t, fs, dataDir)
	require.NoError(t, again.Close())
}
