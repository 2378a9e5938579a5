package wallog

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/weir-project/weir/persistence"
)

// segmentBytes is the size of the log's files, made in advance.
const segmentBytes = 16 << 20

// Open opens the log in a directory, which it makes. sync says whether an append is
// on disk when it returns; the library's metadata, where term and vote are kept
// too, always are.
func Open(dir string, sync bool, log hclog.Logger) (*Log, error) {
	if err := persistence.MakeDirectory(vfs.Default, dir); err != nil {
		return nil, err
	}
	var files types.VFS = fs.New()
	if !sync {
		files = noSyncFiles{files}
	}
	removing := newRemovals(files, log)
	w, err := open(dir, removing, log)
	if err != nil {
		removing.close()
		return nil, fmt.Errorf("log in %s: %w", dir, err)
	}
	return &Log{w, removing}, nil
}

func open(dir string, files types.VFS, log hclog.Logger) (*wal.WAL, error) {
	segments, meta := segment.NewFiler(dir, files), &metadb.BoltMetaDB{}
	if err := errors.Join(Mend(dir, files, segments, meta), meta.Close()); err != nil {
		return nil, err
	}
	return wal.Open(dir, wal.WithSegmentFiler(segments), wal.WithSegmentSize(segmentBytes), wal.WithLogger(log))
}

// noSyncFiles leaves writing to disk to the operating system.
type noSyncFiles struct{ types.VFS }

func (v noSyncFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.VFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	return noSyncFile{f}, nil
}

func (v noSyncFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return noSyncFile{f}, nil
}

type noSyncFile struct{ types.WritableFile }

func (noSyncFile) Sync() error { return nil }

var _ io.Closer = noSyncFile{}
