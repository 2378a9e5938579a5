package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// streamOf reads the whole stream of an image.
func streamOf(t *testing.T, m *Images, id string) []byte {
	t.Helper()
	r, info, err := m.Send(id)
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Len(t, b, int(info.Bytes), "Bytes must be the length of the stream")
	return b
}

// aStream returns the stream of image 7 and its entries.
func aStream(t *testing.T) ([]byte, map[string]string) {
	m, table := mustOpenImages(t, vfs.NewMem()), newFakeTable()
	for i := range 300 {
		table.set(fmt.Sprintf("k%03d", i), strings.Repeat("v", i))
	}
	write(t, m, table)
	b := streamOf(t, m, seal(t, m, 7).ID)
	require.NoError(t, m.Close())
	return b, table.state()
}

// receive receives a stream as the image of entry 7 of term 1.
func receive(t *testing.T, m *Images, from io.Reader) (ImageInfo, error) {
	in, err := m.Receive(7, 1, []byte("meta 7"))
	require.NoError(t, err)
	if _, err := io.Copy(struct{ io.Writer }{in}, from); err != nil {
		_, closed := in.Close()
		require.ErrorIs(t, closed, err, "Close must return the first error")
		return ImageInfo{}, closed
	}
	info, err := in.Close()
	require.LessOrEqual(t, cap(in.buf), 256, "the receiver must hold little in memory")
	return info, err
}

func TestAnImageIsSentAndReceived(t *testing.T) {
	stream, want := aStream(t)
	for name, from := range map[string]io.Reader{
		"whole":        bytes.NewReader(stream),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"halves":       iotest.HalfReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			m := mustOpenImages(t, fs)
			info, err := receive(t, m, from)
			require.NoError(t, err)
			require.Equal(t, "meta 7", string(info.Meta))
			require.Equal(t, stream, streamOf(t, m, info.ID), "the received image must be sent on unchanged")
			require.NoError(t, m.Close())

			m = mustOpenImages(t, fs)
			list, err := m.List()
			require.NoError(t, err)
			require.Equal(t, []ImageInfo{info}, list)
			require.Equal(t, want, mustLoadImage(t, m, info.ID))
			require.NoError(t, m.Write([]engine.Change{{Key: []byte("more"), Value: []byte("1")}}))
			want["more"] = "1"
			require.Equal(t, want, mustLoadImage(t, m, seal(t, m, 8).ID), "the table must continue from the image")
			delete(want, "more")
			require.NoError(t, m.Close())
		})
	}
}

// TestAStreamIsReadInAnyPieces checks that reads of any size give the same stream.
func TestAStreamIsReadInAnyPieces(t *testing.T) {
	m, table := mustOpenImages(t, vfs.NewMem()), newFakeTable()
	table.set("a", "1")
	write(t, m, table)
	info := seal(t, m, 1)
	want := streamOf(t, m, info.ID)
	r, _, err := m.Send(info.ID)
	require.NoError(t, err)
	require.NoError(t, iotest.TestReader(r, want))
	require.NoError(t, r.Close())
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, m.Close())
}

// refuses receives a broken stream, and checks that nothing was replaced or left over.
func refuses(t *testing.T, m *Images, stream []byte, label string) error {
	t.Helper()
	before, err := m.List()
	require.NoError(t, err)
	_, err = receive(t, m, bytes.NewReader(stream))
	require.Error(t, err, label)
	after, err2 := m.List()
	require.NoError(t, err2)
	require.Equal(t, before, after, label)
	names, err2 := m.images().fs.List(m.images().path)
	require.NoError(t, err2)
	require.Len(t, names, len(before), label)
	return err
}

func TestABrokenStreamIsRefused(t *testing.T) {
	stream, _ := aStream(t)
	m := mustOpenImages(t, vfs.NewMem())
	old := seal(t, m, 3)
	for _, i := range flipPoints(len(stream)) {
		bad := bytes.Clone(stream)
		bad[i] ^= 1 << (i % 8)
		require.ErrorIs(t, refuses(t, m, bad, fmt.Sprintf("byte %d flipped", i)), ErrStream)
		require.ErrorIs(t, refuses(t, m, stream[:i], fmt.Sprintf("cut at %d", i)), ErrStream)
	}
	require.ErrorIs(t, refuses(t, m, append(bytes.Clone(stream), 0), "one byte more"), ErrStream)
	require.Empty(t, mustLoadImage(t, m, old.ID))
	require.NoError(t, m.Close())
}

// part is a file of a handmade stream.
type part struct{ name, content string }

func streamByHand(version uint32, parts ...part) []byte {
	b := encodeStreamHead(version, uint32(len(parts)))
	for _, p := range parts {
		start := len(b)
		b = imageFile{name: p.name, size: int64(len(p.content))}.appendHead(b)
		b = append(b, p.content...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	}
	return b
}

func TestAStreamWithBadNamesIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	m := mustOpenImages(t, fs)
	seal(t, m, 3)
	before := files(t, fs, dataDir)
	for _, name := range []string{
		"", ".", "..", "../escape", "/etc/passwd", "a/b", `a\b`, "c:", "a\x00b", ".hidden", "LOCK", "a b", "a\n", "ä",
		strings.Repeat("n", maxImageName+1), strings.Repeat("n", 255),
	} {
		require.ErrorIs(t, refuses(t, m, streamByHand(1, part{name, "x"}), fmt.Sprintf("%q", name)), ErrStream)
		require.Equal(t, before, files(t, fs, dataDir), "%q", name)
	}
	twice := part{"000001.sst", "x"}
	require.ErrorIs(t, refuses(t, m, streamByHand(1, twice, twice), "a name twice"), ErrStream)
	require.NoError(t, m.Close())
}

func TestAStreamOfSomethingElseIsRefused(t *testing.T) {
	m := mustOpenImages(t, vfs.NewMem())
	seal(t, m, 3)
	err := refuses(t, m, streamByHand(streamVersion+1, part{"a", "x"}), "newer")
	require.ErrorIs(t, err, ErrStream)
	require.ErrorContains(t, err, "format 3, this weir knows 1 to 2")
	require.ErrorIs(t, refuses(t, m, streamByHand(0, part{"a", "x"}), "never existed"), ErrStream)
	require.ErrorIs(t, refuses(t, m, streamByHand(1), "no file"), ErrStream)
	require.ErrorIs(t, refuses(t, m, encodeStreamHead(1, maxImageFiles+1), "too many files"), ErrStream)
	require.ErrorIs(t, refuses(t, m, []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), "HTTP"), ErrStream)
	require.ErrorIs(t, refuses(t, m, nil, "nothing"), ErrStream)

	huge := encodeStreamHead(1, 1)
	huge = imageFile{name: "a", size: maxFileBytes + 1}.appendHead(huge)
	require.ErrorIs(t, refuses(t, m, huge, "a huge file"), ErrStream)
	require.ErrorIs(t, refuses(t, m, streamByHand(1, part{"a", "x"}), "not Pebble's"), ErrDamaged)

	other := mustOpenImages(t, vfs.NewMem())
	id := seal(t, other, 8).ID
	err = refuses(t, m, streamOf(t, other, id), "another entry")
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "holds entry 8")
	require.NoError(t, other.Close())
	require.NoError(t, m.Close())
}

func TestACanceledImageLeavesNothing(t *testing.T) {
	stream, _ := aStream(t)
	for _, n := range []int{0, 1, len(stream) / 2, len(stream)} {
		fs := vfs.NewMem()
		m := mustOpenImages(t, fs)
		before := files(t, fs, dataDir)
		in, err := m.Receive(7, 1, nil)
		require.NoError(t, err)
		_, err = in.Write(stream[:n])
		require.NoError(t, err)
		require.NoError(t, in.Cancel())
		require.NoError(t, in.Cancel())
		_, err = in.Write(nil)
		require.ErrorIs(t, err, ErrClosed)
		_, err = in.Close()
		require.ErrorIs(t, err, ErrClosed)
		require.Equal(t, before, files(t, fs, dataDir))
		require.NoError(t, m.Close())
	}
}

// TestSendSurvivesReaping checks that an image stays until it was sent to the last byte, and is then removed.
func TestSendSurvivesReaping(t *testing.T) {
	m, table := mustOpenImages(t, vfs.NewMem()), newFakeTable()
	table.set("a", "1")
	write(t, m, table)
	first := seal(t, m, 1)
	want := streamOf(t, m, first.ID)
	r, _, err := m.Send(first.ID)
	require.NoError(t, err)
	again, _, err := m.Send(first.ID)
	require.NoError(t, err)
	ids := func() (ids []uint64) {
		list, err := m.List()
		require.NoError(t, err)
		for _, info := range list {
			ids = append(ids, info.Index)
		}
		return ids
	}
	for n := uint64(2); n <= 5; n++ {
		table.set("a", fmt.Sprint(n))
		write(t, m, table)
		seal(t, m, n)
	}
	require.Equal(t, []uint64{5, 4, 1}, ids())
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, r.Close())
	require.Equal(t, []uint64{5, 4, 1}, ids(), "an image with an open stream must stay")
	require.NoError(t, again.Close())
	require.Equal(t, []uint64{5, 4}, ids())
	_, _, err = m.Send(first.ID)
	require.ErrorIs(t, err, ErrNoImage)
	require.NoError(t, m.Close())
}

// TestAnOlderImageCanBeReceived checks that a received image stays until it can be loaded, even if it is older than
// the existing ones.
func TestAnOlderImageCanBeReceived(t *testing.T) {
	stream, want := aStream(t)
	m := mustOpenImages(t, vfs.NewMem())
	for n := uint64(20); n < 23; n++ {
		seal(t, m, n)
	}
	info, err := receive(t, m, bytes.NewReader(stream))
	require.NoError(t, err)
	require.Equal(t, want, mustLoadImage(t, m, info.ID))
	require.NoError(t, m.Close())
}

// TestAReceivedImageReplacesADamagedOne checks that a received image replaces the same image that can no longer be
// read.
func TestAReceivedImageReplacesADamagedOne(t *testing.T) {
	stream, want := aStream(t)
	fs := vfs.NewMem()
	m := mustOpenImages(t, fs)
	info, err := receive(t, m, bytes.NewReader(stream))
	require.NoError(t, err)
	writeFile(t, fs, m.image(info.ID).file(metaName), []byte("gone"))
	_, err = m.List()
	require.ErrorIs(t, err, ErrDamaged)
	_, err = receive(t, m, bytes.NewReader(stream))
	require.NoError(t, err)
	require.Equal(t, want, mustLoadImage(t, m, info.ID))
	require.NoError(t, m.Close())
}

func FuzzIncoming(f *testing.F) {
	f.Add(streamByHand(1, part{"000001.sst", "x"}, part{"b", ""}), 3)
	f.Add(encodeStreamHead(1, 5), 1)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		fs := vfs.NewMem()
		m := mustOpenImages(t, fs)
		defer m.Close()
		before := files(t, fs, dataDir)
		in, err := m.Receive(7, 1, nil)
		require.NoError(t, err)
		piece = min(max(piece, 1), 1<<16)
		for len(b) > 0 && err == nil {
			_, err = in.Write(b[:min(piece, len(b))])
			b = b[min(piece, len(b)):]
		}
		_, err = in.Close()
		require.Error(t, err, "the fuzzer cannot make a whole store")
		require.Equal(t, before, files(t, fs, dataDir))
	})
}
