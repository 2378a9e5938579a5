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

// deadMeta is a metadata store that fails every commit after dead is set, as if the process had ended.
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

// TestSealedTail checks that wallog.Mend repairs a log whose process ended between two steps. The last append had
// filled a segment, and the rotation had not followed.
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
		require.Less(t, last, uint64(100), "the segment must fill up")
	}

	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	require.ErrorIs(t, store(openTestLog(t, crashed, &walMeta{on: crashed})), types.ErrSealed,
		"the library now repairs this by itself, so wallog.Mend can go")

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
