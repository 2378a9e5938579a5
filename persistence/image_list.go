package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// List describes the images, newest first. It returns ErrDamaged or ErrNewer if META of the newest image cannot be
// read, or if one of its files is missing or has a wrong length. A node that continued from an older image would lose
// answered decisions. List omits an older image that cannot be read.
func (m *Images) List() ([]ImageInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids, err := m.ids()
	if err != nil {
		return nil, refusal(err)
	}
	var list []ImageInfo
	for i, id := range ids {
		meta, err := m.read(id)
		if err == nil {
			list = append(list, meta.info())
			continue
		}
		if i == 0 {
			return nil, err
		}
		m.log.Warn("cannot read an old image", "image", id, "error", err)
	}
	return list, nil
}

// ids returns the names of the images, newest first.
func (m *Images) ids() ([]string, error) {
	names, err := m.dir.fs.List(m.images().path)
	if err != nil {
		return nil, err
	}
	ids := names[:0]
	for _, name := range names {
		if strings.HasSuffix(name, tempSuffix) {
			continue
		}
		if _, _, ok := parseImageID(name); !ok {
			return nil, fmt.Errorf("%w (found %q among the images)", ErrForeign, name)
		}
		ids = append(ids, name)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, nil
}

// read returns an image's META, and checks that its files exist with the right lengths. It returns ErrNoImage if no
// image has this name.
func (m *Images) read(id string) (imageMeta, error) {
	index, term, ok := parseImageID(id)
	if ok {
		_, err := m.dir.fs.Stat(m.image(id).path)
		ok = !errors.Is(err, fs.ErrNotExist)
	}
	if !ok {
		return imageMeta{}, fmt.Errorf("%w: %.64q", ErrNoImage, id)
	}
	meta, err := m.readMeta(id)
	if err == nil && (meta.index != index || meta.term != term) {
		err = fmt.Errorf("%w (%s belongs to another image)", ErrDamaged, metaName)
	}
	if err == nil {
		err = m.checkFiles(id, meta)
	}
	if err != nil {
		return imageMeta{}, fmt.Errorf("image %s: %w", id, refusal(err))
	}
	return meta, nil
}

func (m *Images) readMeta(id string) (imageMeta, error) {
	f, err := m.dir.fs.Open(m.image(id).file(metaName))
	if err != nil {
		return imageMeta{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxImageMeta+1))
	if err != nil {
		return imageMeta{}, err
	}
	return decodeImageMeta(b)
}

func (m *Images) checkFiles(id string, meta imageMeta) error {
	for _, f := range meta.files {
		info, err := m.dir.fs.Stat(m.files(id).file(f.name))
		if err != nil {
			return err
		}
		if info.Size() != f.size {
			return fmt.Errorf("%w (%s has %d bytes of %d)", ErrDamaged, f.name, info.Size(), f.size)
		}
	}
	return nil
}

// writeMeta replaces an image's META. It is on disk when writeMeta returns.
func (m *Images) writeMeta(name string, meta imageMeta) error {
	return m.image(name).write(metaName+tempSuffix, metaName, string(meta.encode()))
}

// publish turns a temporary directory whose files are on disk into an image, and removes old images. If an image of the
// same log entry exists, it has the same state. publish then keeps its files and replaces only the caller's bytes.
func (m *Images) publish(temp string, meta imageMeta) (ImageInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := imageID(meta.index, meta.term)
	old, err := m.read(id)
	if err == nil {
		return m.renew(id, old, meta.meta, temp)
	}
	if !errors.Is(err, ErrNoImage) {
		m.log.Warn("replacing an image that cannot be read", "image", id, "error", err)
		if err := m.discard(id); err != nil {
			return ImageInfo{}, err
		}
	}
	err = m.writeMeta(temp, meta)
	if err == nil {
		err = m.dir.fs.Rename(m.image(temp).path, m.image(id).path)
	}
	if err == nil {
		err = m.images().sync()
	}
	if err == nil {
		err = m.raiseNewest(id)
	}
	if err == nil {
		err = m.reap(id)
	}
	return meta.info(), err
}

// renew replaces the caller's bytes of an existing image, and removes the temporary directory.
func (m *Images) renew(id string, old imageMeta, callers []byte, temp string) (ImageInfo, error) {
	var err error
	if !bytes.Equal(old.meta, callers) {
		old.meta = callers
		err = m.writeMeta(id, old)
	}
	return old.info(), errors.Join(err, m.dir.fs.RemoveAll(m.image(temp).path))
}

// reap removes the images that are older than the newest keepImages and that no stream reads. It never removes keep.
func (m *Images) reap(keep string) error {
	ids, err := m.ids()
	if err != nil {
		return err
	}
	for _, id := range ids[min(keepImages, len(ids)):] {
		if m.pinned[id] > 0 || id == keep {
			continue
		}
		if err := m.discard(id); err != nil {
			return err
		}
	}
	return nil
}

// KeepOnly removes all images but the given one. It removes the newest image last, so after a crash the newest image
// is still there, or only the given one. KeepOnly removes nothing and returns ErrImageUsed if a stream reads one of
// the images to remove, or ErrNoImage if the given image does not exist.
func (m *Images) KeepOnly(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids, err := m.ids()
	if err != nil {
		return err
	}
	if !slices.Contains(ids, id) {
		return fmt.Errorf("%w: %.64q", ErrNoImage, id)
	}
	for _, other := range ids {
		if other != id && m.pinned[other] > 0 {
			return fmt.Errorf("image %s: %w", other, ErrImageUsed)
		}
	}
	if err := m.must(m.writeNewest(id)); err != nil {
		return err
	}
	for _, other := range slices.Backward(ids) {
		if other == id {
			continue
		}
		if err := m.must(m.discard(other)); err != nil {
			return err
		}
	}
	return nil
}

// discard removes an image. It first gives the directory a temporary name, so that a crash leaves no partial image.
func (m *Images) discard(id string) error {
	temp := m.temp(id)
	if err := m.dir.fs.Rename(m.image(id).path, m.image(temp).path); err != nil {
		return err
	}
	if err := m.images().sync(); err != nil {
		return err
	}
	return m.dir.fs.RemoveAll(m.image(temp).path)
}

// temp returns a unique name for a temporary directory. The caller holds mu.
func (m *Images) temp(id string) string {
	m.temps++
	return fmt.Sprintf("%s.%d%s", id, m.temps, tempSuffix)
}

// makeTemp creates a temporary directory, without its state/ directory.
func (m *Images) makeTemp(id string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	temp := m.temp(id)
	return temp, m.dir.make(m.image(temp).path)
}

// pin returns an image's META. The image is not removed until release is called for it.
func (m *Images) pin(id string) (imageMeta, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	meta, err := m.read(id)
	if err == nil {
		m.pinned[id]++
	}
	return meta, err
}

// release ends a pin, and removes old images that are not pinned any more.
func (m *Images) release(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pinned[id]--; m.pinned[id] > 0 {
		return nil
	}
	delete(m.pinned, id)
	return m.must(m.reap(""))
}
