package persistence

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnImageOfAnotherTermIsRefused checks that an image is refused if META and the name of its directory agree on the
// log index but not on the term.
func TestAnImageOfAnotherTermIsRefused(t *testing.T) {
	fs, dir := twoImages(t)
	path := fs.PathJoin(dir, metaName)
	meta, err := decodeImageMeta(readFile(t, fs, path))
	require.NoError(t, err)
	meta.term++
	writeFile(t, fs, path, meta.encode())
	m := mustOpenImages(t, fs)
	_, err = m.List()
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "belongs to another image")
	_, _, err = m.Send(imageID(2, 1))
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, m.Close())
}

// TestALongerFileInTheNewestImage checks that List refuses an image with extra bytes at the end of any file. It finds
// them without reading the files.
func TestALongerFileInTheNewestImage(t *testing.T) {
	fs, dir := twoImages(t)
	for _, path := range files(t, fs, dir) {
		content := readFile(t, fs, path)
		for _, more := range []int{1, sectorBytes} {
			broken := copyDir(t, fs)
			writeFile(t, broken, path, append(content[:len(content):len(content)], make([]byte, more)...))
			m := mustOpenImages(t, broken)
			_, err := m.List()
			require.ErrorIs(t, err, ErrDamaged, "%s with %d bytes more", path, more)
			require.NoError(t, m.Close())
		}
	}
}
