package persistence

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestTheLossOfOneFlushIsMissed checks that a store without its last flush, or without the last item of its journal, is
// refused and left unchanged.
func TestTheLossOfOneFlushIsMissed(t *testing.T) {
	fs := vfs.NewMem()
	s, table := mustOpen(t, fs, dataDir)
	changeAndFlush(t, s, table, 3, 0)
	killed, has := copyDir(t, fs), mark{Flush: s.last.Flush, Item: s.journal.next}
	require.NoError(t, s.Close())
	for name, c := range map[string]struct {
		promised mark
		refused  bool
	}{
		"nothing is lost": {has, false},
		"one flush":       {mark{has.Flush + 1, has.Item}, true},
		"one item":        {mark{has.Flush, has.Item + 1}, true},
		"both":            {mark{has.Flush + 1, has.Item + 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			broken := copyDir(t, killed)
			marks := bytes.Repeat(c.promised.slot(), markSlots)
			writeFile(t, broken, broken.PathJoin(dataDir, flushedName), marks)
			before := contents(t, broken)
			got, err := loadState(t, broken)
			if !c.refused {
				require.NoError(t, err)
				require.Equal(t, table.state(), got)
				return
			}
			require.ErrorIs(t, err, ErrDamaged)
			require.Equal(t, before, contents(t, broken))
		})
	}
}
