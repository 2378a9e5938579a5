package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// summed appends a valid checksum to damaged content.
func summed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// metaByHand returns a META whose numbers contradict the rest.
func metaByHand(version, metaLen, files uint32, rest []byte) []byte {
	b := bytes.Clone(metaMagic)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, 7)
	b = binary.LittleEndian.AppendUint64(b, 1)
	b = binary.LittleEndian.AppendUint32(b, metaLen)
	b = binary.LittleEndian.AppendUint32(b, files)
	return summed(append(b, rest...))
}

// TestAMetaThatContradictsItself checks that a META with a valid checksum and contradictory contents is refused.
func TestAMetaThatContradictsItself(t *testing.T) {
	file := func(name string, size uint64) []byte {
		b := append([]byte{byte(len(name))}, name...)
		return append(binary.LittleEndian.AppendUint64(b, size), 1, 2, 3, 4)
	}
	good := file("a", 5)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"of this version":          {metaByHand(imageVersion, 2, 1, append([]byte("me"), good...)), nil},
		"of the oldest":            {metaByHand(oldestImage, 0, 0, nil), nil},
		"of a later one":           {metaByHand(imageVersion+1, 0, 0, nil), ErrNewer},
		"of an older one":          {metaByHand(oldestImage-1, 0, 0, nil), ErrOlder},
		"its own bytes, all there": {metaByHand(imageVersion, maxMetaBytes, 0, make([]byte, maxMetaBytes)), nil},
		"too many bytes of one's own": {metaByHand(imageVersion, maxMetaBytes+1, 0, make([]byte, maxMetaBytes+1)),
			ErrDamaged},
		"fewer bytes than it says": {metaByHand(imageVersion, 3, 0, []byte("me")), ErrDamaged},
		"fewer files than it says": {metaByHand(imageVersion, 0, 2, good), ErrDamaged},
		"more files than it says":  {metaByHand(imageVersion, 0, 0, good), ErrDamaged},
		"a part of a file":         {metaByHand(imageVersion, 0, 1, good[:len(good)-1]), ErrDamaged},
		"a file twice":             {metaByHand(imageVersion, 0, 2, append(file("a", 6), good...)), ErrDamaged},
		"two files":                {metaByHand(imageVersion, 0, 2, append(file("b", 5), good...)), nil},
		"the largest file":         {metaByHand(imageVersion, 0, 1, file("a", maxFileBytes)), nil},
		"a larger one":             {metaByHand(imageVersion, 0, 1, file("a", maxFileBytes+1)), ErrDamaged},
		"the longest name":         {metaByHand(imageVersion, 0, 1, file(strings.Repeat("n", maxImageName), 5)), nil},
		"a longer one": {metaByHand(imageVersion, 0, 1, file(strings.Repeat("n", maxImageName+1), 5)),
			ErrDamaged},
		"nothing":        {nil, ErrDamaged},
		"its first line": {metaMagic, ErrDamaged},
		"a wrong sum":    {append(metaByHand(imageVersion, 0, 0, nil), 0), ErrDamaged},
		"something else": {summed([]byte("something of the length of a META that has nothing in it")), ErrDamaged},
	} {
		m, err := decodeImageMeta(c.b)
		require.ErrorIs(t, err, c.want, name)
		if c.want == nil {
			require.NoError(t, err, name)
			require.EqualValues(t, 7, m.index)
		}
	}
	_, err := decodeImageMeta(metaByHand(imageVersion+1, 0, 0, nil))
	require.ErrorContains(t, err, "image format 6, this weir reads 4 to 5")
	whole := metaByHand(imageVersion, 2, 1, append([]byte("me"), good...))
	for n := range len(whole) - 4 {
		_, err := decodeImageMeta(summed(bytes.Clone(whole[:n])))
		require.Error(t, err, "%d bytes", n)
	}
}

// TestAMetaOfTooManyFiles checks that reading META bounds the number of files.
func TestAMetaOfTooManyFiles(t *testing.T) {
	var m imageMeta
	for i := range maxImageFiles + 1 {
		m.files = append(m.files, imageFile{name: fmt.Sprint(i)})
	}
	_, err := decodeImageMeta(m.encode())
	require.ErrorIs(t, err, ErrDamaged)
	m.files = m.files[:maxImageFiles]
	_, err = decodeImageMeta(m.encode())
	require.NoError(t, err)
}

func TestNamesOfImages(t *testing.T) {
	const nines, zeros = "99999999999999999999", "00000000000000000000"
	for id, want := range map[string]bool{
		imageID(0, 0): true, imageID(1<<64-1, 1<<64-1): true, imageID(7, 1): true, "": false, "-": false, zeros: false,
		zeros + "-": false, "-" + zeros: false, zeros + "-" + nines: false, nines + "-" + zeros: false,
		imageID(7, 1) + "-":           false,
		"x" + zeros[1:] + "-" + zeros: false, zeros + "-x" + zeros[1:]: false, zeros[1:] + "-" + zeros: false,
		"+" + zeros[1:] + "-" + zeros: false,
	} {
		_, _, ok := parseImageID(id)
		require.Equal(t, want, ok, id)
	}
}

func TestTheHeadOfAStreamIsBounded(t *testing.T) {
	m := mustOpenImages(t, vfs.NewMem())
	for n, says := range map[uint32]string{0: "announces 0 files", 1: "", maxImageFiles: "",
		maxImageFiles + 1: "announces 16385 files"} {
		in, err := m.Receive(7, 1, nil)
		require.NoError(t, err)
		_, err = in.Write(encodeStreamHead(streamVersion, n))
		if says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, says)
		}
		require.NoError(t, in.Cancel())
	}
	for name, c := range map[string]struct {
		head imageFile
		says string
	}{
		"the largest": {imageFile{name: "a", size: maxFileBytes}, ""},
		"too large":   {imageFile{name: "a", size: maxFileBytes + 1}, "no image has a file"},
		"too long":    {imageFile{name: strings.Repeat("n", maxImageName+1)}, "a name of 65 bytes"},
		"no name":     {imageFile{}, "a name of 0 bytes"},
		"the longest": {imageFile{name: strings.Repeat("n", maxImageName)}, ""},
	} {
		in, err := m.Receive(7, 1, nil)
		require.NoError(t, err)
		_, err = in.Write(c.head.appendHead(encodeStreamHead(streamVersion, 1)))
		if c.says == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.says, name)
		}
		require.NoError(t, in.Cancel())
	}
	require.NoError(t, m.Close())
}

// TestTheNewestFileIsChecked checks that a NEWEST file with any text that weir does not write is refused. Without this
// file, an older image could be taken for the newest.
func TestTheNewestFileIsChecked(t *testing.T) {
	fs, _ := smallImages(t)
	newestFile := fs.PathJoin(dataDir, newestName)
	for text, says := range map[string]string{
		withChecksum("image " + imageID(2, 1)):                "",
		withChecksum("image " + imageID(1, 1)):                "", // left by a crash between publishing and writing it
		withChecksum("image " + imageID(3, 1)):                "is missing",
		withChecksum("image 0"):                               "its NEWEST file says",
		withChecksum("image"):                                 "its NEWEST file says",
		withChecksum("picture " + imageID(2, 1)):              "its NEWEST file says",
		withChecksum(imageID(2, 1)):                           "its NEWEST file says",
		"image " + imageID(2, 1) + " checksum 00000000\n":     "its NEWEST file says",
		"image " + imageID(2, 1) + "\n":                       "its NEWEST file says",
		"":                                                    "its NEWEST file says",
		strings.Repeat("x", 1<<20):                            "its NEWEST file says",
		withChecksum("image " + imageID(2, 1))[:len("image")]: "its NEWEST file says",
	} {
		broken := copyDir(t, fs)
		writeFile(t, broken, newestFile, []byte(text))
		m, err := openImages(broken, mustNotStop(t))
		if says == "" {
			require.NoError(t, err, "%.80q", text)
			require.NoError(t, m.Close())
			continue
		}
		require.ErrorIs(t, err, ErrDamaged, "%.80q", text)
		require.ErrorContains(t, err, says, "%.80q", text)
	}
}

func TestANewestFileThatCannotBeRead(t *testing.T) {
	mem, _ := smallImages(t)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, newestName) {
			return errTest
		}
		return nil
	}))
	_, err := openImages(fs, mustNotStop(t))
	require.ErrorIs(t, err, errTest)
	require.NotErrorIs(t, err, ErrDamaged)
}

// TestTheNewestImageStaysTheNewest checks that receiving an older image does not make it the newest.
func TestTheNewestImageStaysTheNewest(t *testing.T) {
	stream, _ := aStream(t)
	fs := vfs.NewMem()
	m := mustOpenImages(t, fs)
	seal(t, m, 20)
	_, err := receive(t, m, bytes.NewReader(stream))
	require.NoError(t, err)
	require.Equal(t, withChecksum("image "+imageID(20, 1)), string(readFile(t, fs, m.dir.file(newestName))))
	require.NoError(t, m.Close())
}

// TestSealOfAnEntryThatIsRead checks that an image which is sealed again exists at every moment, also after a crash. A
// stream that reads it can still read its files.
func TestSealOfAnEntryThatIsRead(t *testing.T) {
	var seen idsAtWrites
	id := imageID(5, 1)
	opened, table := mustOpenImages(t, onWrites(vfs.NewMem(), seen.onWrite)), newFakeTable()
	table.set("a", "1")
	write(t, opened, table)
	seal(t, opened, 5)
	want := streamOf(t, opened, id)
	r, _, err := opened.Send(id)
	require.NoError(t, err)
	lists := seen.during(t, opened, func() { seal(t, opened, 5) })
	require.NotEmpty(t, lists)
	for _, ids := range lists {
		require.Contains(t, ids, id)
	}
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, r.Close())
	require.NoError(t, opened.Close())
}

// TestAnOldImageThatCannotBeRemoved checks that a failure to remove an old image stops the process, like any disk
// failure.
func TestAnOldImageThatCannotBeRemoved(t *testing.T) {
	var fails atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && op.Kind == errorfs.OpRemoveAll {
			return errTest
		}
		return nil
	}))
	var told error
	m, err := openImages(fs, func(err error) { told = err; panic(err) })
	require.NoError(t, err)
	for n := range uint64(keepImages) {
		seal(t, m, n+1)
	}
	fails.Store(true)
	require.Panics(t, func() { _, _ = m.Seal(9, 1, nil, nil) })
	require.ErrorIs(t, told, errTest)
}

func TestNamesOfFiles(t *testing.T) {
	for _, name := range []string{"a", "z", "A", "Z", "0", "9", "-", "_", "a.", "000001.sst",
		"MANIFEST-000001", "LOCKS"} {
		require.True(t, validFileName(name), name)
	}
	for _, odd := range "`{@[/:\x00\n \\ä" {
		require.False(t, validFileName("a"+string(odd)), "%q", odd)
	}
}

// TestAForeignFileAmongTheImages checks that a foreign file among the images stops the process before anything is
// removed.
func TestAForeignFileAmongTheImages(t *testing.T) {
	fs, stopped := vfs.NewMem(), errors.New("stopped")
	m, err := openImages(fs, func(err error) { panic(errors.Join(stopped, err)) })
	require.NoError(t, err)
	for n := range uint64(keepImages) {
		seal(t, m, n+1)
	}
	writeFile(t, fs, m.images().file("holiday.jpg"), nil)
	require.Panics(t, func() { _, _ = m.Seal(9, 1, nil, nil) })
	_, err = m.List()
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorIs(t, m.KeepOnly(imageID(1, 1)), ErrForeign)
	names, err := fs.List(m.images().path)
	require.NoError(t, err)
	require.Contains(t, names, imageID(1, 1))
}
