package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIdleImagesAreClosed checks that a group of several closes the store of its images while it is idle, and that the
// only group of a process keeps it open.
func TestIdleImagesAreClosed(t *testing.T) {
	for _, groups := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			b := newBareNode(t)
			b.keepImages(t)
			b.own.Options.Groups = groups
			require.False(t, b.group.images.IsIdle())
			time.Sleep(time.Minute)
			require.True(t, b.group.images.IsIdle())
			b.group.housekeep()
			synctest.Wait()
			require.Equal(t, groups == 1, b.group.images.IsIdle())
		})
	}
}
