package wallog

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/weir-project/weir/persistence"
)

// segmentBytes is the size of a log file, which is allocated at its creation.
const segmentBytes = 16 << 20

// Open opens the log in a directory, which it creates if necessary. With sync, an append is on disk when it returns.
// The metadata, with term and vote, are always synced. Open refuses a damaged log with a CorruptError and does not
// change it.
func Open(dir string, sync bool, log hclog.Logger) (*Log, error) {
	l, err := openOn(dir, fs.New(), settings{sync: sync, boot: bootID(), segmentBytes: segmentBytes, log: log})
	if err != nil {
		return nil, fmt.Errorf("log in %s: %w", dir, err)
	}
	return l, nil
}

type settings struct {
	files        types.VFS // the files of the disk; their Sync always syncs
	sync         bool
	boot         string
	segmentBytes int
	log          hclog.Logger
}

func openOn(dir string, files types.VFS, s settings) (*Log, error) {
	if err := persistence.MakeDirectory(vfs.Default, dir); err != nil {
		return nil, err
	}
	if s.files = files; !s.sync {
		files = noSyncFiles{files}
	}
	state, stable, err := readMeta(dir)
	if err != nil {
		return nil, err
	}
	v := verifier{dir: dir, files: files, state: state, loose: !s.sync}
	if v.mark, err = readMark(dir, s.boot, s.sync); err != nil {
		return nil, err
	}
	end, err := v.verify()
	if err != nil {
		return nil, err
	}
	return openVerified(&v, end, stable, s)
}

// openVerified opens a verified log. It is the first step that changes the files of the log.
func openVerified(v *verifier, end int, stable map[string][]byte, s settings) (l *Log, err error) {
	l = &Log{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	meta, err := openMeta(v.dir, v.state, stable)
	if err != nil {
		return l, err
	}
	if l.meta = meta; !s.sync {
		meta.syncSegment = func(info types.SegmentInfo) error { return syncSegment(s.files, v.dir, info) }
	}
	at, err := mend(v, end, segment.NewFiler(v.dir, v.files), meta)
	if err != nil {
		return l, err
	}
	if l.marker, err = newMarker(v.dir, s.boot, at, s.sync); err != nil {
		return l, err
	}
	l.files = newRemovals(markedFiles{v.files, l.marker}, s.log)
	l.WAL, err = wal.Open(v.dir, wal.WithMetaStore(meta), wal.WithSegmentFiler(segment.NewFiler(v.dir, l.files)),
		wal.WithSegmentSize(s.segmentBytes), wal.WithLogger(s.log))
	return l, err
}

func syncSegment(files types.VFS, dir string, info types.SegmentInfo) error {
	f, err := files.OpenWriter(dir, segment.FileName(info))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// noSyncFiles leaves the time of disk writes to the operating system.
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
