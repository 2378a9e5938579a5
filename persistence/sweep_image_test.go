package persistence

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// TestDamageLosesNoImage damages each byte of each file of the images. A node must start from its complete newest
// image, or refuse to start. It must not use the previous image, because the log between the two images is compacted.
func TestDamageLosesNoImage(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	fs, want := smallImages(t)
	require.NoError(t, fs.RemoveAll(fs.PathJoin(dataDir, workName))) // every start removes it
	counts := newTallies()
	sweepDirectory(t, fs, counts, func(broken *vfs.MemFS) verdict {
		index, got, err := newest(broken)
		forgetWork(t, broken)
		switch {
		case err != nil:
			return verdict{refusal: err}
		case index != 2 || !maps.Equal(got, want):
			return verdict{lost: fmt.Sprintf("image %d with %d entries of %d", index, len(got), len(want))}
		}
		return verdict{}
	})
	counts.log(t)
}

// smallImages makes two images of a few entries, and returns the entries of the newest.
func smallImages(t *testing.T) (*vfs.MemFS, map[string]string) {
	fs := vfs.NewMem()
	m, table := mustOpenImages(t, fs), newFakeTable()
	for n := range 2 {
		for i := range 6 {
			table.set(fmt.Sprintf("k%d", i), fmt.Sprint(n, i))
		}
		write(t, m, table)
		seal(t, m, uint64(n+1))
	}
	require.NoError(t, m.Close())
	return fs, table.state()
}

// forgetWork removes work/, because every start makes it anew and it is not part of the state.
func forgetWork(t *testing.T, fs *vfs.MemFS) {
	require.NoError(t, removeAll(fs, fs.PathJoin(dataDir, workName)))
}

// TestALostImageIsMissed checks that a start notices a missing newest image, whether an older one is there or none.
func TestALostImageIsMissed(t *testing.T) {
	for _, lost := range [][]string{{imageID(2, 1)}, {imageID(1, 1), imageID(2, 1)}} {
		fs, _ := twoImages(t)
		for _, id := range lost {
			require.NoError(t, fs.RemoveAll(fs.PathJoin(dataDir, imagesName, id)))
		}
		before := contents(t, fs)
		_, _, err := newest(fs)
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, imageID(2, 1)+" is missing")
		require.Equal(t, before, contents(t, fs))
	}
}

// TestKeepOnlyIsNoLoss checks that removing newer images with KeepOnly does not count as a loss.
func TestKeepOnlyIsNoLoss(t *testing.T) {
	fs, _ := twoImages(t)
	m := mustOpenImages(t, fs)
	require.NoError(t, m.KeepOnly(imageID(1, 1)))
	require.NoError(t, m.Close())
	index, _, err := newest(fs)
	require.NoError(t, err)
	require.EqualValues(t, 1, index)
}

// TestImagesWithoutANewestFile checks that images load without a NEWEST file, as a crash can leave them, and then get one.
func TestImagesWithoutANewestFile(t *testing.T) {
	fs, _ := twoImages(t)
	path := fs.PathJoin(dataDir, newestName)
	require.NoError(t, fs.Remove(path))
	index, _, err := newest(fs)
	require.NoError(t, err)
	require.EqualValues(t, 2, index)
	require.Equal(t, "image "+imageID(2, 1), strings.Split(string(readFile(t, fs, path)), " checksum")[0])
}

// TestDamageRestoresNoBackup checks that a backup with any damage restores nothing.
func TestDamageRestoresNoBackup(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	n := busyNode(t, vfs.NewMem(), &fakeSource{wall: noon})
	whole := backUp(t, n)
	require.NoError(t, n.Close())
	counts := newTallies()
	for _, d := range damages(whole) {
		fs := vfs.NewMem()
		require.NoError(t, fs.MkdirAll(dataDir, 0o700))
		err := restoreOn(t, fs, d.content)
		c := counts.of("backup")
		c.tried++
		if err == nil || len(files(t, fs, dataDir)) > 0 {
			c.lost++
			t.Errorf("%s: %v", d.what, errors.Join(err, errors.New("something was restored")))
			continue
		}
		require.ErrorContains(t, err, "nothing was restored", d.what)
		c.refused++
	}
	counts.log(t)
}
