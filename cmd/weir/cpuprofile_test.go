package main

import (
	"debug/buildinfo"
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

// The compiler takes default.pgo without being told, and a program built without it works
// as well, only slower: nobody would notice that it is not found any more.
func TestBuiltByProfile(t *testing.T) {
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	for _, s := range info.Settings {
		if s.Key == "-pgo" {
			require.Equal(t, "default.pgo", filepath.Base(s.Value))
			return
		}
	}
	t.Fatal("built without a profile")
}

// The profile of a program that no longer exists would teach the compiler nothing.
func TestProfileIsOfThisProgram(t *testing.T) {
	out, err := exec.Command("go", "tool", "pprof", "-top", "-cum", "-nodecount=200", "default.pgo").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, road := range []string{"server.(*conn).batch", "server.(*framer)", "engine.(*Table).decideRound", "engine.(*index).find"} {
		require.Contains(t, string(out), road, "make profile renews it")
	}
	require.Greater(t, strings.Count(string(out), "weir-project/weir/"), 30)
}
