package persistence

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// formatFour is a directory as format 4 left it: its last clock record does not say where
// the journal begins, and its FLUSHED file is one line about the given flush.
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

// Either slot may be torn: the other one holds.
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
