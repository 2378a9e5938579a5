package persistence

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
)

// mark is what the FLUSHED file says: the state contains flush number Flush, and
// the first Bytes bytes of Pebble's list of files have a checksum. Pebble takes a
// broken frame in that list for the trace of a crash and goes on with the files
// named before it; the mark tells the difference.
type mark struct {
	Flush    uint64
	Manifest uint64 // the number in the list's name
	Bytes    int64
	Sum      uint32
}

// text is the whole content of the FLUSHED file.
func (m mark) text() string {
	line := fmt.Sprintf("flush %d manifest %d bytes %d sum %d", m.Flush, m.Manifest, m.Bytes, m.Sum)
	return fmt.Sprintf("%s checksum %08x\n", line, crc32.Checksum([]byte(line), castagnoli))
}

// writeMark notes that the store contains flush n.
func (d directory) writeMark(n uint64) error {
	m, err := d.measure(n, -1)
	if err != nil {
		return err
	}
	return d.write(flushedName+".new", flushedName, m.text())
}

// checkMark holds the store's list of files against the last mark and returns the
// flush the store must at least contain; 0 when there is no mark yet.
func (d directory) checkMark() (uint64, error) {
	text, err := d.read(flushedName)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	var m mark
	_, err = fmt.Sscanf(text, "flush %d manifest %d bytes %d sum %d", &m.Flush, &m.Manifest, &m.Bytes, &m.Sum)
	if err != nil || m.text() != text {
		return 0, fmt.Errorf("%w (its %s file says %q)", ErrDamaged, flushedName, text)
	}
	found, err := d.measure(m.Flush, m.Bytes)
	if err != nil {
		return 0, err
	}
	// A later list begins with a copy of the whole, written when Pebble opened.
	if found != m && found.Manifest <= m.Manifest {
		return 0, fmt.Errorf("%w (its list of files is not the one that was written)", ErrDamaged)
	}
	return m.Flush, nil
}

// measure makes the mark of flush n over the first size bytes of the present list
// of files, or all of them when size is negative.
func (d directory) measure(n uint64, size int64) (mark, error) {
	m := mark{Flush: n}
	store, err := pebble.Peek(d.file(stateName), d.fs)
	if err != nil {
		return m, err
	}
	if !store.Exists {
		return m, fmt.Errorf("%w (%s is empty)", ErrDamaged, stateName)
	}
	if _, err := fmt.Sscanf(d.fs.PathBase(store.ManifestFilename), "MANIFEST-%d", &m.Manifest); err != nil {
		return m, err
	}
	f, err := d.fs.Open(store.ManifestFilename)
	if err != nil {
		return m, err
	}
	defer f.Close()
	var list io.Reader = f
	if size >= 0 {
		list = io.LimitReader(f, size)
	}
	sum := crc32.New(castagnoli)
	m.Bytes, err = io.Copy(sum, list)
	m.Sum = sum.Sum32()
	return m, err
}
