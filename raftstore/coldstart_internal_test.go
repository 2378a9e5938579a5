package raftstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// TestAMemberThatLagsWasUp: a member that has been up since an entry before the last one
// proves that the cluster was not down, so no wall clock gives credit.
func TestAMemberThatLagsWasUp(t *testing.T) {
	source := persistence.SystemSource()
	l := &leadership{host: &host{source: source}}
	s := fsm.State{Index: 10, At: engine.Stamp{NowNs: 1e15, WallOffsetNs: 1e17}}
	last := raftlog.Arrival{Index: 10, RawNs: source.MonotonicNs()}
	to := l.resume(&s, last, []status{{Held: &held{Index: 10}}, {Held: &held{Index: 8, Live: true}}})
	require.Equal(t, s.At.WallOffsetNs, to.WallOffsetNs)
	require.Zero(t, l.coldStarts.Load())
}

func TestAgreedWallClocks(t *testing.T) {
	for _, c := range []struct {
		values []int64
		quorum int
		want   int64
		ok     bool
	}{
		{[]int64{5}, 1, 5, true},
		{[]int64{5, 900, 4}, 2, 5, true},
		{[]int64{5, -900, 4}, 2, 4, true},
		{[]int64{5, 900}, 2, 5, true},
		{[]int64{900}, 2, 0, false},
		{nil, 1, 0, false},
		{[]int64{900, 800, 3, 2, 1}, 3, 3, true},
	} {
		got, ok := agreed(c.values, c.quorum)
		require.Equal(t, c.want, got, "%v", c.values)
		require.Equal(t, c.ok, ok, "%v", c.values)
	}
}

// TestAWallClockIsNeverUnderstated: what was heard of another's counts on by the clock
// of this machine that shows more.
func TestAWallClockIsNeverUnderstated(t *testing.T) {
	h := heard{at: time.Now(), wallNs: 1000, rawNs: 50}
	require.GreaterOrEqual(t, h.wallNow(40), int64(1000), "the monotonic clock went back")
	require.Equal(t, 1000+int64(time.Hour), h.wallNow(50+int64(time.Hour)))
}
