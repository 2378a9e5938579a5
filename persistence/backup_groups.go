package persistence

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// groupsVersion is the version of a backup of several Raft groups (see backupVersion). An older weir refuses it as
// newer.
const groupsVersion = 4

// A backup of several groups is a manifest and a part for each group, in the order of the groups.
//
//	manifest: backupMagic, groupsVersion, id, number of groups, an entry for each group, CRC-32C of all these
//	entry:    length of the group's backup, first slot, last slot, its Contents
//	part:     partMagic, id, number of the group, CRC-32C of these; the group's backup; CRC-32C of the group's backup
//
// The backup of a group has the format of a backup of one group. The id is random, so that a part of another backup is
// noticed.
const (
	backupIDLen     = 16
	manifestHead    = backupStart + backupIDLen + 4
	manifestEntry   = 8 + 2 + 2 + contentsLen
	partHead        = 12 + backupIDLen + 4 + 4
	partSum         = 4
	maxBackupGroups = hashslot.MaxGroups
)

var partMagic = []byte("weir group\n\n")

// manifest describes a backup of several groups.
type manifest struct {
	id     [backupIDLen]byte
	groups []manifestGroup
}

// manifestGroup describes the backup of one group.
type manifestGroup struct {
	Contents
	bytes int64
	slots hashslot.Range
}

func (m *manifest) encode() []byte {
	b := appendStart(groupsVersion)
	b = append(b, m.id[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.groups)))
	for _, g := range m.groups {
		b = binary.LittleEndian.AppendUint64(b, uint64(g.bytes))
		b = binary.LittleEndian.AppendUint16(b, g.slots.First)
		b = binary.LittleEndian.AppendUint16(b, g.slots.Last)
		b = g.Contents.append(b)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readManifest reads a manifest, whose magic and version are in start.
func readManifest(start []byte, r io.Reader) (m manifest, err error) {
	b := append(bytes.Clone(start), make([]byte, manifestHead-len(start))...)
	if err := readPart(r, b[len(start):], "its manifest is too short"); err != nil {
		return m, err
	}
	n := binary.LittleEndian.Uint32(b[manifestHead-4:])
	if n < 2 || n > maxBackupGroups {
		return m, fmt.Errorf("%w (its manifest names %d groups)", ErrNoBackup, n)
	}
	rest := make([]byte, int(n)*manifestEntry+4)
	if err := readPart(r, rest, "its manifest is too short"); err != nil {
		return m, err
	}
	b = append(b, rest...)
	if end := len(b) - 4; crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return m, fmt.Errorf("%w (the checksum of its manifest is wrong)", ErrNoBackup)
	}
	copy(m.id[:], b[backupStart:])
	for ; len(rest) > 4; rest = rest[manifestEntry:] {
		g := manifestGroup{bytes: int64(binary.LittleEndian.Uint64(rest)), slots: hashslot.Range{
			First: binary.LittleEndian.Uint16(rest[8:]), Last: binary.LittleEndian.Uint16(rest[10:])}}
		if g.Contents, err = parseContents(rest[12:manifestEntry]); err != nil {
			return m, backupError(err)
		}
		m.groups = append(m.groups, g)
	}
	return m, m.check()
}

// check returns an error for a manifest that no weir wrote.
func (m *manifest) check() error {
	for i, g := range m.groups {
		switch {
		case !hashslot.ValidGroups(len(m.groups)) || g.slots != hashslot.OfGroup(i, len(m.groups)):
			return fmt.Errorf("%w (its manifest gives group %d of %d the slots %d to %d)", ErrNoBackup, i,
				len(m.groups), g.slots.First, g.slots.Last)
		case g.bytes < backupHead:
			return fmt.Errorf("%w (its manifest gives group %d a backup of %d bytes)", ErrNoBackup, i, g.bytes)
		case g.At.Test != m.groups[0].At.Test:
			return fmt.Errorf("%w (group %d has another kind of clock than group 0)", ErrNoBackup, i)
		}
	}
	return nil
}

// partStart returns the head of the part of a group.
func (m *manifest) partStart(group int) []byte {
	b := append(bytes.Clone(partMagic), m.id[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(group))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readPartStart reads the head of the part of a group. Its error names what the stream has instead.
func (m *manifest) readPartStart(r io.Reader, group int) error {
	b := make([]byte, partHead)
	if err := readPart(r, b, "the backup ends before it"); err != nil {
		return err
	}
	end := partHead - 4
	if !bytes.HasPrefix(b, partMagic) || crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return fmt.Errorf("%w (its head is damaged)", ErrNoBackup)
	}
	if !bytes.HasPrefix(b[len(partMagic):], m.id[:]) {
		return fmt.Errorf("%w (it belongs to another backup)", ErrNoBackup)
	}
	if found := binary.LittleEndian.Uint32(b[end-4:]); found != uint32(group) {
		return fmt.Errorf("%w (the image of group %d is in its place)", ErrNoBackup, found)
	}
	return nil
}

// readPart fills b. short is the error text for a stream that ends early.
func readPart(r io.Reader, b []byte, short string) error {
	if _, err := io.ReadFull(r, b); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w (%s)", ErrNoBackup, short)
	} else if err != nil {
		return err
	}
	return nil
}

// JoinBackups joins the backups of all groups, in the order of the groups, into one backup, which owns them. The
// groups own equal ranges of the slots.
func JoinBackups(groups []*limiter.Backup) (*limiter.Backup, error) {
	m := manifest{}
	if _, err := rand.Read(m.id[:]); err != nil {
		return nil, errors.Join(err, closeAll(groups))
	}
	var bodies []io.Reader
	for i, g := range groups {
		head := make([]byte, backupHead)
		if err := readPart(g, head, "it is too short"); err != nil {
			return nil, errors.Join(err, closeAll(groups))
		}
		c, err := readContents(bytes.NewReader(head))
		if err != nil {
			return nil, errors.Join(err, closeAll(groups))
		}
		m.groups = append(m.groups, manifestGroup{Contents: c, bytes: g.Bytes,
			slots: hashslot.OfGroup(i, len(groups))})
		bodies = append(bodies, io.MultiReader(bytes.NewReader(head), g))
	}
	joined := &joinedBackups{groups: groups}
	head := m.encode()
	readers, size := []io.Reader{bytes.NewReader(head)}, int64(len(head))
	for i, body := range bodies {
		readers = append(readers, bytes.NewReader(m.partStart(i)),
			&summedReader{from: body, sum: crc32.New(castagnoli)})
		size += partHead + groups[i].Bytes + partSum
	}
	joined.Reader = io.MultiReader(readers...)
	return &limiter.Backup{ReadCloser: joined, Bytes: size}, nil
}

// joinedBackups is the stream of a backup of several groups.
type joinedBackups struct {
	io.Reader
	groups []*limiter.Backup
}

func (j *joinedBackups) Close() error { return closeAll(j.groups) }

func closeAll(groups []*limiter.Backup) (err error) {
	for _, g := range groups {
		err = errors.Join(err, g.Close())
	}
	return err
}

// summedReader is a stream followed by its CRC-32C.
type summedReader struct {
	from io.Reader
	sum  hash.Hash32
	end  *bytes.Reader // the checksum, after the stream
}

func (s *summedReader) Read(p []byte) (int, error) {
	if s.end != nil {
		return s.end.Read(p)
	}
	n, err := s.from.Read(p)
	_, _ = s.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		s.end = bytes.NewReader(binary.LittleEndian.AppendUint32(nil, s.sum.Sum32()))
		err = nil
	}
	return n, err
}
