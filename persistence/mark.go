package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mark is a promise about the store, kept in a separate file: the store contains flush number Flush, and its journal
// contains every item below Item. Pebble takes damage at the end of its write-ahead log or manifest for a torn write,
// and silently ignores what follows. The mark tells damage from a torn write: damage removes promised items.
type mark struct{ Flush, Item uint64 }

// The FLUSHED file has a slot for each of the last two marks, each in its own sector. A torn write of one slot leaves
// the other.
const (
	markSlots = 2
	slotBytes = 512
)

// slot returns the mark as a line of text with its checksum, padded with zeros.
func (m mark) slot() []byte {
	slot := make([]byte, slotBytes)
	copy(slot, withChecksum(fmt.Sprintf("flush %d item %d", m.Flush, m.Item)))
	return slot
}

// withChecksum returns a line of text followed by its checksum and a line end. Small files are stored in this form.
func withChecksum(line string) string {
	return fmt.Sprintf("%s checksum %08x\n", line, crc32.Checksum([]byte(line), castagnoli))
}

// cutChecksum is the inverse of withChecksum. It ignores text after the line, and returns false if
// the checksum is wrong.
func cutChecksum(text string) (line string, ok bool) {
	line, _, _ = strings.Cut(text, " checksum ")
	return line, strings.HasPrefix(text, withChecksum(line))
}

// readSlot returns the mark of a slot, or false if its checksum is wrong.
func readSlot(slot string) (m mark, ok bool) {
	line, ok := cutChecksum(slot)
	if !ok {
		return m, false
	}
	n, _ := fmt.Sscanf(line, "flush %d item %d", &m.Flush, &m.Item)
	return m, n == 2
}

// readMark returns the combined promise of all valid marks.
func (d directory) readMark() (newest mark, err error) {
	text, err := d.read(flushedName)
	if errors.Is(err, fs.ErrNotExist) {
		return newest, fmt.Errorf("%w (its %s file is missing)", ErrDamaged, flushedName)
	} else if err != nil {
		return newest, err
	}
	found := false
	for from := 0; from < len(text); from += slotBytes {
		if m, ok := readSlot(text[from:min(from+slotBytes, len(text))]); ok {
			newest = mark{Flush: max(newest.Flush, m.Flush), Item: max(newest.Item, m.Item)}
			found = true
		}
	}
	if !found {
		return newest, fmt.Errorf("%w (its %s file has no mark with a right checksum: %.80q)", ErrDamaged,
			flushedName, text)
	}
	return newest, nil
}

// markFile writes marks into the slots alternately.
type markFile struct {
	file vfs.File
	slot int64 // to write next
}

// openMarks replaces the FLUSHED file by one with the given mark in every slot.
func (d directory) openMarks(m mark) (*markFile, error) {
	all := bytes.Repeat(m.slot(), markSlots)
	if err := d.write(flushedName+".new", flushedName, string(all)); err != nil {
		return nil, err
	}
	f, err := d.fs.OpenReadWrite(d.file(flushedName), vfs.WriteCategoryUnspecified)
	return &markFile{file: f}, err
}

// write replaces the older of the two marks. The new mark is on disk when write returns.
func (f *markFile) write(m mark) error {
	if _, err := f.file.WriteAt(m.slot(), f.slot*slotBytes); err != nil {
		return err
	}
	f.slot = (f.slot + 1) % markSlots
	return f.file.SyncData()
}

func (f *markFile) close() error {
	if f == nil {
		return nil
	}
	return f.file.Close()
}
