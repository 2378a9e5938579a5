package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// twoImages returns a directory with images 1 and 2.
func twoImages(t *testing.T) (fs *vfs.MemFS, newestDir string) {
	fs = vfs.NewMem()
	m, table := mustOpenImages(t, fs), newFakeTable()
	rng := rand.New(rand.NewPCG(6, 6))
	for n := 1; n <= 2; n++ {
		for range 20 {
			change(rng, table, n)
			write(t, m, table)
		}
		seal(t, m, uint64(n))
	}
	dir := m.image(imageID(2, 1)).path
	require.NoError(t, m.Close())
	return fs, dir
}

func isRefusal(err error) bool {
	return strings.Contains(err.Error(), ErrDamaged.Error()) || strings.Contains(err.Error(), ErrNewer.Error())
}

func TestATruncatedOrMissingFileInTheNewestImage(t *testing.T) {
	fs, dir := twoImages(t)
	for _, path := range files(t, fs, dir) {
		content := readFile(t, fs, path)
		for _, keep := range []int{-1, 0, len(content) / 2, len(content) - 1} {
			broken := copyDir(t, fs)
			if keep == len(content) || keep < -1 {
				continue
			}
			if keep < 0 {
				require.NoError(t, broken.Remove(path))
			} else {
				writeFile(t, broken, path, content[:keep])
			}
			m := mustOpenImages(t, broken)
			_, err := m.List()
			require.ErrorIs(t, err, ErrDamaged, "%s cut to %d of %d", path, keep, len(content))
			_, _, err = m.Send(imageID(2, 1))
			require.ErrorIs(t, err, ErrDamaged)
			require.NoError(t, m.Close())
		}
	}
}

func TestADamagedOlderImageIsLeftOut(t *testing.T) {
	fs, _ := twoImages(t)
	require.NoError(t, fs.Remove(fs.PathJoin(dataDir, imagesName, imageID(1, 1), metaName)))
	m := mustOpenImages(t, fs)
	list, err := m.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.EqualValues(t, 2, list[0].Index)
	mustLoadImage(t, m, list[0].ID)
	seal(t, m, 3)
	seal(t, m, 4)
	list, err = m.List()
	require.NoError(t, err)
	require.Len(t, list, 2, "a damaged image must be removed like any other old image")
	require.NoError(t, m.Close())
}

// metaOfVersion changes the version in META and corrects the checksum.
func metaOfVersion(b []byte, version uint32) []byte {
	b = bytes.Clone(b[:len(b)-4])
	binary.LittleEndian.PutUint32(b[len(metaMagic):], version)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// TestAnImageOfAnotherEntryIsRefused checks that an image is refused unless META, its image record and the name of its
// directory name the same log entry.
func TestAnImageOfAnotherEntryIsRefused(t *testing.T) {
	fs, dir := twoImages(t)
	third := fs.PathJoin(dataDir, imagesName, imageID(3, 1))
	require.NoError(t, fs.Rename(dir, third))
	_, _, err := newest(fs)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "belongs to another image")

	meta, err := decodeImageMeta(readFile(t, fs, fs.PathJoin(third, metaName)))
	require.NoError(t, err)
	meta.index = 3
	writeFile(t, fs, fs.PathJoin(third, metaName), meta.encode())
	_, _, err = newest(fs)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "named for entry 3 of term 1 and holds entry 2 of term 1")
}

// TestADamagedImageIsRefusedBeforeItIsLoaded checks that the table receives nothing before the whole image was
// checked.
func TestADamagedImageIsRefusedBeforeItIsLoaded(t *testing.T) {
	fs, dir := twoImages(t)
	for _, path := range files(t, fs, fs.PathJoin(dir, stateName)) {
		content := readFile(t, fs, path)
		if kindOf(path) != "sst" {
			continue
		}
		broken := copyDir(t, fs)
		content[len(content)/2] ^= 1
		writeFile(t, broken, path, content)
		m := mustOpenImages(t, broken)
		table := newFakeTable()
		err := m.Load(imageID(2, 1), func([]byte) (engine.Stamp, error) {
			t.Error("a damaged image must not reach the table")
			return engine.Stamp{}, nil
		}, table)
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, "image "+imageID(2, 1))
		require.Empty(t, table.state())
		require.NoError(t, m.Close())
	}
}

func FuzzDecodeImageMeta(f *testing.F) {
	good := imageMeta{index: 1, term: 2, meta: []byte("m"),
		files: []imageFile{{"000001.sst", 5, 6}, {"MANIFEST-000001", 0, 0}}}
	f.Add(good.encode())
	f.Add([]byte{})
	f.Add(metaOfVersion(good.encode(), imageVersion+1))
	f.Add(metaOfVersion(good.encode(), oldestImage))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 { // otherwise the checksum refuses everything
			sum := crc32.Checksum(b[:len(b)-4], castagnoli)
			b = binary.LittleEndian.AppendUint32(bytes.Clone(b[:len(b)-4]), sum)
		}
		m, err := decodeImageMeta(b)
		if err == nil {
			version := binary.LittleEndian.Uint32(b[len(metaMagic):])
			require.Equal(t, b, metaOfVersion(m.encode(), version))
			require.Equal(t, imageID(m.index, m.term), m.info().ID)
		} else {
			require.True(t, isRefusal(err), fmt.Sprint(err))
		}
	})
}

func TestImageMetaIsReadBack(t *testing.T) {
	m := imageMeta{index: 1<<64 - 1, term: 3, meta: []byte{0, 1},
		files: []imageFile{{"a.sst", 1, 2}, {"b", maxFileBytes, 1<<32 - 1}}}
	got, err := decodeImageMeta(m.encode())
	require.NoError(t, err)
	require.Equal(t, m, got)
	twice := m
	twice.files = append(twice.files, imageFile{"a.sst", 1, 2})
	_, err = decodeImageMeta(twice.encode())
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "contradicts")
}
