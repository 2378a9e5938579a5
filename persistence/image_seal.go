package persistence

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// Seal makes an image of everything written so far, as the state at the given log
// entry. state is the caller's part of it, which Load hands back; meta describes
// the image, see ImageInfo. When Seal returns, the image is on disk; a crash before
// leaves the images there were. Images older than the newest two go, unless one is
// being sent.
//
// An image of the same entry that is there already stays, and takes over meta.
// Errors are the caller's mistakes only: ErrTooLarge, ErrNotLoaded.
func (m *Images) Seal(index, term uint64, state, meta []byte) (ImageInfo, error) {
	if err := checkSizes(state, meta); err != nil {
		return ImageInfo{}, err
	}
	m.work.Lock()
	defer m.work.Unlock()
	if m.db == nil {
		return ImageInfo{}, ErrNotLoaded
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
	m.known = made.files
	return info, nil
}

func checkSizes(state, meta []byte) error {
	if len(state) > maxStateBytes || len(meta) > maxMetaBytes {
		return fmt.Errorf("%w: %d bytes of state (at most %d), %d of meta (at most %d)",
			ErrTooLarge, len(state), maxStateBytes, len(meta), maxMetaBytes)
	}
	return nil
}

// checkpoint puts Pebble's files into a temporary directory, all on disk, and lists
// them in meta.
func (m *Images) checkpoint(meta *imageMeta, state []byte) (temp string, err error) {
	record := encodeImageRecord(meta.index, meta.term, state)
	if err := m.journal.end(nil, imageRecord, record, pebble.NoSync); err != nil {
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

// measureAll lists the files of a checkpoint. Only new ones are read, without haste.
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
			if f, err = measureFile(in, name, restfully); err != nil {
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
