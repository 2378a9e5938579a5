package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/engine"
)

const (
	imageRecordVersion = 1
	imageRecordHead    = 1 + 8 + 8
	// maxStateBytes bounds the state that the caller passes to Seal. Creating an image holds this state in memory
	// several times.
	maxStateBytes = 16 << 20
)

// Write writes changes to work/ for the next Seal. A later change of a limiter replaces an earlier one. Write does not
// wait for the disk. It returns ErrNotLoaded after Close, or after a failed Load.
func (m *Images) Write(changes []engine.Change) error {
	m.work.Lock()
	defer m.work.Unlock()
	if err := m.reopenWork(); err != nil {
		return err
	}
	m.idle = time.Time{}
	return m.must(inBatches(changes, func(batch []engine.Change) error {
		return m.journal.write(batch, pebble.NoSync)
	}))
}

// Clear deletes every entry in work/. Images do not change.
func (m *Images) Clear() error {
	m.work.Lock()
	defer m.work.Unlock()
	if !m.hasWork() {
		return ErrNotLoaded
	}
	m.idle = time.Time{}
	m.journal.forget()
	return nil
}

// Renew advances the rewrite pass of the journal (see rewritePass). The caller calls it until more is false, before it
// drains the changes of the table from and writes them.
func (m *Images) Renew(from Drainer) (more bool, err error) {
	m.work.Lock()
	defer m.work.Unlock()
	if !m.hasWork() {
		return false, ErrNotLoaded
	}
	return m.journal.renew(from), nil
}

// openWork replaces work/ by the given files of the image directory from, and returns the image's record. Without files
// work/ begins empty, and record is nil.
func (m *Images) openWork(from directory, files []imageFile) (record []byte, err error) {
	if err := m.closeWork(); err != nil {
		return nil, err
	}
	work := directory{m.dir.fs, m.dir.file(workName)}
	if err := errors.Join(m.dir.fs.RemoveAll(work.path), m.dir.make(work.path)); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := f.copyTo(work, from); err != nil {
			return nil, err
		}
	}
	open := openPebble
	if len(files) > 0 {
		open = openExisting
	}
	if m.db, err = open(work.path, m.workOptions(&m.loaded)); err != nil {
		m.db = nil
		return nil, err
	}
	m.known = slices.Clone(files)
	m.idle = time.Now()
	m.journal, record, err = openJournal(m.db, imageRecord, m.renewal)
	return record, err
}

// workOptions returns the options of the store in work/. They disable the write-ahead log, because an image has only
// data that Pebble has flushed, and work/ does not survive a restart.
func (m *Images) workOptions(loaded *atomic.Bool) *pebble.Options {
	o := pebbleOptions(m.dir.fs, m.log, m.fatal, loaded)
	o.FS = pacedFS{o.FS}
	o.DisableWAL = true
	o.MaxManifestFileSize = maxManifestBytes
	return o
}

// closeWork closes work/. A later Write returns ErrNotLoaded.
func (m *Images) closeWork() error {
	m.loaded.Store(false)
	var err error
	if m.db != nil {
		err = m.db.Close()
	}
	m.db, m.known, m.closedIdle = nil, nil, false
	return err
}

func encodeImageRecord(index, term uint64, state []byte) []byte {
	b := make([]byte, 0, imageRecordHead+len(state))
	b = append(b, imageRecordVersion)
	b = binary.LittleEndian.AppendUint64(b, index)
	b = binary.LittleEndian.AppendUint64(b, term)
	return append(b, state...)
}

// decodeImageRecord returns the caller's state from an image record. If the record belongs to another log entry than
// the given one, it returns ErrDamaged.
func decodeImageRecord(record []byte, index, term uint64) ([]byte, error) {
	if len(record) < imageRecordHead || record[0] != imageRecordVersion {
		return nil, fmt.Errorf("%w (its record is %d bytes of an unknown kind)", ErrDamaged, len(record))
	}
	foundIndex, foundTerm := binary.LittleEndian.Uint64(record[1:]), binary.LittleEndian.Uint64(record[9:])
	if foundIndex != index || foundTerm != term {
		return nil, fmt.Errorf("%w (it is named for entry %d of term %d and holds entry %d of term %d)",
			ErrDamaged, index, term, foundIndex, foundTerm)
	}
	return record[imageRecordHead:], nil
}
