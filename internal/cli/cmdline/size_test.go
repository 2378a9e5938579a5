package cmdline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "17b": 17, "1kb": 1 << 10, "64KB": 64 << 10, "3mb": 3 << 20, "2Gb": 2 << 30,
		"8589934591gb": (1<<33 - 1) << 30,
	} {
		var b ByteSize
		require.NoError(t, b.UnmarshalText([]byte(text)), text)
		require.EqualValues(t, want, b, text)
	}
	for _, text := range []string{"", "gb", "-1", "1.5gb", "1tb", "8589934592gb", "99999999999999999999", "1 gb"} {
		var b ByteSize
		require.ErrorContains(t, b.UnmarshalText([]byte(text)), "must be like", text)
	}
}
