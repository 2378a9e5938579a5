package persistence

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

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
		{slot("flush 9") + slot("flush 1 item 2"), mark{1, 2}},
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

// TestAMissingMark checks that a directory without a mark, or whose mark cannot be read or written, is refused.
func TestAMissingMark(t *testing.T) {
	m, err := directory{vfs.NewMem(), dataDir}.readMark()
	require.ErrorIs(t, err, ErrDamaged)
	require.Zero(t, m)
	fails := errorfs.OpOpen
	failing := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == fails {
			return errTest
		}
		return nil
	}))
	_, err = directory{failing, dataDir}.readMark()
	require.ErrorIs(t, err, errTest)
	fails = errorfs.OpCreate
	require.NoError(t, failing.MkdirAll(dataDir, 0o700))
	_, err = directory{failing, dataDir}.openMarks(mark{1, 2})
	require.ErrorIs(t, err, errTest)
	fails = errorfs.OpOpen
	_, err = directory{failing, dataDir}.openMarks(mark{1, 2})
	require.ErrorIs(t, err, errTest)
}
