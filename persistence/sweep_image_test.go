package persistence

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// A member starts from its newest image whole, or does not start: whichever byte of
// whichever file of its images is damaged. The image before that is never its substitute,
// because the log between the two is gone.
func TestDamageLosesNoImage(t *testing.T) {
	fs, want := smallImages(t)
	require.NoError(t, fs.RemoveAll(fs.PathJoin(dataDir, workName))) // wiped at every start
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

// smallImages makes two images of a few entries, and returns those of the newest.
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

// forgetWork removes what every start makes anew, which is no part of the state.
func forgetWork(t *testing.T, fs *vfs.MemFS) {
	require.NoError(t, removeAll(fs, fs.PathJoin(dataDir, workName)))
}

// An image that is gone as a whole is missed, also when the one before it is there, and
// also when none is.
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

// Removing the newer images on purpose is not a loss.
func TestKeepOnlyIsNoLoss(t *testing.T) {
	fs, _ := twoImages(t)
	m := mustOpenImages(t, fs)
	require.NoError(t, m.KeepOnly(imageID(1, 1)))
	require.NoError(t, m.Close())
	index, _, err := newest(fs)
	require.NoError(t, err)
	require.EqualValues(t, 1, index)
}

// Images that an older weir made have no NEWEST file before they are loaded.
func TestImagesWithoutANewestFile(t *testing.T) {
	fs, _ := twoImages(t)
	path := fs.PathJoin(dataDir, newestName)
	require.NoError(t, fs.Remove(path))
	index, _, err := newest(fs)
	require.NoError(t, err)
	require.EqualValues(t, 2, index)
	require.Equal(t, "image "+imageID(2, 1), strings.Split(string(readFile(t, fs, path)), " checksum")[0])
}

// A backup with any damage restores nothing.
func TestDamageRestoresNoBackup(t *testing.T) {
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
