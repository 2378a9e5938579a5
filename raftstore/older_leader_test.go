//go:build weirfaults

package raftstore_test

import (
	"testing"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore"
)

// TestAFollowerOfAnOlderLeaderShowsWhatWasDecided: a leader of an older weir refuses ReadIndex questions. Reads of
// every node still contain all acknowledged decisions.
func TestAFollowerOfAnOlderLeaderShowsWhatWasDecided(t *testing.T) {
	newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.Faults = faults.Of(
			faults.NoReadIndex)
	}).showsWhatWasDecided()
}
