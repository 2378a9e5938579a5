//go:build weirfaults

package detector

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/faults"
)

// TestNoWitnessIsFound checks that the tests of this package see a detector that needs no second witness: it deposes a
// leader that a third host hears.
func TestNoWitnessIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 4, faults.Of(faults.NoWitness))
		cutOff(t, c, true, true)
		require.NotEmpty(t, c.elections)
	})
}
