package sim

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/wallog"
)

// deadMeta stores no metadata any more, as in a process that has ended.
type deadMeta struct {
	types.MetaStore
	dead bool
}

func (m *deadMeta) CommitState(s types.PersistentState) error {
	if m.dead {
		return errors.New("dead")
	}
	return m.MetaStore.CommitState(s)
}

// TestSealedTail ends a process between the append that fills a segment and the
// rotation that follows.
func TestSealedTail(t *testing.T) {
	mem := vfs.NewCrashableMem()
	require.NoError(t, persistence.MakeDirectory(mem, logDir))
	meta := &deadMeta{MetaStore: &walMeta{on: mem}}
	w := openTestLog(t, mem, meta)
	last := uint64(0)
	store := func(w *wal.WAL) error {
		err := w.StoreLogs([]*raft.Log{{Index: last + 1, Data: make([]byte, 1<<10)}})
		if err == nil {
			last++
		}
		return err
	}
	require.NoError(t, store(w))
	meta.dead = true
	for store(w) == nil {
		require.Less(t, last, uint64(100), "the segment is never full")
	}

	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	require.ErrorIs(t, store(openTestLog(t, crashed, &walMeta{on: crashed})), types.ErrSealed,
		"the library has mended it: wallog.Mend is not needed any more")

	crashed = mem.CrashClone(vfs.CrashCloneCfg{})
	files := walFiles{on: crashed}
	require.NoError(t, wallog.Mend(logDir, files, segment.NewFiler(logDir, files), &walMeta{on: crashed}, false))
	w = openTestLog(t, crashed, &walMeta{on: crashed})
	require.NoError(t, store(w))
	for i := uint64(1); i <= last; i++ {
		require.NoError(t, w.GetLog(i, new(raft.Log)), "entry %d", i)
	}
}

func openTestLog(t *testing.T, on vfs.FS, meta types.MetaStore) *wal.WAL {
	w, err := wal.Open(logDir,
		wal.WithSegmentFiler(segment.NewFiler(logDir, walFiles{on: on})), wal.WithMetaStore(meta),
		wal.WithSegmentSize(segmentBytes), wal.WithLogger(hclog.NewNullLogger()))
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}
