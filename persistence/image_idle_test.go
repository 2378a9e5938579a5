package persistence

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
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
		"flipped bit":       TestAFlippedBitInTheNewestImage,
		"as written":        TestAnImageIsWhatWasWritten,
		"clear":             TestClearOfImages,
		"model":             TestImagesAgainstAModel,
		"table":             TestATableGoesThroughAnImage,
		"failing load":      TestALoadThatFails,
		"same entry":        TestSealOfTheSameEntry,
		"costs":             TestAnImageCostsWhatChanged,
		"goroutines":        TestNoGoroutineOutlivesImages,
		"damage":            TestDamageLosesNoImage,
		"sent and received": TestAnImageIsSentAndReceived,
	} {
		t.Run(name, test)
	}
}

// TestCloseIdle checks that CloseIdle closes a store that has rested, and never one with changes that no image has.
func TestCloseIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, table := mustOpenImages(t, vfs.NewMem()), newFakeTable()
		closed := func() bool {
			require.NoError(t, m.CloseIdle())
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

// TestAnIdleWorkThatIsLost checks that a node ends when its closed work/ cannot be opened again.
func TestAnIdleWorkThatIsLost(t *testing.T) {
	fs := vfs.NewMem()
	m, err := openImages(fs, func(err error) { panic(err) })
	require.NoError(t, err)
	seal(t, m, 1)
	m.idle = time.Now().Add(-idleAfter)
	require.NoError(t, m.CloseIdle())
	require.NoError(t, fs.RemoveAll(m.dir.file(workName)))
	defer func() {
		fatal, _ := recover().(error)
		require.ErrorIs(t, fatal, ErrDamagedLive)
	}()
	_, _ = m.Seal(2, 1, nil, nil)
	t.Error("the node went on")
}
