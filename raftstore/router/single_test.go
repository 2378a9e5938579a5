package router

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// TestASingleGroup checks that a single group decides keys of different slots in one step, together with a change of a
// policy. Its leader is known before the node of the leader is.
func TestASingleGroup(t *testing.T) {
	r, groups := newTest(t, 1)
	set := setPolicy("p", 5)
	out := make([]engine.Decision, 3)
	require.NoError(t, r.DecideAtomic([]engine.Op{quota("a", 5), quota("b", 5), set}, out))
	for _, d := range out {
		require.Equal(t, engine.OK, d.Status)
	}
	require.Equal(t, 1, groups[0].atomic)

	groups[0].topology = limiter.Topology{Self: "a", Leader: "b", Term: 7}
	require.Equal(t, "b", r.LeaderOf(0))
	require.Equal(t, []limiter.Group{{Slots: hashslot.All, Leader: "b", Term: 7}}, r.Topology().Groups)
}
