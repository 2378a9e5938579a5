package raftstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
)

// slowWall is a machine whose wall clock was set back by an hour.
type slowWall struct{ persistence.Source }

func (s slowWall) WallNs() int64 { return s.Source.WallNs() - int64(time.Hour) }

// TestTheAgeIsUnknownUntilALeaderIsFound checks that a restarted node reports an unknown age until it finds a leader.
// It must not derive the age from a wall clock that was set back.
func TestTheAgeIsUnknownUntilALeaderIsFound(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.leader()
	c.take(c.nodes[0], "k", 10)
	for i := range c.nodes {
		c.stop(i)
	}
	c.opts[0].Source = slowWall{persistence.SystemSource()}
	c.restart(0)
	require.Equal(t, limiter.UnknownAge, c.nodes[0].StaleFor())
	c.restart(1)
	require.Eventually(t, func() bool { return c.nodes[0].StaleFor() < limiter.UnknownAge },
		patience, time.Millisecond)
	require.Eventually(t, func() bool { return c.nodes[0].ReadIndex() == nil }, patience, time.Millisecond)
	_, found := c.nodes[0].Inspect([]byte("k"))
	require.True(t, found)
}
