package persistence

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// formatFour returns a directory in format 4. Its last clock record does not say where the journal begins, and its
// FLUSHED file is one line about the given flush.
func formatFour(t *testing.T, flushed uint64) (*vfs.MemFS, map[string]string) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	changeAndFlush(t, s, table, 5, 3)
	b := s.db.NewBatch()
	require.NoError(t, s.journal.add(b, clockRecord, binary.AppendUvarint(nil, 1), s.last.encode()))
	require.NoError(t, b.Commit(pebble.Sync))
	line := fmt.Sprintf("flush %d manifest 1 bytes 2 sum 3", flushed)
	old := copyDir(t, fs)
	require.NoError(t, s.Close())
	writeFile(t, old, fs.PathJoin(dataDir, formatName), []byte(formatText(4)))
	writeFile(t, old, fs.PathJoin(dataDir, flushedName),
		fmt.Appendf(nil, "%s checksum %08x\n", line, crc32.Checksum([]byte(line), castagnoli)))
	return old, table.state()
}

func TestADirectoryOfFormat4IsUpgraded(t *testing.T) {
	fs, want := formatFour(t, 6)
	for range 2 {
		got, err := loadState(t, fs)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, formatText(formatVersion), string(readFile(t, fs, fs.PathJoin(dataDir, formatName))))
		require.Len(t, readFile(t, fs, fs.PathJoin(dataDir, flushedName)), markSlots*slotBytes)
	}
	fs, _ = formatFour(t, 7)
	_, err := loadState(t, fs)
	require.ErrorIs(t, err, ErrDamaged)
}

// TestATornMark checks that a torn write of one slot of the FLUSHED file is harmless, because the other slot is valid.
func TestATornMark(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	changeAndFlush(t, s, table, 3, 0)
	path := fs.PathJoin(dataDir, flushedName)
	for slot := range markSlots {
		torn := readFile(t, fs, path)
		clear(torn[slot*slotBytes+5:][:slotBytes-5])
		broken := copyDir(t, fs)
		writeFile(t, broken, path, torn)
		got, err := loadState(t, broken)
		require.NoError(t, err)
		require.Equal(t, table.state(), got)
	}
	broken := copyDir(t, fs)
	writeFile(t, broken, path, make([]byte, markSlots*slotBytes))
	_, err := loadState(t, broken)
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, s.Close())
}

// TestMarksPromiseTogether checks that the promise of every mark with a valid checksum counts, in either slot.
func TestMarksPromiseTogether(t *testing.T) {
	fs := vfs.NewMem()
	d := directory{fs, dataDir}
	require.NoError(t, fs.MkdirAll(dataDir, 0o700))
	no := strings.Repeat("\x00", slotBytes)
	slot := func(line string) string { return (withChecksum(line) + no)[:slotBytes] }
	for _, c := range []struct {
		text string
		want mark
	}{
		{slot("flush 3 item 10") + slot("flush 4 item 12"), mark{4, 12}},
		{slot("flush 4 item 12") + slot("flush 3 item 10"), mark{4, 12}},
		{slot("flush 4 item 12") + slot("flush 4 item 13"), mark{4, 13}},
		{slot("flush 4 item 13") + slot("flush 4 item 12"), mark{4, 13}},
		{slot("flush 4 item 10") + slot("flush 5 item 10"), mark{5, 10}},
		{slot("flush 5 item 10") + slot("flush 4 item 11"), mark{5, 11}},
		{no + slot("flush 4 item 12"), mark{4, 12}}, {slot("flush 4 item 12") + no, mark{4, 12}},
		{slot("something") + slot("flush 1 item 2"), mark{1, 2}},
		{withChecksum("flush 7 manifest 1 bytes 2 sum 3"), mark{7, 0}},
	} {
		writeFile(t, fs, d.file(flushedName), []byte(c.text))
		m, err := d.readMark()
		require.NoError(t, err, "%q", c.text)
		require.Equal(t, c.want, m, "%q", c.text)
	}
	for _, text := range []string{"", no + no, slot("something") + no, slot("something"), "flush 1 item 2\n"} {
		writeFile(t, fs, d.file(flushedName), []byte(text))
		_, err := d.readMark()
		require.ErrorIs(t, err, ErrDamaged, "%q", text)
	}
}

// TestAMissingMark checks that a directory without a mark is refused, unless its format is one that may have no mark.
func TestAMissingMark(t *testing.T) {
	for version, want := range map[int]error{1: nil, markedFormat - 1: nil, markedFormat: ErrDamaged,
		formatVersion + 1: ErrNewer} {
		fs := vfs.NewMem()
		d := directory{fs, dataDir}
		require.NoError(t, fs.MkdirAll(dataDir, 0o700))
		writeFile(t, fs, d.file(formatName), []byte(formatText(version)))
		m, err := d.readMark()
		require.ErrorIs(t, err, want, "format %d", version)
		require.Zero(t, m)
	}
	fails := errorfs.OpOpen
	failing := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == fails {
			return errTest
		}
		return nil
	}))
	_, err := directory{failing, dataDir}.readMark()
	require.ErrorIs(t, err, errTest)
	fails = errorfs.OpCreate
	require.NoError(t, failing.MkdirAll(dataDir, 0o700))
	_, err = directory{failing, dataDir}.openMarks(mark{1, 2})
	require.ErrorIs(t, err, errTest)
	fails = errorfs.OpOpen
	_, err = directory{failing, dataDir}.openMarks(mark{1, 2})
	require.ErrorIs(t, err, errTest)
}
