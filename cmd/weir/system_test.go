package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// State is kept only where a directory can be synced; make build-all compiles the rest.
func TestSystemsThatKeepState(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "freebsd"} {
		require.NoError(t, checkSystemNamed(goos))
	}
	require.ErrorContains(t, checkSystemNamed("windows"), "do not run on Windows")
}
