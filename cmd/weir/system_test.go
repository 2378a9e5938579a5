package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSystemsThatKeepState checks that state is only stored on systems that can sync a directory. make build-all
// compiles for the others.
func TestSystemsThatKeepState(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "freebsd"} {
		require.NoError(t, checkSystemNamed(goos))
	}
	require.ErrorContains(t, checkSystemNamed("windows"), "do not run on Windows")
}
