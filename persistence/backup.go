package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/weir-project/weir/limiter"
)

// backupVersion is the version of a backup's head and of the entries in its image.
const backupVersion = 1

// backupMagic begins a backup. A backup is a head and the stream of an image (see appendStreamHead). The head is
// backupMagic, the version, the Contents and the CRC-32C of all these.
var backupMagic = []byte("weir backup\n")

const backupHead = 12 + 4 + 3*8 + recordLen + 4

// Contents describes a backup, without its entries.
type Contents struct {
	// Index and Term name the last log entry that the backup contains. For a server that runs alone, Index is the
	// number of its last flush, and Term is 0.
	Index, Term uint64
	// At is the clock record. Its limiter time is not before the time of any entry.
	At Record
	// IDLifetimeNs is the time for which idempotency keys are kept.
	IDLifetimeNs int64
}

func (c Contents) encode() []byte {
	b := bytes.Clone(backupMagic)
	b = binary.LittleEndian.AppendUint32(b, backupVersion)
	b = binary.LittleEndian.AppendUint64(b, c.Index)
	b = binary.LittleEndian.AppendUint64(b, c.Term)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.IDLifetimeNs))
	b = append(b, c.At.encode()...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readContents reads a backup's head. It returns ErrBackupNewer for a newer version, and ErrNoBackup for any other
// content.
func readContents(r io.Reader) (c Contents, err error) {
	b := make([]byte, backupHead)
	if _, err := io.ReadFull(r, b); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return c, fmt.Errorf("%w (it is too short)", ErrNoBackup)
	} else if err != nil {
		return c, err
	}
	rest, ok := bytes.CutPrefix(b, backupMagic)
	if !ok {
		return c, fmt.Errorf("%w (it does not begin with the header of a backup)", ErrNoBackup)
	}
	if version := binary.LittleEndian.Uint32(rest); version > backupVersion {
		return c, fmt.Errorf("%w (backup format %d, this weir knows %d)", ErrBackupNewer, version, backupVersion)
	}
	end := backupHead - 4
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return c, fmt.Errorf("%w (the checksum of its head is wrong)", ErrNoBackup)
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(rest[4+8*i:]) }
	c.Index, c.Term, c.IDLifetimeNs = field(0), field(1), int64(field(2))
	c.At, err = decodeRecord(rest[4+3*8 : 4+3*8+recordLen])
	return c, err
}

// NewBackup returns a backup that consists of c and an image. image is the stream of the image, and size its length.
// The backup closes it.
func NewBackup(image io.ReadCloser, size int64, c Contents) *limiter.Backup {
	head := c.encode()
	return &limiter.Backup{
		ReadCloser: struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), image), image},
		Bytes: int64(len(head)) + size,
	}
}
