//go:build weirfaults

package router_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/faults"
)

// TestADetectorWithoutAWitness checks that TestACutLinkDeposesNoLeader sees a failure detector that needs no second
// witness.
func TestADetectorWithoutAWitness(t *testing.T) {
	c, network, leader, log := newCutTier(t, faults.Of(faults.NoWitness))
	c.cut(network, leader, (leader+1)%3)
	require.Eventually(t, func() bool { return log.Count(standsLine) > 0 }, patience, time.Millisecond)
}
