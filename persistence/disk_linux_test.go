package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// smallDisk mounts a file system of this size, or skips the test.
func smallDisk(t *testing.T, bytes int, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%d", bytes))
	if err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

func TestARealDiskThatFillsUp(t *testing.T) {
	dir := filepath.Join(smallDisk(t, 24<<20, 0), "data")
	stopped := make(chan error, 4)
	var mu sync.Mutex // Pebble's background work may call OnFatal while flushes continue
	var states history
	var saved int
	var over bool
	begin := func(table *fakeTable) bool {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, table.state())
		return !over
	}
	end := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		saved = n
	}
	go func() {
		s, table, err := openStore(nil, dir, func(err error) { stopped <- err; select {} })
		if err != nil {
			stopped <- err
			return
		}
		big := make([]byte, 100<<10)
		for n := 1; ; n++ {
			for i := range big { // so that it does not compress
				big[i] = byte((i*n + i>>3*7919) * 31 >> 3)
			}
			if table.set(fmt.Sprint(n), string(big)); !begin(table) {
				return
			}
			if err := s.Flush(table, at, true); err != nil {
				stopped <- err
				return
			}
			end(n)
		}
	}()
	select {
	case err := <-stopped:
		require.ErrorIs(t, err, ErrDiskFullLive)
		require.ErrorIs(t, err, syscall.ENOSPC)
	case <-time.After(time.Minute):
		t.Fatal("the disk never fills up")
	}
	mu.Lock()
	defer mu.Unlock()
	over = true
	require.Greater(t, saved, 10)

	// The stopped store still holds its lock. A process that ended would not.
	copied := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	again, loaded := mustOpen(t, nil, copied)
	require.GreaterOrEqual(t, states.find(loaded.state())+1, saved, "every finished flush must be there")
	require.NoError(t, again.Close())

	_, _, err := openStore(nil, filepath.Join(filepath.Dir(dir), "another"), mustNotStop(t))
	require.ErrorIs(t, err, ErrDiskFull, "a start on a full disk must be refused")
}

func TestAReadOnlyDisk(t *testing.T) {
	dir := smallDisk(t, 16<<20, 0)
	s, _ := mustOpen(t, nil, filepath.Join(dir, "data"))
	require.NoError(t, s.Close())
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, name := range []string{"data", "new"} {
		_, _, err := openStore(nil, filepath.Join(dir, name), mustNotStop(t))
		require.ErrorIs(t, err, ErrNotWritable)
		require.ErrorContains(t, err, "read-only file system")
	}
}

func TestTheRealFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "er", "data")
	s, table := mustOpen(t, nil, dir)
	table.set("a", "1")
	flush(t, s, table)
	_, _, err := openStore(nil, dir, mustNotStop(t))
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, s.Close())
	s, loaded := mustOpen(t, vfs.Default, dir)
	require.Equal(t, table.state(), loaded.state())
	require.NoError(t, s.Close())
}

func TestADirectoryThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, _, err := openStore(nil, path, mustNotStop(t))
	require.ErrorContains(t, err, "not a directory")
}
