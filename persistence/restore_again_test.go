package persistence

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestARestoreAfterAKilledOne checks what a restore deletes of the files that it finds beside an interrupted restore:
// only what that one moved, and nothing if a node can start from the directory or if another file is there.
func TestARestoreAfterAKilledOne(t *testing.T) {
	for _, c := range []struct {
		name  string
		found []string
		empty bool
	}{
		{"killed among the moves", []string{"table", "groups"}, true},
		{"killed before the moves", nil, true},
		{"killed after the moves", []string{"table", "groups", NodeName}, false},
		{"another file", []string{"table", "log"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := directory{vfs.NewMem(), "/data"}
			require.NoError(t, d.make(d.scratch().path))
			require.NoError(t, d.scratch().write(movingName, movingName, "table\ngroups"))
			for _, name := range c.found {
				require.NoError(t, d.write(name, name, "content"))
			}
			_, err := d.claimEmpty(NodeName)
			names, _ := d.fs.List(d.path)
			if c.empty {
				require.NoError(t, err)
				require.Equal(t, []string{restoreName}, names)
				return
			}
			require.ErrorIs(t, err, ErrNotEmpty)
			require.Len(t, names, len(c.found)+1)
		})
	}
}

// TestARestoreDeletesNothingElsewhere checks that a damaged list of moved files names no file outside the directory.
func TestARestoreDeletesNothingElsewhere(t *testing.T) {
	fs := vfs.NewMem()
	d, other := directory{fs, "/data"}, directory{fs, "/other"}
	require.NoError(t, d.make(d.scratch().path))
	require.NoError(t, other.make(other.path))
	require.NoError(t, other.write("kept", "kept", "content"))
	require.NoError(t, d.scratch().write(movingName, movingName, "../other\n../other/kept"))
	_, err := d.claimEmpty(NodeName)
	require.NoError(t, err)
	names, err := fs.List(other.path)
	require.NoError(t, err)
	require.Equal(t, []string{"kept"}, names)
}
