package leadership

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// TestAMemberThatLagsWasUp checks that no wall clock gives credit if one member kept running, even if that member
// lags.
func TestAMemberThatLagsWasUp(t *testing.T) {
	source := persistence.SystemSource()
	l := New(Config{Source: source})
	s := fsm.State{Index: 10, At: engine.Stamp{NowNs: 1e15, WallOffsetNs: 1e17}}
	last := raftlog.Arrival{Index: 10, RawNs: source.MonotonicNs()}
	to := l.resume(&s, last, []host.Status{{Held: host.Held{Index: 10}}, {Held: host.Held{Index: 8, Live: true}}})
	require.Equal(t, s.At.WallOffsetNs, to.WallOffsetNs)
	require.Zero(t, l.ColdStarts.Load())
}

// TestAgreedWallClocks checks which value a quorum of wall clocks agrees on.
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
