package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAWallClockIsNeverUnderstated checks that another node's wall clock is extrapolated by the local clock that
// advanced most, so it is never too early.
func TestAWallClockIsNeverUnderstated(t *testing.T) {
	h := Heard{At: time.Now(), WallNs: 1000, RawNs: 50}
	require.GreaterOrEqual(t, h.WallNow(40), int64(1000), "the wall clock must not go back with the monotonic clock")
	hour := int64(time.Hour)
	require.Equal(t, 1000+hour+hour/maxGain, h.WallNow(50+hour), "the other clock may be faster")
}
