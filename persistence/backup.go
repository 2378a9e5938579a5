package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// backupVersion is the version of a backup of one group: of its head and of its image. Version 1, that of weir 0.1.0,
// and version 2 have images of version 4, and versions 3 and 4 of version 5 or older (see imageVersion). Backups of
// several groups have the even versions (see groupsVersion).
const backupVersion = 3

// newestBackup is the newest version that this weir reads.
const newestBackup = groupsVersion

// ofGroups reports whether a backup of a version is one of several groups.
func ofGroups(version uint32) bool { return version > 0 && version%2 == 0 }

// backupMagic begins a backup. A backup is a head and the stream of an image (see encodeStreamHead). The head is
// backupMagic, the version, the Contents and the CRC-32C of all these.
var backupMagic = []byte("weir backup\n")

const (
	backupStart = 12 + 4 // magic and version
	contentsLen = 3*8 + recordLen
	backupHead  = backupStart + contentsLen + 4
)

// Contents describes a backup, without its entries. A backup of several groups has the Index and the Term of the first
// group, the latest clock and the longest IDLifetimeNs.
type Contents struct {
	// Index and Term name the last log entry that the backup contains. For a server that runs alone, Index is the
	// number of its last flush, and Term is 0.
	Index, Term uint64
	// At is the clock record. Its limiter time is not before the time of any entry.
	At Record
	// IDLifetimeNs is the time for which idempotency keys are kept.
	IDLifetimeNs int64
}

// Clock returns the current stamp of a clock that continues from the backup. Limiter time advances by the elapsed
// wall-clock time, at most by credit. Calendar windows follow the wall clock without a bound.
func (c Contents) Clock(source Source, credit time.Duration) engine.Stamp {
	return newClock(Options{Source: source, TestClock: c.At.Test, MaxDowntimeCredit: credit,
		MaxCalendarStep: math.MaxInt64}, &c.At).Now()
}

func appendStart(version uint32) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(backupMagic), version)
}

func (c Contents) encode() []byte {
	b := c.append(appendStart(backupVersion))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (c Contents) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, c.Index)
	b = binary.LittleEndian.AppendUint64(b, c.Term)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.IDLifetimeNs))
	return append(b, c.At.encode()...)
}

func parseContents(b []byte) (c Contents, err error) {
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	c.Index, c.Term, c.IDLifetimeNs = field(0), field(1), int64(field(2))
	c.At, err = decodeRecord(b[3*8 : contentsLen])
	return c, err
}

// readStart reads the magic and the version of a backup. It returns ErrBackupNewer for a newer version, and ErrNoBackup
// for any other content.
func readStart(r io.Reader) (start []byte, version uint32, err error) {
	start = make([]byte, backupStart)
	if err := readPart(r, start, "it is too short"); err != nil {
		return nil, 0, err
	}
	rest, ok := bytes.CutPrefix(start, backupMagic)
	if !ok {
		return nil, 0, fmt.Errorf("%w (it does not begin with the header of a backup)", ErrNoBackup)
	}
	if version = binary.LittleEndian.Uint32(rest); version > newestBackup {
		return nil, 0, fmt.Errorf("%w (backup format %d, this weir knows %d)", ErrBackupNewer, version, newestBackup)
	}
	return start, version, nil
}

// readContents reads the head of a backup of one group.
func readContents(r io.Reader) (c Contents, err error) {
	start, version, err := readStart(r)
	if err != nil {
		return c, err
	}
	if ofGroups(version) {
		return c, fmt.Errorf("%w (a backup of several groups is in the place of one)", ErrNoBackup)
	}
	return readRest(start, r)
}

// readRest reads the head of a backup of one group, whose magic and version are in start.
func readRest(start []byte, r io.Reader) (c Contents, err error) {
	b := append(start, make([]byte, backupHead-backupStart)...)
	if err := readPart(r, b[backupStart:], "it is too short"); err != nil {
		return c, err
	}
	end := backupHead - 4
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return c, fmt.Errorf("%w (the checksum of its head is wrong)", ErrNoBackup)
	}
	return parseContents(b[backupStart:end])
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
