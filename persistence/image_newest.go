package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// newestName is the file that names the newest image. The log before that image is compacted.
// If the newest image were lost, the start would otherwise take an older image for the state.
const newestName = "NEWEST"

// checkNewest refuses the directory, before anything in it is changed, if neither the image
// that the NEWEST file names nor a newer one is there. A crash after the first image can leave no such file.
func (m *Images) checkNewest() error {
	ids, err := m.ids()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := m.dir.read(newestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	line, ok := cutChecksum(text)
	id, named := strings.CutPrefix(line, "image ")
	if _, _, isID := parseImageID(id); !ok || !named || !isID {
		return fmt.Errorf("%w (its %s file says %.80q)", ErrDamaged, newestName, text)
	}
	if len(ids) == 0 || ids[0] < id {
		return fmt.Errorf("%w (image %s is missing)", ErrDamaged, id)
	}
	m.newest = id
	return nil
}

// raiseNewest records an image as the newest, unless a newer image is recorded. The caller holds mu.
func (m *Images) raiseNewest(id string) error {
	if id <= m.newest {
		return nil
	}
	return m.writeNewest(id)
}

// writeNewest records an image as the newest, on disk. The caller holds mu.
func (m *Images) writeNewest(id string) error {
	m.newest = id
	return m.dir.write(newestName+tempSuffix, newestName, withChecksum("image "+id))
}
