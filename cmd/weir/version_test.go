package main

import (
	"encoding/json"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The command and the flag say the same; a program that was built of a commit names it.
func TestVersion(t *testing.T) {
	said := weir(t, "version")
	require.Equal(t, said, weir(t, "--version"))
	require.True(t, strings.HasPrefix(said, "weir "), said)
	require.Contains(t, said, runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)
	var b buildInfo
	require.NoError(t, json.Unmarshal([]byte(weir(t, "version", "--json")), &b))
	require.Equal(t, said, b.String()+"\n")
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if b.Commit == "" || err != nil {
		t.Skip("SKIPPED: weir was not built in a clone of its repository")
	}
	require.Equal(t, strings.TrimSpace(string(commit)), b.Commit)
	require.NotEmpty(t, b.Date)
}

func TestVersionsAreTold(t *testing.T) {
	b := buildInfo{Version: "0.1.0", Commit: "1f0c", Date: "2026-11-25T10:00:00Z", Go: "go1.26", OS: "linux", Arch: "arm64"}
	require.Equal(t, "weir 0.1.0, commit 1f0c, 2026-11-25T10:00:00Z, go1.26 linux/arm64", b.String())
	b.Commit, b.Date = "", ""
	require.Equal(t, "weir 0.1.0, go1.26 linux/arm64", b.String())
}
