package wallog_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
	"github.com/weir-project/weir/raftstore/wallog"
)

var errKilled = errors.New("killed")

// tornFiles are the files of a process that is killed during a write. The first bytes that left allows are written,
// and no others.
type tornFiles struct {
	types.VFS
	armed bool
	left  int
}

func (v *tornFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.VFS.Create(dir, name, size)
	return &tornFile{f, v}, err
}

func (v *tornFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.VFS.OpenWriter(dir, name)
	return &tornFile{f, v}, err
}

type tornFile struct {
	types.WritableFile
	of *tornFiles
}

func (f *tornFile) WriteAt(b []byte, at int64) (int, error) {
	if !f.of.armed || len(b) <= f.of.left {
		return f.WritableFile.WriteAt(b, at)
	}
	n, err := f.WritableFile.WriteAt(b[:f.of.left], at)
	f.of.left = 0
	return n, errors.Join(err, errKilled)
}

// openWith opens a log with small segments like Open.
func openWith(t *testing.T, dir string, files types.VFS) *wallog.Log {
	t.Helper()
	w, err := wallog.OpenOn(dir, files, 4<<10, true, "this boot")
	require.NoError(t, err)
	return w
}

// entries returns entries whose data look like the head of an index at every offset.
func entries(from, n uint64, size int) (all []*raft.Log) {
	data := bytes.Repeat([]byte{segment.FrameIndex}, size)
	for i := range n {
		all = append(all, &raft.Log{Index: from + i, Term: 1, Data: data})
	}
	return all
}

// TestTheLogOpensAgainAfterATornWrite checks that the log opens after a kill during a write, whatever part of the
// write arrived. It must have all earlier entries and take more.
func TestTheLogOpensAgainAfterATornWrite(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const stored = 20
	for name, write := range map[string]func(*wallog.Log) error{
		"append":   func(w *wallog.Log) error { return w.StoreLogs(entries(stored+1, 3, 64)) },
		"truncate": func(w *wallog.Log) error { return w.DeleteRange(stored-2, stored) },
	} {
		t.Run(name, func(t *testing.T) {
			torn := 0
			for left := 0; ; left += 4 {
				dir := t.TempDir()
				files := &tornFiles{VFS: fs.New(), left: left}
				w := openWith(t, dir, files)
				require.NoError(t, w.StoreLogs(entries(1, stored, 16)))
				files.armed = true
				whole := write(w) == nil
				require.NoError(t, w.Close())
				if whole {
					break
				}
				torn++
				goOn(t, dir, stored, fmt.Sprintf("%d bytes", left))
			}
			require.Greater(t, torn, 10)
		})
	}
}

// goOn opens a log twice, and between appends an entry that is shorter than the torn write.
func goOn(t *testing.T, dir string, stored uint64, msg string) {
	t.Helper()
	for range 2 {
		w := openWith(t, dir, fs.New())
		for i := uint64(1); i <= stored; i++ {
			var l raft.Log
			require.NoError(t, w.GetLog(i, &l), "entry %d, torn after %s", i, msg)
			require.Equal(t, i, l.Index)
		}
		last, err := w.LastIndex()
		require.NoError(t, err)
		require.Equal(t, stored, last, msg)
		stored++
		require.NoError(t, w.StoreLogs(entries(stored, 1, 0)), msg)
		require.NoError(t, w.Close())
	}
}
