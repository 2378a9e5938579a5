package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCPUProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu")
	p := start(t, "--cpu-profile", file, "--data-dir=")
	require.Equal(t, "PONG", p.do("PING"))
	p.stop()
	out, err := exec.Command("go", "tool", "pprof", "-raw", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PeriodType: cpu nanoseconds")
	require.Contains(t, refusal(t, exec.Command(binary, "serve", "--cpu-profile", t.TempDir())), "--cpu-profile: open")
}

// TestMakeBuildsByTheProfile checks that make build and a release compile weir with its profile. The Makefile's GOFLAGS
// leave it out everywhere else, because the profile doubles the work.
func TestMakeBuildsByTheProfile(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: make is missing (on Debian: apt install make)")
	}
	recipe, err := exec.Command("make", "--no-print-directory", "-C", "../..", "-n", "build").CombinedOutput()
	require.NoError(t, err, "%s", recipe)
	instead := strings.NewReplacer("go build", "go build -n", "-o bin/weir", "-o "+filepath.Join(t.TempDir(), "weir"))
	plan := exec.Command("sh", "-c", instead.Replace(string(recipe)))
	plan.Dir, plan.Env = "../..", append(os.Environ(), "GOFLAGS=-pgo=off")
	out, err := plan.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `build\\t-pgo=\S+/cmd/weir/default\.pgo`, string(out), "the binary must name its profile")
	release, err := os.ReadFile("../../.goreleaser.yaml")
	require.NoError(t, err)
	require.Contains(t, string(release), "env: [CGO_ENABLED=0, GOFLAGS=]", "a release takes no flags of the Makefile")
}

// TestProfileIsOfThisProgram checks that the profile still names functions of this program. An outdated profile would
// not help the compiler.
func TestProfileIsOfThisProgram(t *testing.T) {
	out, err := exec.Command("go", "tool", "pprof", "-top", "-cum", "-nodecount=200", "default.pgo").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, function := range []string{"server.(*conn).batch", "server/resp.(*Framer)", "engine.(*Table).decideBatch",
		"engine/internal/store.(*Index).find"} {
		require.Contains(t, string(out), function, "the profile is out of date: run make profile")
	}
	require.Greater(t, strings.Count(string(out), "weir-project/weir/"), 30)
}
