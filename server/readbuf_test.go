package server

import (
	"io"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dripReader gives at most step bytes a read.
type dripReader struct {
	io.Reader
	step int
}

func (d dripReader) Read(b []byte) (int, error) { return d.Reader.Read(b[:min(len(b), d.step)]) }

// However it drips, what arrives is in the buffer, the buffer is at most twice
// as large, and the bytes copied on the way are at most twice those that came.
func TestReadBufferFollowsWhatArrives(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 1<<14)
	for _, step := range []int{1, 7, 512, 5000, 1 << 20} {
		pools := &bufferPools{}
		r := readBuffer{pools: pools}
		source := dripReader{strings.NewReader(content), step}
		copied, got := 0, 0
		for got < len(content) {
			base := unsafe.SliceData(r.buf)
			n, err := r.fill(source)
			require.NoError(t, err)
			if unsafe.SliceData(r.buf) != base {
				copied += got
			}
			got += n
			require.Equal(t, got, len(r.unread()))
			require.LessOrEqual(t, len(r.buf), max(largeReadBytes, 2*got))
		}
		assert.Equal(t, content, string(r.unread()), "step %d", step)
		assert.LessOrEqual(t, copied, 2*len(content))
		r.consume(got)
		_, err := r.fill(source)
		require.ErrorIs(t, err, io.EOF)
		assert.LessOrEqual(t, len(r.buf), largeReadBytes, "back to a pooled size")
		assert.Zero(t, pools.oversize.Load())
		r.release()
	}
}

// Small reads stay in the small buffer; the front is used again.
func TestReadBufferStaysSmall(t *testing.T) {
	r := readBuffer{pools: &bufferPools{}}
	for range 100 {
		_, err := r.fill(strings.NewReader(strings.Repeat("x", 300)))
		require.NoError(t, err)
		r.consume(290)
		r.consume(len(r.unread()) - 10)
		require.Len(t, r.buf, smallReadBytes)
	}
	r.shrink()
	assert.Equal(t, strings.Repeat("x", 10), string(r.unread()))
}

func TestReadBufferShrinksToWhatIsUnread(t *testing.T) {
	r := readBuffer{pools: &bufferPools{}}
	source := strings.NewReader(strings.Repeat("x", 3000))
	for source.Len() > 0 {
		_, err := r.fill(source)
		require.NoError(t, err)
	}
	r.shrink()
	assert.Len(t, r.buf, mediumReadBytes, "3000 bytes do not fit the small one")
	r.consume(2900)
	r.shrink()
	assert.Len(t, r.buf, smallReadBytes)
	assert.Len(t, r.unread(), 100)
}

func TestOversizeBuffersAreBounded(t *testing.T) {
	pools := &bufferPools{}
	pools.oversize.Store(maxOversizeBytes - largeReadBytes)
	r := readBuffer{pools: pools}
	endless := strings.NewReader(strings.Repeat("x", 1<<20))
	var err error
	for err == nil {
		_, err = r.fill(endless)
	}
	assert.ErrorIs(t, err, errReadMemory)
	assert.Len(t, r.unread(), largeReadBytes)
}
