package wallog

import (
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOneBitFlipped: every single bit is recognised, and hardly any other damage is.
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
	require.False(t, oneBitFlipped(len(b), 0), "nothing differs")
}
