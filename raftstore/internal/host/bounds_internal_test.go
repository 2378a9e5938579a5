package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBoundsOfOneKindOfMachine checks that slightly different memory bounds count as the same, so machines of one
// kind cause no warning.
func TestBoundsOfOneKindOfMachine(t *testing.T) {
	for _, c := range []struct {
		a, b int64
		same bool
	}{
		{0, 0, true}, {0, 1, false}, {0, 1 << 30, false},
		{1600, 1600, true}, {1500, 1600, true}, {1499, 1600, false}, {1, 1 << 30, false},
	} {
		require.Equal(t, c.same, sameBound(c.a, c.b), "%d and %d", c.a, c.b)
		require.Equal(t, c.same, sameBound(c.b, c.a), "%d and %d", c.b, c.a)
	}
}
