package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestANewClusterWarnsOfNoUpgrade checks that the log of a new cluster does not speak of older versions of weir.
func TestANewClusterWarnsOfNoUpgrade(t *testing.T) {
	nodes := startCluster(t, 3)
	for _, p := range nodes {
		p.do("RL.FIXED", "k", "1m", "5")
	}
	for _, p := range nodes {
		require.NotContains(t, p.output(), "no longer starts")
	}
}
