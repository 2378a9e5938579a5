package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAWallClockIsNeverUnderstated: the last wall clock of another node is advanced by that clock of this machine
// that has advanced more.
func TestAWallClockIsNeverUnderstated(t *testing.T) {
	h := Heard{At: time.Now(), WallNs: 1000, RawNs: 50}
	require.GreaterOrEqual(t, h.WallNow(40), int64(1000), "the monotonic clock went back")
	require.Equal(t, 1000+int64(time.Hour), h.WallNow(50+int64(time.Hour)))
}
