package resp

import (
	"io"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dripReader returns at most step bytes for each read.
type dripReader struct {
	io.Reader
	step int
}

func (d dripReader) Read(b []byte) (int, error) { return d.Reader.Read(b[:min(len(b), d.step)]) }

// TestReadBufferFollowsWhatArrives checks reads of any size. The buffer has all bytes that have arrived. Beyond the
// pooled sizes it is at most twice as large as these bytes. At most twice as many bytes are copied as arrive.
func TestReadBufferFollowsWhatArrives(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 1<<14)
	for _, step := range []int{1, 7, 512, 5000, 1 << 20} {
		pools := &BufferPools{}
		r := ReadBuffer{Pools: pools}
		source := dripReader{strings.NewReader(content), step}
		copied, got := 0, 0
		for got < len(content) {
			base := unsafe.SliceData(r.buf)
			n, err := r.Fill(source)
			require.NoError(t, err)
			if unsafe.SliceData(r.buf) != base {
				copied += got
			}
			got += n
			require.Equal(t, got, len(r.Unread()))
			require.LessOrEqual(t, len(r.buf), max(largeReadBytes, 2*got))
		}
		assert.Equal(t, content, string(r.Unread()), "step %d", step)
		assert.LessOrEqual(t, copied, 2*len(content))
		r.Consume(got)
		_, err := r.Fill(source)
		require.ErrorIs(t, err, io.EOF)
		assert.LessOrEqual(t, len(r.buf), largeReadBytes, "back to a pooled size")
		assert.Zero(t, pools.Oversize.Load())
		r.Release()
	}
}

// TestReadBufferStaysSmall checks that small reads need no larger buffer, because the buffer reuses the space of
// consumed bytes.
func TestReadBufferStaysSmall(t *testing.T) {
	r := ReadBuffer{Pools: &BufferPools{}}
	for range 100 {
		_, err := r.Fill(strings.NewReader(strings.Repeat("x", 300)))
		require.NoError(t, err)
		r.Consume(290)
		r.Consume(len(r.Unread()) - 10)
		require.Len(t, r.buf, SmallReadBytes)
	}
	r.Shrink()
	assert.Equal(t, strings.Repeat("x", 10), string(r.Unread()))
}

func TestReadBufferShrinksToWhatIsUnread(t *testing.T) {
	r := ReadBuffer{Pools: &BufferPools{}}
	source := strings.NewReader(strings.Repeat("x", 3000))
	for source.Len() > 0 {
		_, err := r.Fill(source)
		require.NoError(t, err)
	}
	r.Shrink()
	assert.Len(t, r.buf, MediumReadBytes, "3000 bytes do not fit the small one")
	r.Consume(2900)
	r.Shrink()
	assert.Len(t, r.buf, SmallReadBytes)
	assert.Len(t, r.Unread(), 100)
}

func TestOversizeBuffersAreBounded(t *testing.T) {
	pools := &BufferPools{}
	pools.Oversize.Store(MaxOversizeBytes - largeReadBytes)
	r := ReadBuffer{Pools: pools}
	endless := strings.NewReader(strings.Repeat("x", 1<<20))
	var err error
	for err == nil {
		_, err = r.Fill(endless)
	}
	assert.ErrorIs(t, err, ErrReadMemory)
	assert.Len(t, r.Unread(), largeReadBytes)
}
