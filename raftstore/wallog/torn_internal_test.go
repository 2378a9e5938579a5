package wallog

import (
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOneBitFlipped checks that every single flipped bit is recognised, and that two flipped bits are not.
func TestOneBitFlipped(t *testing.T) {
	b := []byte("a write of which one bit is flipped, and then two of them")
	sum := crc32.Checksum(b, castagnoli)
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		require.True(t, oneBitFlipped(len(b), crc32.Checksum(b, castagnoli)^sum), "bit %d", i)
		b[(i/8+1)%len(b)] ^= 1
		require.False(t, oneBitFlipped(len(b), crc32.Checksum(b, castagnoli)^sum), "bit %d and another", i)
		b[(i/8+1)%len(b)] ^= 1
		b[i/8] ^= 1 << (i % 8)
	}
	require.False(t, oneBitFlipped(len(b), 0), "equal checksums must not count as a flipped bit")
}

// TestEndsWrite checks that a complete write ends inside a sector, or has a checksum that one flipped bit explains.
func TestEndsWrite(t *testing.T) {
	write := make([]byte, 2*sectorBytes)
	for i := range write {
		write[i] = byte(i)
	}
	sum := func(end int) uint32 { return crc32.Checksum(write[:end-frameHeadBytes], castagnoli) }
	const part = 100 // offset in its sector at which the write begins
	require.True(t, endsWrite(write[:600], 0, 0))
	require.False(t, endsWrite(write, 0, sum(len(write))+1), "a write that ends with a sector may be torn")
	require.True(t, endsWrite(write, part, sum(len(write))+1))
	require.False(t, endsWrite(write[:2*sectorBytes-part], part, 0))
	flipped := sum(len(write))
	write[sectorBytes] ^= 4
	require.True(t, endsWrite(write, 0, flipped))
	write[sectorBytes] ^= 3
	require.False(t, endsWrite(write, 0, flipped), "two flipped bits must not be explained")
	require.False(t, endsWrite(write[:frameHeadBytes-1], 0, 0), "a part of a frame is not a write")
	require.True(t, endsWrite(write[:frameHeadBytes], 0, 0))
}
