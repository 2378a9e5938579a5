package persistence

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// scene makes the data directory of a server that runs alone, and returns the state that its last flush acknowledged.
type scene struct {
	name string
	make func(t *testing.T) (fs vfs.FS, acknowledged map[string]string)
}

var scenes = []scene{
	{"killed after a first flush", func(t *testing.T) (vfs.FS, map[string]string) {
		return killed(t, vfs.NewMem(), 1, 0)
	}},
	{"killed with everything in the write-ahead log", func(t *testing.T) (vfs.FS, map[string]string) {
		return killed(t, vfs.NewMem(), 6, 0)
	}},
	{"killed after tables were written", func(t *testing.T) (vfs.FS, map[string]string) {
		return killed(t, vfs.NewMem(), 9, 4)
	}},
	{"killed right after a table was written", func(t *testing.T) (vfs.FS, map[string]string) {
		return killed(t, vfs.NewMem(), 8, 4)
	}},
	{"killed after a restart", func(t *testing.T) (vfs.FS, map[string]string) {
		fs, _ := killed(t, vfs.NewMem(), 5, 3)
		return killed(t, fs.(*vfs.MemFS), 2, 0)
	}},
	{"killed right after a start", func(t *testing.T) (vfs.FS, map[string]string) {
		fs, _ := killed(t, vfs.NewMem(), 5, 3)
		return killed(t, fs.(*vfs.MemFS), 0, 0)
	}},
	{"without power after flushes", func(t *testing.T) (vfs.FS, map[string]string) {
		fs := vfs.NewCrashableMem()
		s, table := mustOpen(t, fs, dataDir)
		changeAndFlush(t, s, table, 6, 4)
		return fs.CrashClone(vfs.CrashCloneCfg{}), table.state()
	}},
	{"closed", func(t *testing.T) (vfs.FS, map[string]string) {
		fs := vfs.NewMem()
		s, table := mustOpen(t, fs, dataDir)
		changeAndFlush(t, s, table, 5, 2)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return fs, table.state()
	}},
}

// killed returns the directory of a process that was killed after a number of flushes, and its state.
func killed(t *testing.T, fs *vfs.MemFS, flushes, tableEvery int) (vfs.FS, map[string]string) {
	s, table := mustOpen(t, fs, dataDir)
	changeAndFlush(t, s, table, flushes, tableEvery)
	return copyDir(t, fs), table.state()
}

// changeAndFlush changes entries and flushes a number of times. After each tableEvery flushes, Pebble writes a table.
func changeAndFlush(t *testing.T, s *Store, table *fakeTable, flushes, tableEvery int) {
	rng := rand.New(rand.NewPCG(uint64(flushes), 12))
	for n := 1; n <= flushes; n++ {
		table.set("counter", fmt.Sprint(len(table.state()), n))
		for range rng.IntN(8) {
			table.set(fmt.Sprintf("k%02d", rng.IntN(20)), fmt.Sprintf("%d-%d", n, rng.Uint64()))
		}
		flush(t, s, table)
		if tableEvery > 0 && n%tableEvery == 0 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDamageLosesNoFlush damages each byte of each file. A server that runs alone must start with everything that it
// flushed, or refuse to start and leave the directory unchanged.
func TestDamageLosesNoFlush(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	counts := newTallies()
	for _, scene := range scenes {
		t.Run(scene.name, func(t *testing.T) {
			fs, want := scene.make(t)
			sweepDirectory(t, fs, counts, func(broken *vfs.MemFS) verdict { return startDamaged(t, broken, want) })
		})
	}
	counts.log(t)
}

// startDamaged loads a directory and begins. A later start must load the same state.
func startDamaged(t *testing.T, fs *vfs.MemFS, want map[string]string) verdict {
	s, err := OpenStore(
		StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t), renewal: busyRenewal})
	if err != nil {
		return verdict{refusal: err}
	}
	table := newFakeTable()
	if err := s.Load(engine.Stamp{NowNs: 1e18}, table); err != nil {
		return verdict{refusal: errors.Join(err, s.abandon())}
	}
	if got := table.state(); !maps.Equal(got, want) {
		return verdict{lost: fmt.Sprintf("%d entries of %d, or other ones (%v)", len(got), len(want), s.abandon())}
	}
	if err := s.Begin(at()); err != nil {
		return verdict{lost: fmt.Sprintf("the start failed late: %v", errors.Join(err, s.abandon()))}
	}
	flush(t, s, table)
	if err := s.Close(); err != nil {
		return verdict{lost: fmt.Sprintf("it could not be closed: %v", err)}
	}
	again, err := loadState(t, fs)
	if err != nil || !maps.Equal(again, want) {
		return verdict{lost: fmt.Sprintf("the start after that has %d entries of %d: %v", len(again), len(want), err)}
	}
	return verdict{}
}

// TestALostBatchIsMissed checks that a flush of several batches must be complete. The flush number does not prove
// this, because the first batch already has it.
func TestALostBatchIsMissed(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	for i := range chunkEntries + 200 {
		table.set(fmt.Sprintf("k%04d", i), "1")
	}
	flush(t, s, table)
	killed, want := copyDir(t, fs), table.state()
	require.NoError(t, s.Close())
	for _, path := range files(t, killed, dataDir) {
		if kindOf(path) != "log" {
			continue
		}
		content := readFile(t, killed, path)
		for n := len(content); n > 0; n -= 97 {
			broken := copyDir(t, killed)
			writeFile(t, broken, path, content[:n])
			got, err := loadState(t, broken)
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged)
				continue
			}
			require.Equal(t, want, got, "%s cut to %d of %d", path, n, len(content))
		}
	}
}
