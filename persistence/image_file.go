package persistence

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// imageFile is one of Pebble's files in an image.
type imageFile struct {
	name string
	size int64
	sum  uint32 // CRC-32C of the head (see appendHead) and the content
}

const (
	// tableSuffix ends the names of Pebble's tables. Pebble never changes a written table, so tables are hard-linked.
	// The other files are small and copied.
	tableSuffix = ".sst"
	// maxFileBytes bounds one file. It is far above tableBytes, which a table exceeds by its last entry at most.
	maxFileBytes = 1 << 30
	// copyBytes is the size of the buffer for reading files.
	copyBytes = 256 << 10
)

// appendHead appends the head that precedes a file in a stream: the length of its name in one byte, the name, the size.
func (f imageFile) appendHead(b []byte) []byte {
	b = append(b, byte(len(f.name)))
	b = append(b, f.name...)
	return binary.LittleEndian.AppendUint64(b, uint64(f.size))
}

// parseFileHead decodes a complete head. It returns false if the size or the name is not valid for a file of an image.
func parseFileHead(b []byte) (imageFile, bool) {
	n := int(b[0])
	f := imageFile{name: string(b[1 : 1+n])}
	size := binary.LittleEndian.Uint64(b[1+n:])
	f.size = int64(size)
	return f, size <= maxFileBytes && validFileName(f.name)
}

// validFileName accepts only plain names like Pebble's. It rejects a path outside the directory, a hidden file, and the
// lock file.
func validFileName(name string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}
	return name != "" && len(name) <= maxImageName && name[0] != '.' && name != "LOCK" &&
		!strings.ContainsFunc(name, odd)
}

// measureFile reads a file of the directory through the given reader, and returns its size and checksum.
func measureFile(in directory, name string, through func(io.Reader) io.Reader) (imageFile, error) {
	f := imageFile{name: name}
	info, err := in.fs.Stat(in.file(name))
	if err != nil {
		return f, err
	}
	f.size = info.Size()
	file, err := in.fs.Open(in.file(name), vfs.SequentialReadsOption)
	if err != nil {
		return f, err
	}
	defer file.Close()
	sum := crc32.New(castagnoli)
	_, _ = sum.Write(f.appendHead(nil))
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{through(file)}, make([]byte, copyBytes))
	if err == nil && n != f.size {
		err = fmt.Errorf("%w (%s has %d bytes of %d)", ErrDamaged, name, n, f.size)
	}
	f.sum = sum.Sum32()
	return f, err
}

// verify compares a file of the directory with its entry in META.
func (f imageFile) verify(in directory) error {
	found, err := measureFile(in, f.name, func(r io.Reader) io.Reader { return r })
	if err == nil && found != f {
		err = fmt.Errorf("%w (%s is not the file that was written)", ErrDamaged, f.name)
	}
	return err
}

// copyTo copies a file into another directory, and hard-links a table.
func (f imageFile) copyTo(to, from directory) error {
	if strings.HasSuffix(f.name, tableSuffix) {
		return to.fs.Link(from.file(f.name), to.file(f.name))
	}
	return vfs.Copy(to.fs, from.file(f.name), to.file(f.name))
}
