package rules_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/envoyrls/rules"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", ".hidden.yaml", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "..data"), 0o700))
	single := filepath.Join(dir, "notes.txt")
	files, err := rules.Open([]string{dir, single})
	require.NoError(t, err)
	require.Equal(t, []rules.File{
		{Name: filepath.Join(dir, "a.yml"), Data: []byte("a.yml")},
		{Name: filepath.Join(dir, "b.yaml"), Data: []byte("b.yaml")},
		{Name: single, Data: []byte("notes.txt")},
	}, files)

	empty := t.TempDir()
	_, err = rules.Open([]string{empty})
	require.EqualError(t, err, empty+": the directory has no file whose name ends in .yaml or .yml")
	_, err = rules.Open([]string{filepath.Join(empty, "absent.yaml")})
	require.ErrorIs(t, err, os.ErrNotExist)

	large := filepath.Join(empty, "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, 2*rules.MaxFileBytes), 0o600))
	files, err = rules.Open([]string{large})
	require.NoError(t, err)
	_, err = rules.Parse(files, false)
	require.ErrorContains(t, err, "a file must have at most 1048576 bytes")
}
