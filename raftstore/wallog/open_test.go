package wallog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
	"github.com/weir-project/weir/raftstore/wallog"
)

// TestTheLogOpensAgainWhereverItEnds checks that a reopened log takes the next entry, at whatever entry it ends. That
// includes the last entry of a segment.
func TestTheLogOpensAgainWhereverItEnds(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for name, sync := range map[string]bool{"written through": true, "left to the system": false} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "not", "made")
			data := make([]byte, 1<<20)
			for i := uint64(1); i <= 40; i++ {
				w, err := wallog.Open(dir, sync, hclog.NewNullLogger())
				require.NoError(t, err)
				require.NoError(t, w.StoreLogs([]*raft.Log{{Index: i, Term: 1, Data: data}}), "entry %d", i)
				require.NoError(t, w.SetUint64([]byte("term"), i))
				require.NoError(t, w.Close())
			}
			w, err := wallog.Open(dir, sync, hclog.NewNullLogger())
			require.NoError(t, err)
			defer w.Close()
			for i := uint64(1); i <= 40; i++ {
				var l raft.Log
				require.NoError(t, w.GetLog(i, &l))
				require.Len(t, l.Data, len(data))
			}
			term, err := w.GetUint64([]byte("term"))
			require.NoError(t, err)
			require.EqualValues(t, 40, term)
		})
	}
}

// TestTruncatedFilesGo checks that files of truncated entries are removed when the log closes. Files that a crash
// left are removed when it opens.
func TestTruncatedFilesGo(t *testing.T) {
	dir := t.TempDir()
	w, err := wallog.Open(dir, false, hclog.NewNullLogger())
	require.NoError(t, err)
	data := make([]byte, 1<<20)
	for i := uint64(1); i <= 70; i++ {
		require.NoError(t, w.StoreLogs([]*raft.Log{{Index: i, Term: 1, Data: data}}))
	}
	segments := func() int {
		names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		require.NoError(t, err)
		return len(names)
	}
	before := segments()
	require.Greater(t, before, 3)
	require.NoError(t, w.DeleteRange(1, 69))
	require.NoError(t, w.Close())
	require.Equal(t, 1, segments())

	left := filepath.Join(dir, fmt.Sprintf("%020d-%016x.wal", 1, 1))
	require.NoError(t, os.WriteFile(left, data, 0o600))
	w, err = wallog.Open(dir, false, hclog.NewNullLogger())
	require.NoError(t, err)
	defer w.Close()
	require.Eventually(t, func() bool { return segments() == 1 }, 20*time.Second, time.Millisecond)
	first, err := w.FirstIndex()
	require.NoError(t, err)
	require.EqualValues(t, 70, first)
}
