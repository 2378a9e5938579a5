package wallog

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

var errMark = errors.New("the disk fails")

// markFile is a mark file that may fail.
type markFile struct {
	vfs.File
	write, sync error
	syncs       atomic.Int32
}

func (f *markFile) WriteAt(b []byte, _ int64) (int, error) { return len(b), f.write }
func (f *markFile) SyncData() error                        { f.syncs.Add(1); return f.sync }
func (f *markFile) Close() error                           { return nil }

func markerOn(f *markFile) *marker {
	return &marker{file: f, dirty: make(chan struct{}, 1), stop: make(chan struct{})}
}

func TestAMarkThatCannotBeWritten(t *testing.T) {
	m := markerOn(&markFile{write: errMark})
	require.ErrorIs(t, m.set(1, 2), errMark)

	m = markerOn(&markFile{sync: errMark})
	m.syncer.Go(m.run)
	require.NoError(t, m.set(1, 2))
	require.Eventually(t, func() bool { return m.set(1, 3) != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, m.set(1, 4), errMark, "nothing may be acknowledged after a failure")
	require.ErrorIs(t, m.close(), errMark)
}

// TestTheMarkIsSynced checks that the mark is synced in the background, and when the log is closed.
func TestTheMarkIsSynced(t *testing.T) {
	for _, sync := range []bool{true, false} {
		dir := t.TempDir()
		m, err := newMarker(dir, "boot", mark{}, sync)
		require.NoError(t, err)
		if sync {
			require.Eventually(t, func() bool { return len(m.dirty) == 0 }, 10*time.Second, time.Millisecond)
		}
		require.NoError(t, m.close())
		require.Equal(t, sync, len(m.dirty) == 0, "without sync no caller may wait for the token")
		found, err := readMark(dir, "boot", true)
		require.NoError(t, err)
		require.True(t, found.exact)
	}
	f := &markFile{}
	require.NoError(t, markerOn(f).close())
	require.EqualValues(t, 1, f.syncs.Load())
}

func TestAMarkCannotBeMade(t *testing.T) {
	_, err := newMarker(filepath.Join(t.TempDir(), "missing"), "boot", mark{}, true)
	require.ErrorIs(t, err, os.ErrNotExist)
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no device that is always full")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, markName)
	require.NoError(t, os.Symlink("/dev/full", path))
	_, err = openMark(path, dir)
	require.ErrorContains(t, err, "no space left")
}

// TestWhatAMarkTells checks what a mark proves, depending on whether the machine has rebooted or may have.
func TestWhatAMarkTells(t *testing.T) {
	for _, c := range []struct {
		written, boot string
		sync          bool
		end           uint64
		thisBoot      bool
	}{
		{"a", "a", true, 7, true}, {"a", "b", true, 7, false}, {"a", "a", false, 7, true}, {"a", "b", false, 0, false},
		{"", "", true, 7, false}, {"", "", false, 0, false}, {"a", "", true, 7, false}, {"", "a", true, 7, false},
	} {
		dir := t.TempDir()
		m, err := newMarker(dir, c.written, mark{segment: 3, end: 7}, false)
		require.NoError(t, err)
		require.NoError(t, m.close())
		found, err := readMark(dir, c.boot, c.sync)
		require.NoError(t, err)
		require.Equal(t, []any{uint64(3), c.end, c.thisBoot, c.thisBoot},
			[]any{found.segment, found.end, found.thisBoot, found.exact}, "%+v", c)
	}
}

// TestTheNewerSlotCounts checks that the newer slot counts, and is exact only beside its predecessor.
func TestTheNewerSlotCounts(t *testing.T) {
	slot := func(seq uint64) []byte { return mark{seq: seq, end: 10 * seq}.encode() }
	for _, c := range []struct {
		first, second  uint64
		seq            uint64
		exact, damaged bool
	}{
		{1, 2, 2, true, false}, {3, 2, 3, true, false}, {1, 3, 3, false, false}, {2, 2, 2, false, false},
		{1, 0, 1, false, false}, {0, 1, 1, false, false}, {0, 0, 0, false, true},
	} {
		b := make([]byte, markBytes)
		copy(b, slot(c.first))
		copy(b[slotStride:], slot(c.second))
		m := newestMark(b)
		require.Equal(t, []any{c.seq, 10 * c.seq, c.exact, c.damaged}, []any{m.seq, m.end, m.exact, m.damaged}, "%+v",
			c)
		require.Equal(t, c.first > 0, newestMark(b[:slotBytes]).seq == c.first && c.first > 0,
			"a file with one slot must be read")
		require.Zero(t, newestMark(b[:slotBytes-1]).seq, "a part of a slot must not count")
	}
}
