package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyARowOfDenialsIsSure(t *testing.T) {
	var d denials
	for range surely {
		require.False(t, d.sure())
		d.saw(true)
	}
	require.True(t, d.sure())
	d.saw(true)
	d.saw(false)
	require.False(t, d.sure(), "one that was admitted ends the row")
}
