package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// imageRun makes a few images, receives one image, and records its progress. If the disk fails, the run ends where the
// process would end.
type imageRun struct {
	stream       []byte // of image lastImage
	states       []map[string]string
	begun, ended atomic.Int64 // the newest image that was requested, and the newest that was acknowledged
}

const lastImage = 4

// newImageRun makes the stream and the state after it on a working disk.
func newImageRun(t *testing.T) *imageRun {
	m, table := mustOpenImages(t, vfs.NewMem()), newFakeTable()
	r := &imageRun{states: make([]map[string]string, lastImage+1)}
	change(rand.New(rand.NewPCG(1, 1)), table, lastImage)
	write(t, m, table)
	r.stream = streamOf(t, m, seal(t, m, lastImage).ID)
	r.states[0], r.states[lastImage] = map[string]string{}, table.state()
	require.NoError(t, m.Close())
	table = newFakeTable()
	for n := 1; n < lastImage; n++ {
		change(rand.New(rand.NewPCG(uint64(n), 1)), table, n)
		r.states[n] = table.state()
	}
	return r
}

func (r *imageRun) run(fs vfs.FS, onFatal func(error)) error {
	m, err := openImages(fs, onFatal)
	if err != nil {
		return err
	}
	table := newFakeTable()
	for n := int64(1); n < lastImage; n++ {
		change(rand.New(rand.NewPCG(uint64(n), 1)), table, int(n))
		if err := table.Drain(16, m.Write); err != nil {
			return err
		}
		r.begun.Store(n)
		if _, err := m.Seal(uint64(n), 1, nil, fmt.Append(nil, n)); err != nil {
			return err
		}
		r.ended.Store(n)
	}
	r.begun.Store(lastImage)
	in, err := m.Receive(lastImage, 1, nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(in, bytes.NewReader(r.stream)); err != nil {
		return err
	}
	if _, err := in.Close(); err != nil {
		return err
	}
	r.ended.Store(lastImage)
	return m.Close()
}

// check opens the directory after a crash. Its newest image must be the newest acknowledged image, or a complete image
// that was being made.
func (r *imageRun) check(t *testing.T, crash vfs.FS, ended, begun int64, label string) {
	t.Helper()
	index, entries, err := newest(crash)
	require.NoError(t, err, label)
	require.GreaterOrEqual(t, int64(index), ended, label)
	require.LessOrEqual(t, int64(index), begun, label)
	require.Equal(t, r.states[index], entries, label)
	names, err := crash.List(crash.PathJoin(dataDir, imagesName))
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(names), tempSuffix, label)
}

// onWrites calls hook before every operation that changes the disk. Pebble also writes in the background, so that hook
// is called by several goroutines at the same time.
func onWrites(fs vfs.FS, hook func() error) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		return hook()
	}))
}

// idsAtWrites lists the images before every operation that changes the disk. It is a hook for onWrites.
type idsAtWrites struct {
	mu    sync.Mutex
	of    *Images // nil while nothing is listed
	lists [][]string
	err   error
}

func (a *idsAtWrites) onWrite() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		return nil
	}
	ids, err := a.of.ids()
	a.lists, a.err = append(a.lists, ids), errors.Join(a.err, err)
	return nil
}

// during calls f and returns the lists that were made meanwhile.
func (a *idsAtWrites) during(t *testing.T, m *Images, f func()) [][]string {
	t.Helper()
	a.list(m)
	f()
	a.list(nil)
	require.NoError(t, a.err)
	return a.lists
}

func (a *idsAtWrites) list(of *Images) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of = of
}

// TestACrashLeavesTheOlderImageOrTheNewer injects a crash before every disk operation, with none, half or all of the
// unsynced data kept. One complete image must remain.
func TestACrashLeavesTheOlderImageOrTheNewer(t *testing.T) {
	type crash struct {
		fs           *vfs.MemFS
		ended, begun int64
		percent      int
	}
	mem, r := vfs.NewCrashableMem(), newImageRun(t)
	var mu sync.Mutex
	var crashes []crash
	rng := rand.New(rand.NewPCG(3, 3))
	fs := onWrites(mem, func() error {
		mu.Lock() // Pebble also writes in the background
		defer mu.Unlock()
		for _, percent := range []int{0, 50, 100} {
			c := crash{ended: r.ended.Load(), percent: percent}
			c.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			c.begun = r.begun.Load()
			crashes = append(crashes, c)
		}
		return nil
	})
	require.NoError(t, r.run(fs, mustNotStop(t)))
	found := map[int64]int{}
	for i, c := range crashes {
		r.check(t, c.fs, c.ended, c.begun, fmt.Sprintf("crash %d of %d, %d%% kept", i, len(crashes), c.percent))
		found[c.begun]++
	}
	for n := int64(0); n <= lastImage; n++ {
		require.Greater(t, found[n], 30, "there must be many crashes while image %d is made", n)
	}
}

// TestEveryWriteOfAnImageMayFail injects an error at the n-th write, for every n. The process must end, and
// acknowledged images must remain.
func TestEveryWriteOfAnImageMayFail(t *testing.T) {
	if closesEagerly {
		race.Skip(t, "finds in this test with a work/ that stays open what it can find here")
	}
	faults := []error{syscall.ENOSPC, syscall.EIO}
	for n := int64(0); sweepImageFault(t, faults[n%2], n); n++ {
	}
}

// sweepImageFault runs with a fault from write n on, and reports whether the run reached it.
func sweepImageFault(t *testing.T, fault error, n int64) bool {
	mem, r := vfs.NewCrashableMem(), newImageRun(t)
	var writes atomic.Int64
	fs := onWrites(mem, func() error {
		if writes.Add(1) > n {
			return fault
		}
		return nil
	})
	stopped := make(chan error, 16)
	go func() {
		stopped <- r.run(fs, func(err error) { stopped <- err; select {} })
	}()
	select {
	case err := <-stopped:
		if err == nil {
			require.LessOrEqual(t, writes.Load(), n, "the run must not ignore a fault")
			require.EqualValues(t, lastImage, r.ended.Load())
			return false
		}
		require.ErrorContains(t, err, fault.Error())
		if r.begun.Load() > 0 && fault == syscall.ENOSPC {
			require.ErrorIs(t, err, ErrDiskFullLive)
		} else if r.begun.Load() > 0 {
			require.ErrorIs(t, err, ErrDisk)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the images hang on a failing disk")
	}
	for _, percent := range []int{0, 100} {
		rng := rand.New(rand.NewPCG(uint64(n), 9))
		clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		r.check(t, clone, r.ended.Load(), r.begun.Load(), fmt.Sprintf("fault at write %d, %d%% kept", n, percent))
	}
	return true
}

// TestAFailingReadStopsTheSender checks that a node ends if it can no longer read an image that it sends.
func TestAFailingReadStopsTheSender(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(t *testing.T, fs vfs.FS, path string)
		want error
	}{
		{"a flipped bit", func(t *testing.T, fs vfs.FS, path string) {
			b := readFile(t, fs, path)
			b[len(b)/2] ^= 8
			writeFile(t, fs, path, b)
		}, ErrDamagedLive},
		{"cut short", func(t *testing.T, fs vfs.FS, path string) {
			writeFile(t, fs, path, readFile(t, fs, path)[1:])
		}, ErrDamagedLive},
		{"gone", func(t *testing.T, fs vfs.FS, path string) { require.NoError(t, fs.Remove(path)) }, ErrDamagedLive},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			stopped := make(chan error, 1)
			m, err := openImages(fs, func(err error) { stopped <- err; select {} })
			require.NoError(t, err)
			require.NoError(t, m.Write([]engine.Change{{Key: []byte("a"), Value: []byte("1")}}))
			info := seal(t, m, 1)
			r, _, err := m.Send(info.ID)
			require.NoError(t, err)
			harmed := false
			for _, path := range files(t, fs, m.image(info.ID).path) {
				if kindOf(path) == "sst" {
					c.harm(t, fs, path)
					harmed = true
				}
			}
			require.True(t, harmed)
			read := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, r); read <- err }()
			select {
			case err := <-stopped:
				require.ErrorIs(t, err, c.want)
			case err := <-read:
				t.Fatalf("the stream ended with %v", err)
			}
		})
	}
}
