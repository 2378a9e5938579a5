package wallog

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft-wal/types"

	"github.com/weir-project/weir/persistence"
)

// The mark is synced in the background, so that appends do not wait for it. Its syncs take at most a twentieth of the
// disk's time, because on a slow disk they would delay appends.
const (
	markSyncEvery = 100 * time.Millisecond
	markSyncShare = 20
)

// marker keeps the acknowledged mark of a log up to date.
type marker struct {
	file   vfs.File
	boot   string
	dirty  chan struct{} // holds one token while the mark is not synced
	stop   chan struct{}
	syncer sync.WaitGroup

	mu   sync.Mutex
	last mark
	err  error // of the background sync
}

// newMarker writes the mark that mend returned, and returns the marker of the log. With sync, the marker also syncs
// later marks in the background.
func newMarker(dir, boot string, found mark, sync bool) (*marker, error) {
	f, err := openMark(filepath.Join(dir, markName), dir)
	if err != nil {
		return nil, err
	}
	m := &marker{file: f, boot: boot, dirty: make(chan struct{}, 1), stop: make(chan struct{}), last: found}
	for range 2 { // both slots, so that the next opening finds a predecessor
		err = errors.Join(err, m.set(found.segment, found.end))
	}
	if err = errors.Join(err, f.SyncData()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if sync {
		m.syncer.Go(m.run)
	}
	return m, nil
}

// openMark opens the file. It creates the file at full length if necessary.
func openMark(path, dir string) (vfs.File, error) {
	f, err := vfs.Default.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != markBytes {
		_, err = f.WriteAt(make([]byte, markBytes), 0)
		err = errors.Join(err, f.Sync(), persistence.SyncDirectory(vfs.Default, dir))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// set records that an append to a segment ended at end.
func (m *marker) set(segment, end uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.last = mark{seq: m.last.seq + 1, segment: segment, end: end, boot: m.boot}
	if _, err := m.file.WriteAt(m.last.encode(), int64(m.last.seq%2)*slotStride); err != nil {
		return fmt.Errorf("%s: %w", markName, err)
	}
	select {
	case m.dirty <- struct{}{}:
	default:
	}
	return nil
}

// run syncs the mark until close.
func (m *marker) run() {
	for {
		select {
		case <-m.dirty:
		case <-m.stop:
			return
		}
		began := time.Now()
		if err := m.file.SyncData(); err != nil {
			m.mu.Lock()
			m.err = fmt.Errorf("%s: %w", markName, err)
			m.mu.Unlock()
			return
		}
		pause := time.NewTimer(max(markSyncEvery, markSyncShare*time.Since(began)))
		select {
		case <-pause.C:
		case <-m.stop:
			pause.Stop()
			return
		}
	}
}

func (m *marker) close() error {
	close(m.stop)
	m.syncer.Wait()
	return errors.Join(m.file.SyncData(), m.file.Close())
}

// markedFiles sets the mark after each synced append.
type markedFiles struct {
	types.VFS
	marker *marker
}

func (v markedFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	return v.wrap(name)(v.VFS.Create(dir, name, size))
}

func (v markedFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	return v.wrap(name)(v.VFS.OpenWriter(dir, name))
}

func (v markedFiles) wrap(name string) func(types.WritableFile, error) (types.WritableFile, error) {
	return func(f types.WritableFile, err error) (types.WritableFile, error) {
		var base, id uint64
		if err == nil {
			_, err = fmt.Sscanf(name, "%020d-%016x.wal", &base, &id)
		}
		if err != nil {
			return f, err
		}
		return &markedFile{WritableFile: f, marker: v.marker, segment: id}, nil
	}
}

type markedFile struct {
	types.WritableFile
	marker  *marker
	segment uint64
	end     uint64 // of the last write
}

func (f *markedFile) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.WritableFile.WriteAt(b, at)
	f.end = uint64(at) + uint64(n)
	return n, err
}

func (f *markedFile) Sync() error {
	if err := f.WritableFile.Sync(); err != nil {
		return err
	}
	return f.marker.set(f.segment, f.end)
}
