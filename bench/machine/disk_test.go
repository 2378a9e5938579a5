package machine

import (
	"os"
	"path/filepath"
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
