package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

func openImages(fs vfs.FS, onFatal func(error)) (*Images, error) {
	return OpenImages(StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: onFatal, renewal: busyRenewal,
		eager: closesEagerly})
}

func mustOpenImages(t *testing.T, fs vfs.FS) *Images {
	t.Helper()
	m, err := openImages(fs, mustNotStop(t))
	require.NoError(t, err)
	return m
}

// write drains a table into work/.
func write(t *testing.T, m *Images, from Drainer) {
	t.Helper()
	for more := true; more; {
		var err error
		more, err = m.Renew(from)
		require.NoError(t, err)
	}
	require.NoError(t, from.Drain(chunkEntries, m.Write))
}

func seal(t *testing.T, m *Images, index uint64) ImageInfo {
	t.Helper()
	info, err := m.Seal(index, 1, fmt.Appendf(nil, "state %d", index), fmt.Appendf(nil, "meta %d", index))
	require.NoError(t, err)
	return info
}

// loadImage loads an image into a new table.
func loadImage(m *Images, id string) (state string, entries map[string]string, err error) {
	table := newFakeTable()
	err = m.Load(id, func(s []byte) (engine.Stamp, error) {
		state = string(s)
		return engine.Stamp{NowNs: 1e18}, nil
	}, table)
	if err != nil {
		return "", nil, err
	}
	return state, table.state(), nil
}

func mustLoadImage(t *testing.T, m *Images, id string) map[string]string {
	t.Helper()
	state, entries, err := loadImage(m, id)
	require.NoError(t, err)
	index, _, _ := parseImageID(id)
	require.Equal(t, fmt.Sprintf("state %d", index), state)
	return entries
}

// newest opens a directory and loads its newest image. The index is 0 without one.
func newest(fs vfs.FS) (index uint64, entries map[string]string, err error) {
	m, err := openImages(fs, func(err error) { panic(err) })
	if err != nil {
		return 0, nil, err
	}
	defer m.Close()
	list, err := m.List()
	if err != nil || len(list) == 0 {
		return 0, map[string]string{}, err
	}
	_, entries, err = loadImage(m, list[0].ID)
	return list[0].Index, entries, err
}

func TestAnImageIsWhatWasWritten(t *testing.T) {
	fs := vfs.NewMem()
	m, table := mustOpenImages(t, fs), newFakeTable()
	list, err := m.List()
	require.NoError(t, err)
	require.Empty(t, list)

	table.set("a", "1")
	table.set("b", "2")
	table.set("", "the empty key")
	table.set("long", strings.Repeat("x", memTableBytes+1))
	write(t, m, table)
	table.set("a", "3")
	table.remove("b")
	write(t, m, table)
	info := seal(t, m, 7)
	require.Equal(t, ImageInfo{ID: "00000000000000000007-00000000000000000001", Index: 7, Term: 1,
		Meta: []byte("meta 7"), Bytes: info.Bytes}, info)
	first := table.state()

	table.set("a", "4")
	write(t, m, table)
	seal(t, m, 8)
	table.set("never sealed", "1")
	write(t, m, table)
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.Write([]engine.Change{{Key: []byte("k")}}), ErrNotLoaded)
	require.ErrorIs(t, m.Clear(), ErrNotLoaded)
	_, err = m.Seal(9, 1, nil, nil)
	require.ErrorIs(t, err, ErrNotLoaded)

	m = mustOpenImages(t, fs)
	list, err = m.List()
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, info, list[1], "the newest image must come first")
	require.True(t, maps.Equal(first, mustLoadImage(t, m, info.ID)))
	first["a"] = "4"
	require.True(t, maps.Equal(first, mustLoadImage(t, m, list[0].ID)))
	require.NoError(t, m.Close())
}

// TestWorkIsForgottenAtAStart checks that a start without a load begins with an empty state, whatever work/ contains.
func TestWorkIsForgottenAtAStart(t *testing.T) {
	fs := vfs.NewMem()
	m, table := mustOpenImages(t, fs), newFakeTable()
	table.set("a", "1")
	write(t, m, table)
	seal(t, m, 1)
	require.NoError(t, m.Close())
	m = mustOpenImages(t, fs)
	require.Empty(t, mustLoadImage(t, m, seal(t, m, 2).ID))
	require.NoError(t, m.Close())
}

// TestImagesAgainstAModel checks that a loaded image equals the sealed state, after random changes, seals, restarts
// and loads.
func TestImagesAgainstAModel(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 21))
		fs := vfs.NewMem()
		m, table := mustOpenImages(t, fs), newFakeTable()
		sealed := map[uint64]map[string]string{}
		for n := 1; n < 60; n++ {
			for range 1 + rng.IntN(3) {
				change(rng, table, n)
				write(t, m, table)
			}
			if rng.IntN(20) == 0 {
				table = newFakeTable()
				require.NoError(t, m.Clear())
			}
			seal(t, m, uint64(n))
			sealed[uint64(n)] = table.state()
			if rng.IntN(3) > 0 {
				continue
			}
			if rng.IntN(2) == 0 {
				require.NoError(t, m.Close())
				m = mustOpenImages(t, fs)
			}
			list, err := m.List()
			require.NoError(t, err)
			require.Len(t, list, min(n, keepImages))
			require.Equal(t, uint64(n), list[0].Index)
			for _, info := range slices.Backward(list) {
				require.Equal(t, sealed[info.Index], mustLoadImage(t, m, info.ID), "seed %d, image %d", seed,
					info.Index)
			}
		}
		require.NoError(t, m.Close())
	}
}

// TestALoadThatFails checks that no image can be sealed after a failed load, and that the next load may succeed.
func TestALoadThatFails(t *testing.T) {
	m, table := mustOpenImages(t, vfs.NewMem()), newFakeTable()
	table.set("a", "1")
	write(t, m, table)
	good := seal(t, m, 1)
	table.set("b", "bad")
	write(t, m, table)
	bad := seal(t, m, 2)

	refused := errors.New("refused")
	err := m.Load(good.ID, func([]byte) (engine.Stamp, error) { return engine.Stamp{}, refused }, newFakeTable())
	require.ErrorIs(t, err, refused)
	for _, id := range []string{bad.ID, imageID(1, 2), "../images/" + good.ID, "", good.ID + "0"} {
		_, _, err := loadImage(m, id)
		if id == bad.ID {
			require.ErrorIs(t, err, ErrDamaged)
		} else {
			require.ErrorIs(t, err, ErrNoImage)
		}
		_, err = m.Seal(3, 1, nil, nil)
		require.ErrorIs(t, err, ErrNotLoaded)
	}
	require.Equal(t, map[string]string{"a": "1"}, mustLoadImage(t, m, good.ID))
	seal(t, m, 4)
	require.NoError(t, m.Close())
}

// TestSealOfTheSameEntry checks that sealing an entry twice keeps the image and replaces the caller's bytes.
func TestSealOfTheSameEntry(t *testing.T) {
	fs := vfs.NewMem()
	m, table := mustOpenImages(t, fs), newFakeTable()
	table.set("a", "1")
	write(t, m, table)
	seal(t, m, 5)
	info, err := m.Seal(5, 1, []byte("state 5"), []byte("renewed"))
	require.NoError(t, err)
	list, err := m.List()
	require.NoError(t, err)
	require.Equal(t, []ImageInfo{info}, list)
	require.Equal(t, "renewed", string(list[0].Meta))
	require.Equal(t, table.state(), mustLoadImage(t, m, info.ID))
	names, err := fs.List(m.images().path)
	require.NoError(t, err)
	require.Len(t, names, 1, "no temporary file may stay")
	require.NoError(t, m.Close())
}

func TestSizesOfAnImageAreBounded(t *testing.T) {
	m := mustOpenImages(t, vfs.NewMem())
	_, err := m.Seal(1, 1, nil, make([]byte, maxMetaBytes+1))
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = m.Seal(1, 1, make([]byte, maxStateBytes+1), nil)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = m.Receive(1, 1, make([]byte, maxMetaBytes+1))
	require.ErrorIs(t, err, ErrTooLarge)
	info, err := m.Seal(1, 1, make([]byte, maxStateBytes), make([]byte, maxMetaBytes))
	require.NoError(t, err)
	state, _, err := loadImage(m, info.ID)
	require.NoError(t, err)
	require.Len(t, state, maxStateBytes)
	require.NoError(t, m.Close())
}

// countingFS counts written bytes and links.
type countingFS struct {
	vfs.FS
	bytes, links atomic.Int64
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (c *countingFS) Create(name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, cat)
	return countingFile{f, c}, err
}

func (c *countingFS) Link(from, to string) error { c.links.Add(1); return c.FS.Link(from, to) }

func (f countingFile) Write(b []byte) (int, error) {
	f.fs.bytes.Add(int64(len(b)))
	return f.File.Write(b)
}

// TestAnImageCostsWhatChanged checks that the second image writes only changes, and links the other files.
func TestAnImageCostsWhatChanged(t *testing.T) {
	fs := &countingFS{FS: vfs.NewMem()}
	m, table := mustOpenImages(t, fs), newFakeTable()
	rng := rand.NewChaCha8([32]byte{4})
	value := make([]byte, 1000)
	for i := range 20_000 {
		_, _ = rng.Read(value) // so that it does not compress
		table.set(fmt.Sprintf("k%06d", i), string(value))
	}
	write(t, m, table)
	whole := seal(t, m, 1)
	require.Greater(t, fs.bytes.Load(), int64(20_000_000))

	require.NoError(t, m.Close())
	m = mustOpenImages(t, fs)
	fs.bytes.Store(0)
	fs.links.Store(0)
	mustLoadImage(t, m, whole.ID)
	table.set("k000500", "changed")
	write(t, m, table)
	info := seal(t, m, 2)
	// Pebble may merge a table or two in the meantime. A full copy would write all bytes of the image.
	require.Less(t, fs.bytes.Load(), info.Bytes/4)
	require.Greater(t, fs.links.Load(), int64(2), "files must be linked into work/ and into the image")
	require.Greater(t, info.Bytes, int64(20_000_000))
	require.Equal(t, table.state(), mustLoadImage(t, m, info.ID))
	require.NoError(t, m.Close())
}

func TestOneOwnerOfTheImagesAtATime(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			o := StoreOptions{Dir: fs.PathJoin(t.TempDir(), "a", "b"), FS: fs, Logger: quiet, OnFatal: mustNotStop(t),
				eager: closesEagerly}
			m, err := OpenImages(o)
			require.NoError(t, err)
			require.NoError(t, m.Write([]engine.Change{{Key: []byte("a"), Value: []byte("1")}}))
			info := seal(t, m, 1)
			_, err = OpenImages(o)
			require.ErrorIs(t, err, ErrInUse)
			require.Equal(t, map[string]string{"a": "1"}, mustLoadImage(t, m, info.ID),
				"the refused image must not do harm")
			require.NoError(t, m.Close())
			m, err = OpenImages(o)
			require.NoError(t, err)
			require.NoError(t, m.Close())
		})
	}
}

// noLinks is a file system without hard links.
type noLinks struct{ vfs.FS }

func (noLinks) Link(string, string) error { return errors.New("operation not supported") }

func TestDirectoriesThatTakeNoImages(t *testing.T) {
	_, err := openImages(noLinks{vfs.NewMem()}, mustNotStop(t))
	require.ErrorIs(t, err, ErrNoLinks)
	require.ErrorContains(t, err, "operation not supported")

	for _, path := range []string{"work/thesis.tex", "FORMAT", "images/holiday.jpg"} {
		fs := vfs.NewMem()
		path = fs.PathJoin(dataDir, path)
		require.NoError(t, fs.MkdirAll(fs.PathDir(path), 0o750))
		writeFile(t, fs, path, []byte("x"))
		_, err := openImages(fs, mustNotStop(t))
		require.ErrorIs(t, err, ErrForeign, path)
		require.Equal(t, "x", string(readFile(t, fs, path)))
	}

	fs := vfs.NewMem()
	require.NoError(t, mustOpenImages(t, fs).Close())
	_, _, err = openStore(fs, dataDir, mustNotStop(t))
	require.ErrorIs(t, err, ErrForeign, "a standalone node must not take over the images of a cluster")
}

func TestNoGoroutineOutlivesImages(t *testing.T) {
	before := goleak.IgnoreCurrent()
	m := mustOpenImages(t, vfs.NewMem())
	info := seal(t, m, 1)
	r, _, err := m.Send(info.ID)
	require.NoError(t, err)
	_, err = io.Copy(&bytes.Buffer{}, r)
	require.NoError(t, err)
	require.NoError(t, errors.Join(r.Close(), r.Close(), m.Close()))
	goleak.VerifyNone(t, before)
}

// TestKeepOnly checks that the other images are removed, the newest last, unless one is being read.
func TestKeepOnly(t *testing.T) {
	var seen idsAtWrites
	opened := mustOpenImages(t, onWrites(vfs.NewMem(), seen.onWrite))
	for _, n := range []uint64{2, 3, 1} {
		seal(t, opened, n)
	}
	kept := imageID(1, 1)
	reader, _, err := opened.Send(imageID(3, 1))
	require.NoError(t, err)
	require.ErrorIs(t, opened.KeepOnly(kept), ErrImageUsed)
	list, err := opened.List()
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.NoError(t, reader.Close())

	require.ErrorIs(t, opened.KeepOnly(kept), ErrNoImage,
		"the kept image was the oldest of three, and closing the reader removed it")
	seal(t, opened, 1)
	list, err = opened.List()
	require.NoError(t, err)
	require.Len(t, list, 3)
	newest := map[string]bool{}
	for _, ids := range seen.during(t, opened, func() { require.NoError(t, opened.KeepOnly(kept)) }) {
		newest[ids[0]] = true
	}
	list, err = opened.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, kept, list[0].ID)
	require.Equal(t, map[string]bool{imageID(3, 1): true, kept: true}, newest)
	require.NoError(t, opened.Close())
}
