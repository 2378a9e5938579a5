package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

// imageKey holds the record of an image: a version byte, index, term, and the
// caller's state.
var imageKey = []byte{metaPrefix, 'i'}

const (
	imageRecordVersion = 1
	imageRecordHead    = 1 + 8 + 8
	// maxStateBytes bounds what a caller may keep beside the entries: it is held in
	// memory several times while an image is made.
	maxStateBytes = 16 << 20
	// mergeTables is how many new tables wait to be merged with the rest.
	mergeTables = 16
)

// Write puts changes into work/, where they wait for Seal; a later change of a key
// wins. It does not wait for the disk. ErrNotLoaded when there is no work/ to
// write to: after Close, or a Load that failed.
func (m *Images) Write(changes []engine.Change) error {
	m.work.Lock()
	defer m.work.Unlock()
	if m.db == nil {
		return ErrNotLoaded
	}
	for len(changes) > 0 {
		n := batchLen(changes)
		if err := m.commit(func(b *pebble.Batch) error { return addChanges(b, changes[:n]) }); err != nil {
			return m.must(err)
		}
		changes = changes[n:]
	}
	return nil
}

// Clear forgets every entry in work/. Images stay as they are.
func (m *Images) Clear() error {
	m.work.Lock()
	defer m.work.Unlock()
	if m.db == nil {
		return ErrNotLoaded
	}
	return m.must(m.commit(func(b *pebble.Batch) error {
		return b.DeleteRange([]byte{entryPrefix}, []byte{entryPrefix + 1}, nil)
	}))
}

// commit writes one batch into work/, which has no log to sync.
func (m *Images) commit(fill func(*pebble.Batch) error) error {
	b := m.db.NewBatch()
	defer b.Close()
	if err := fill(b); err != nil {
		return err
	}
	return b.Commit(pebble.NoSync)
}

// openWork opens work/ with the tables and lists of an image in it, or empty when
// from has no path. What was there is gone.
func (m *Images) openWork(from directory, files []imageFile) (err error) {
	if err := m.closeWork(); err != nil {
		return err
	}
	work := directory{m.dir.fs, m.dir.file(workName)}
	if err := errors.Join(m.dir.fs.RemoveAll(work.path), m.dir.make(work.path)); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.copyTo(work, from); err != nil {
			return err
		}
	}
	o := m.workOptions(&m.loaded)
	o.ErrorIfNotExists = len(files) > 0
	if m.db, err = openPebble(work.path, o); err != nil {
		m.db = nil
		return err
	}
	m.known = slices.Clone(files)
	return nil
}

// workOptions has no write-ahead log: an image holds only what was flushed, and
// nothing else is ever believed.
func (m *Images) workOptions(loaded *atomic.Bool) *pebble.Options {
	o := pebbleOptions(m.dir.fs, m.log, m.fatal, loaded)
	o.FS = pacedFS{o.FS}
	o.DisableWAL = true
	// Keys change all over, so each new table overlaps all that there are: merging
	// them seldom, and many at once, costs the least.
	o.L0CompactionThreshold, o.L0StopWritesThreshold = mergeTables, 4*mergeTables
	o.MaxManifestFileSize = maxManifestBytes
	return o
}

// closeWork also marks it as gone: a later Write is refused.
func (m *Images) closeWork() error {
	m.loaded.Store(false)
	if m.db == nil {
		return nil
	}
	err := m.db.Close()
	m.db, m.known = nil, nil
	return err
}

func encodeImageRecord(index, term uint64, state []byte) []byte {
	b := make([]byte, 0, imageRecordHead+len(state))
	b = append(b, imageRecordVersion)
	b = binary.LittleEndian.AppendUint64(b, index)
	b = binary.LittleEndian.AppendUint64(b, term)
	return append(b, state...)
}

// readImageRecord returns the caller's state from a store that must be the image of
// the given entry.
func readImageRecord(db *pebble.DB, index, term uint64) ([]byte, error) {
	value, closer, err := db.Get(imageKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("%w (it has no record of an image)", ErrDamaged)
	} else if err != nil {
		return nil, err
	}
	defer closer.Close()
	if len(value) < imageRecordHead || value[0] != imageRecordVersion {
		return nil, fmt.Errorf("%w (its record is %d bytes of an unknown kind)", ErrDamaged, len(value))
	}
	foundIndex, foundTerm := binary.LittleEndian.Uint64(value[1:]), binary.LittleEndian.Uint64(value[9:])
	if foundIndex != index || foundTerm != term {
		return nil, fmt.Errorf("%w (it is named for entry %d of term %d and holds entry %d of term %d)",
			ErrDamaged, index, term, foundIndex, foundTerm)
	}
	return slices.Clone(value[imageRecordHead:]), nil
}
