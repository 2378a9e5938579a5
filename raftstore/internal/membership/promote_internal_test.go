package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
)

// TestCaughtUp checks which members get a vote. A member without an entry gets none, also while the whole log is
// shorter than what a member may lack.
func TestCaughtUp(t *testing.T) {
	const committed = 1000
	for _, c := range []struct {
		index, committed uint64
		ago              time.Duration
		want             bool
	}{
		{committed, committed, 0, true},
		{committed - leadership.CaughtUp, committed, 0, true},
		{committed - leadership.CaughtUp - 1, committed, 0, false},
		{committed, committed, time.Minute, false},
		{1, 10, 0, true},
		{0, 10, 0, false},
	} {
		last := &host.Heard{Status: host.Status{Index: c.index}, At: time.Now().Add(-c.ago)}
		require.Equal(t, c.want, caughtUp(last, c.committed), "%+v", c)
	}
}
