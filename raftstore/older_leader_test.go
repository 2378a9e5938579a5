//go:build weirfaults

package raftstore_test

import (
	"testing"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore"
)

// TestAFollowerOfAnOlderLeaderShowsWhatWasDecided checks that reads of every node contain all acknowledged decisions
// if a leader of an older version refuses ReadIndex questions.
func TestAFollowerOfAnOlderLeaderShowsWhatWasDecided(t *testing.T) {
	newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.Faults = faults.Of(
			faults.NoReadIndex)
	}).showsWhatWasDecided()
}
