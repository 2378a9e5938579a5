package raftstore

import (
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Durability says when an entry counts as written.
type Durability string

// The durabilities.
const (
	Fsync  Durability = "fsync"  // on the disks of a majority
	OS     Durability = "os"     // in the page caches of a majority: survives processes, not machines
	Memory Durability = "memory" // in the memory of a majority: a node that stops has lost its log
)

// segmentBytes is the size of the log's files, made in advance.
const segmentBytes = 16 << 20

// openWAL opens the log in a directory. The library's metadata, where term and
// vote are kept too, is always written through.
func openWAL(dir string, sync bool, log hclog.Logger) (*wal.WAL, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var files types.VFS = fs.New()
	if !sync {
		files = noSyncFiles{files}
	}
	w, err := wal.Open(dir, wal.WithSegmentFiler(segment.NewFiler(dir, files)), wal.WithSegmentSize(segmentBytes), wal.WithLogger(log))
	if err != nil {
		return nil, fmt.Errorf("log in %s: %w", dir, err)
	}
	return w, nil
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
