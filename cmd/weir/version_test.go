package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/buildinfo"
)

// TestVersion checks that the command and the flag print the same version.
func TestVersion(t *testing.T) {
	said := weir(t, "version")
	require.Equal(t, said, weir(t, "--version"))
	require.True(t, strings.HasPrefix(said, "weir "), said)
	require.Contains(t, said, runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)
	var b buildinfo.Info
	require.NoError(t, json.Unmarshal([]byte(weir(t, "version", "--json")), &b))
	require.Equal(t, said, b.String()+"\n")
}
