package persistence

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// closesEagerly makes openImages open Images that close work/ after each Seal and Load.
var closesEagerly bool

// TestImagesThatCloseEagerly repeats tests of Images with a work/ that is closed after each image.
func TestImagesThatCloseEagerly(t *testing.T) {
	closesEagerly = true
	defer func() { closesEagerly = false }()
	for name, test := range map[string]func(*testing.T){
		"crash":             TestACrashLeavesTheOlderImageOrTheNewer,
		"failing write":     TestEveryWriteOfAnImageMayFail,
		"as written":        TestAnImageIsWhatWasWritten,
		"model":             TestImagesAgainstAModel,
		"failing load":      TestALoadThatFails,
		"same entry":        TestSealOfTheSameEntry,
		"costs":             TestAnImageCostsWhatChanged,
		"goroutines":        TestNoGoroutineOutlivesImages,
		"damage":            TestDamageLosesNoImage,
		"sent and received": TestAnImageIsSentAndReceived,

		"sizes":                TestSizesOfAnImageAreBounded,
		"one owner":            TestOneOwnerOfTheImagesAtATime,
		"other directories":    TestDirectoriesThatTakeNoImages,
		"keep only":            TestKeepOnly,
		"forgotten work":       TestWorkIsForgottenAtAStart,
		"failing read":         TestAFailingReadStopsTheSender,
		"missing file":         TestATruncatedOrMissingFileInTheNewestImage,
		"damaged older image":  TestADamagedOlderImageIsLeftOut,
		"other entry":          TestAnImageOfAnotherEntryIsRefused,
		"damage before load":   TestADamagedImageIsRefusedBeforeItIsLoaded,
		"lost image":           TestALostImageIsMissed,
		"broken stream":        TestABrokenStreamIsRefused,
		"canceled image":       TestACanceledImageLeavesNothing,
		"sent and removed":     TestSendSurvivesReaping,
		"older image received": TestAnOlderImageCanBeReceived,
		"replaced image":       TestAReceivedImageReplacesADamagedOne,
		"read while sealed":    TestSealOfAnEntryThatIsRead,
		"not removed":          TestAnOldImageThatCannotBeRemoved,
		"newest":               TestTheNewestImageStaysTheNewest,
		"oldest version":       TestAnImageOfTheOldestVersion,
	} {
		t.Run(name, test)
	}
}

// TestCloseIdle checks that CloseIdle closes a store that has rested, and never one with changes that no image has.
func TestCloseIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, table := mustOpenImages(t, vfs.NewMem()), newFakeTable()
		closed := func() bool {
			idle := m.IsIdle()
			require.NoError(t, m.CloseIdle())
			require.Equal(t, idle, m.db == nil)
			return m.db == nil
		}
		require.False(t, closed(), "a store that was just opened")
		time.Sleep(idleAfter)
		require.True(t, closed())

		table.set("a", "1")
		write(t, m, table)
		time.Sleep(2 * idleAfter)
		require.False(t, closed(), "a change that no image has")
		seal(t, m, 1)
		require.False(t, closed(), "an image that was just made")
		time.Sleep(idleAfter)
		require.True(t, closed())

		table.set("b", "2")
		write(t, m, table)
		info := seal(t, m, 2)
		_, entries, err := loadImage(m, info.ID)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "1", "b": "2"}, entries)
		time.Sleep(idleAfter)
		require.True(t, closed(), "an image that was loaded")
		require.NoError(t, m.Close())
		require.ErrorIs(t, m.Write(nil), ErrNotLoaded)
	})
}

// TestDamageOfAnIdleStoreIsFatal damages work/ while its store is closed. The next image must end the process, because
// work/ no longer has what was written.
func TestDamageOfAnIdleStoreIsFatal(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, c := range []struct {
		name string
		harm func(t *testing.T, fs *vfs.MemFS, work string)
	}{
		{"gone", func(t *testing.T, fs *vfs.MemFS, work string) { require.NoError(t, fs.RemoveAll(work)) }},
		{"no manifest", func(t *testing.T, fs *vfs.MemFS, work string) { harm(t, fs, work, "MANIFEST", nil) }},
		{"an empty manifest", func(t *testing.T, fs *vfs.MemFS, work string) {
			harm(t, fs, work, "MANIFEST", func([]byte) []byte { return nil })
		}},
		{"a flipped bit in the manifest", func(t *testing.T, fs *vfs.MemFS, work string) {
			harm(t, fs, work, "MANIFEST", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}},
		{"the store of an older image", func(t *testing.T, fs *vfs.MemFS, work string) {
			image := fs.PathJoin(dataDir, imagesName, imageID(1, 1), stateName)
			require.NoError(t, fs.RemoveAll(work))
			_, err := vfs.Clone(fs, fs, image, work)
			require.NoError(t, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, stopped := vfs.NewMem(), errors.New("stopped")
			closesEagerly = true
			defer func() { closesEagerly = false }()
			m, err := openImages(fs, func(err error) { panic(errors.Join(stopped, err)) })
			require.NoError(t, err)
			for n := range uint64(2) {
				require.NoError(t, m.Write([]engine.Change{{Key: fmt.Append(nil, n), Value: []byte("1")}}))
				seal(t, m, n+1)
			}
			c.harm(t, fs, fs.PathJoin(dataDir, workName))
			func() {
				defer func() {
					err, _ := recover().(error)
					require.ErrorIs(t, err, stopped)
					require.ErrorIs(t, err, ErrDamagedLive)
				}()
				_ = m.Write([]engine.Change{{Key: []byte("c"), Value: []byte("1")}})
			}()
		})
	}
}

// harm removes a file of Pebble in a directory, or replaces its content.
func harm(t *testing.T, fs *vfs.MemFS, dir, kind string, change func([]byte) []byte) {
	harmed := false
	for _, path := range files(t, fs, dir) {
		if kindOf(path) != kind {
			continue
		}
		harmed = true
		if change == nil {
			require.NoError(t, fs.Remove(path))
		} else {
			writeFile(t, fs, path, change(readFile(t, fs, path)))
		}
	}
	require.True(t, harmed)
}
