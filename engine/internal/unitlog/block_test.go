package unitlog

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/rule"
)

// TestUvarint compares the reading of numbers of every length with the standard library, whatever bytes follow.
func TestUvarint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		b := binary.AppendUvarint(nil, rng.Uint64()>>rng.IntN(64))
		for range rng.IntN(12) {
			b = append(b, byte(rng.Uint32()))
		}
		want, length := binary.Uvarint(b)
		got, n := uvarint(b)
		require.Equal(t, want, got, "% x", b)
		require.Equal(t, length, n, "% x", b)
	}
	_, n := uvarint([]byte{0x80, 0x80})
	require.Zero(t, n, "a cut number must not be read")
}

// TestLogWidths checks that the packed fields of logs and blocks are wide enough.
func TestLogWidths(t *testing.T) {
	require.Less(t, rule.MaxLogUnits, 1<<keptBits)
	require.LessOrEqual(t, maxBlock, blockEndMask)
	require.Less(t, maxBlock, 1<<(32-keptBits))
	require.Less(t, maxBlock/8, 1<<(16-blockEndBits))
}
