package persistence

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Seal creates an image of everything written so far, as the state at the given log entry. state is the caller's part
// of the state, which Load passes to begin. meta describes the image (see ImageInfo). When Seal returns, the image is
// on disk. A crash before that leaves the previous images. Seal removes all images except the newest two and those
// that are being sent.
//
// If an image of this log entry exists, Seal keeps its files and replaces its meta. Seal returns ErrTooLarge or
// ErrNotLoaded. A disk failure ends the process.
func (m *Images) Seal(index, term uint64, state, meta []byte) (ImageInfo, error) {
	if err := checkSizes(state, meta); err != nil {
		return ImageInfo{}, err
	}
	m.work.Lock()
	defer m.work.Unlock()
	if err := m.reopenWork(); err != nil {
		return ImageInfo{}, err
	}
	made := imageMeta{index: index, term: term, meta: meta}
	temp, err := m.checkpoint(&made, state)
	if err != nil {
		return ImageInfo{}, m.must(err)
	}
	info, err := m.publish(temp, made)
	if err != nil {
		return ImageInfo{}, m.must(err)
	}
	m.known, m.idle = made.files, time.Now()
	return info, m.closeEagerly()
}

func checkSizes(state, meta []byte) error {
	if len(state) > maxStateBytes || len(meta) > maxMetaBytes {
		return fmt.Errorf("%w: %d bytes of state (at most %d), %d of meta (at most %d)",
			ErrTooLarge, len(state), maxStateBytes, len(meta), maxMetaBytes)
	}
	return nil
}

// checkpoint writes an image record, and then Pebble's files to a temporary directory. It lists the files in meta. All
// of them are on disk when checkpoint returns.
func (m *Images) checkpoint(meta *imageMeta, state []byte) (temp string, err error) {
	record := encodeImageRecord(meta.index, meta.term, state)
	if err := m.journal.writeRecord(nil, imageRecord, record, pebble.NoSync); err != nil {
		return "", err
	}
	if err := m.db.Flush(); err != nil {
		return "", err
	}
	if temp, err = m.makeTemp(imageID(meta.index, meta.term)); err != nil {
		return "", err
	}
	if err := m.db.Checkpoint(m.files(temp).path); err != nil {
		return "", err
	}
	meta.files, err = m.measureAll(m.files(temp))
	return temp, err
}

// measureAll lists the files of a checkpoint with their checksums. It reads only files that m.known does not have, at a
// bounded rate.
func (m *Images) measureAll(in directory) ([]imageFile, error) {
	names, err := in.fs.List(in.path)
	if err != nil {
		return nil, err
	}
	known := map[string]imageFile{}
	for _, f := range m.known {
		if strings.HasSuffix(f.name, tableSuffix) {
			known[f.name] = f
		}
	}
	var files []imageFile
	for _, name := range names {
		f, ok := known[name]
		if !ok {
			if f, err = measureFile(in, name, pacedBy); err != nil {
				return nil, err
			}
		}
		files = append(files, f)
	}
	if len(files) > maxImageFiles {
		return nil, errors.New("the image has too many files")
	}
	return files, nil
}
