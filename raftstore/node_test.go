package raftstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThreeNodesDecideAsOne(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.leader()
	admitted := 0
	for i := range 60 {
		d := c.take(c.nodes[i%3], "key", 20)
		admitted += int(d.Allowed)
	}
	require.Equal(t, 20, admitted)
	c.agree()
}

func TestCountsSurviveTheLeader(t *testing.T) {
	c := newCluster(t, 3, nil)
	_, i := c.leader()
	for range 5 {
		require.EqualValues(t, 1, c.take(c.nodes[i], "key", 10).Allowed)
	}
	c.stop(i)
	c.leader()
	next := c.nodes[(i+1)%3]
	require.EqualValues(t, 4, c.take(next, "key", 10).Remaining)
	c.restart(i)
	require.EqualValues(t, 3, c.take(c.nodes[i], "key", 10).Remaining)
	c.agree()
}

func TestAllNodesRestart(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, _ := c.leader()
	for range 5 {
		c.take(leader, "key", 10)
	}
	require.NoError(t, leader.Snapshot())
	c.take(leader, "key", 10)
	for i := range 3 {
		c.stop(i)
	}
	for i := range 3 {
		c.restart(i)
	}
	leader, _ = c.leader()
	require.EqualValues(t, 3, c.take(leader, "key", 10).Remaining)
	c.agree()
}
