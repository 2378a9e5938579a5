package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTableWarnsOfMemoryThatPosesAsADisk(t *testing.T) {
	for micros, warns := range map[float64]bool{0: false, 0.8: true, 180: false} {
		var out strings.Builder
		require.NoError(t, (&Report{FsyncMicros: micros}).WriteTable(&out))
		require.Equal(t, warns, strings.Contains(out.String(), "WARNING: the servers' data is not on a disk"))
	}
}
