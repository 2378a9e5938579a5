package wallog

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
)

// sizedFiles records the length of the files that it removes.
type sizedFiles struct {
	types.VFS
	removed chan int64
}

func (f sizedFiles) Delete(dir, name string) error {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	err = os.Remove(filepath.Join(dir, name))
	f.removed <- info.Size()
	return err
}

// makeFile creates a file whose length is no multiple of a step.
func makeFile(t *testing.T, dir, name string) (size int64) {
	t.Helper()
	size = 5*shrinkBytes + shrinkBytes/2
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600))
	return size
}

// TestFilesGoInSteps checks that a file is truncated in steps before it is removed, and that Close does not wait for
// this.
func TestFilesGoInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, files := t.TempDir(), sizedFiles{removed: make(chan int64, maxRemovals)}
		r := newRemovals(files, hclog.NewNullLogger())
		size := makeFile(t, dir, "one")
		begun := time.Now()
		require.NoError(t, r.Delete(dir, "one"))
		last := size
		for range 4 {
			time.Sleep(shrinkPause)
			synctest.Wait()
			info, err := os.Stat(filepath.Join(dir, "one"))
			require.NoError(t, err)
			require.Less(t, info.Size(), last)
			require.LessOrEqual(t, last-info.Size(), 2*int64(shrinkBytes),
				"each pass must remove one step, or the first two")
			last = info.Size()
		}
		require.LessOrEqual(t, <-files.removed, int64(shrinkBytes))
		require.Equal(t, 5*shrinkPause, time.Since(begun))
		require.NoFileExists(t, filepath.Join(dir, "one"))

		size = makeFile(t, dir, "two")
		makeFile(t, dir, "three")
		begun = time.Now()
		require.NoError(t, r.Delete(dir, "two"))
		require.NoError(t, r.Delete(dir, "three"))
		synctest.Wait()
		r.close()
		require.LessOrEqual(t, time.Since(begun), shrinkPause)
		require.Less(t, <-files.removed, size)
		require.Equal(t, size, <-files.removed, "a closed log must remove the file in one step")
		makeFile(t, dir, "four")
		require.NoError(t, r.Delete(dir, "four"), "a closed log must remove the file at once")
		require.Equal(t, size, <-files.removed)
	})
}
