package persistence

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine"
)

// Load makes work/ equal to an image and loads its entries into to. It first verifies every file of the image by its
// checksum. begin receives the state that was passed to Seal, and returns a stamp. Load omits entries that are idle at
// this stamp. Errors are ErrNoImage, ErrDamaged, ErrNewer and those of begin. After any error the caller must discard
// the data that begin and to received. Write and Seal then return ErrNotLoaded until another Load succeeds.
func (m *Images) Load(id string, begin func(state []byte) (engine.Stamp, error), to Loader) error {
	m.work.Lock()
	defer m.work.Unlock()
	meta, err := m.pin(id)
	if err != nil {
		return errors.Join(err, m.must(m.closeWork()))
	}
	err = m.loadHeld(id, meta, begin, to)
	if err != nil {
		err = errors.Join(fmt.Errorf("image %s: %w", id, refusal(err)), m.must(m.closeWork()))
	}
	return errors.Join(err, m.release(id))
}

func (m *Images) loadHeld(id string, meta imageMeta, begin func([]byte) (engine.Stamp, error), to Loader) error {
	for _, f := range meta.files {
		if err := f.verify(m.files(id)); err != nil {
			return err
		}
	}
	record, err := m.openWork(m.files(id), meta.files)
	if err != nil {
		return err
	}
	state, err := decodeImageRecord(record, meta.index, meta.term)
	if err != nil {
		return err
	}
	at, err := begin(state)
	if err != nil {
		return err
	}
	if err := m.journal.load(at, to, m.progress); err != nil {
		return err
	}
	m.loaded.Store(true)
	m.mu.Lock()
	err = m.must(m.raiseNewest(id)) // a crash can have left no NEWEST file
	m.mu.Unlock()
	return errors.Join(err, m.closeEagerly())
}
