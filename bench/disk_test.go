package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFsyncMicros(t *testing.T) {
	dir := t.TempDir()
	micros, err := FsyncMicros(dir)
	require.NoError(t, err)
	require.Positive(t, micros)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = FsyncMicros(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTableWarnsOfMemoryThatPosesAsADisk(t *testing.T) {
	for micros, warns := range map[float64]bool{0: false, 0.8: true, 180: false} {
		var out strings.Builder
		require.NoError(t, (&Report{FsyncMicros: micros}).WriteTable(&out))
		require.Equal(t, warns, strings.Contains(out.String(), "WARNING: that is no disk"))
	}
}
