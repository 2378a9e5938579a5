package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
)

// TestAMemberThatLagsWasUp: a member that has been up since an entry before the last one
// proves that the cluster was not down, so no wall clock gives credit.
func TestAMemberThatLagsWasUp(t *testing.T) {
	source := persistence.SystemSource()
	l := &leadership{host: &host{source: source}}
	s := state{Index: 10, At: engine.Stamp{NowNs: 1e15, WallOffsetNs: 1e17}}
	last := arrival{index: 10, rawNs: source.MonotonicNs()}
	to := l.resume(&s, last, []status{{Held: &held{Index: 10}}, {Held: &held{Index: 8, Live: true}}})
	require.Equal(t, s.At.WallOffsetNs, to.WallOffsetNs)
	require.Zero(t, l.coldStarts.Load())
}
