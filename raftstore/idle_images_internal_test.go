package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIdleImagesAreClosed checks that a group closes the store of its images while it is idle.
func TestIdleImagesAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBareNode(t)
		b.keepImages(t)
		require.False(t, b.images.IsIdle())
		time.Sleep(time.Minute)
		require.True(t, b.images.IsIdle())
		b.housekeep()
		synctest.Wait()
		require.False(t, b.images.IsIdle())
	})
}
