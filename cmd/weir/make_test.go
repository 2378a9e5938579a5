package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeAsksForGo checks that make reports a missing or old Go before any other failure.
func TestMakeAsksForGo(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: make is missing (on Debian: apt install make)")
	}
	old := filepath.Join(t.TempDir(), "go")
	require.NoError(t, os.WriteFile(
		old, []byte("#!/bin/sh\necho 'go: go.mod requires go >= 1.26.0 (running go 1.20)' >&2; exit 1\n"), 0o755))
	for _, target := range []string{"build", "run", "run-cluster", "test", "test-quick", "lint"} {
		for program, want := range map[string]string{
			"/nowhere/go": `/nowhere/go is missing: install Go 1\.\d+\S* or later .* make GO=/usr/local/go/bin/go`,
			old:           `requires go >= 1\.26\.0(.|\n)*this Go cannot build weir: install Go 1\.\d+\S* or later .* GOTOOLCHAIN=auto make`,
		} {
			out, err := exec.Command("make", "--no-print-directory", "-C", "../..", target,
				"GO="+program).CombinedOutput()
			require.Error(t, err, target)
			require.Regexp(t, want, string(out), target)
		}
	}
}

// TestMakeRunsClusters checks that make run-cluster founds a cluster with the numbers that it is given.
func TestMakeRunsClusters(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: make is missing (on Debian: apt install make)")
	}
	for set, want := range map[string]string{
		"":                               `bin/weir demo --groups "1" --first-port "6380" --dir "weir-data-cluster"`,
		"GROUPS=4 CLUSTER_DIR=x":         `bin/weir demo --groups "4" --first-port "6380" --dir "x"`,
		"NODES=6 GROUPS=16 REPLICAS=3":   `scripts/run-cluster.sh bin/weir "6" "16" "3" "6380" "weir-data-nodes"`,
		"REPLICAS=1 FIRST_PORT=7000":     `scripts/run-cluster.sh bin/weir "3" "1" "1" "7000" "weir-data-nodes"`,
		"NODES=5 GROUPS=2 CLUSTER_DIR=x": `scripts/run-cluster.sh bin/weir "5" "2" "0" "6380" "x"`,
	} {
		args := append([]string{"-n", "--no-print-directory", "-C", "../..", "run-cluster"}, strings.Fields(set)...)
		out, err := exec.Command("make", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), want+"\n", set)
	}
}

// TestMakeNamesTests checks that every -run pattern of the Makefile matches a test in each of the packages behind it.
// The go command succeeds if a pattern matches nothing, so a test that moves would no longer run.
func TestMakeNamesTests(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	// -C or cd names the directory of another module, which the packages are in.
	commands := regexp.MustCompile(`(?m)^.*?(?:(?: -C|cd) (\S+) .*)?-run '([^']+)'((?: \.(?:/\S+)?)+)`).
		FindAllStringSubmatch(string(makefile), -1)
	require.Greater(t, len(commands), 8)
	for _, c := range commands {
		pattern, err := regexp.Compile(strings.ReplaceAll(c[2], "$$", "$"))
		require.NoError(t, err)
		for _, place := range strings.Fields(c[3]) {
			place = "./" + filepath.Join(c[1], place)
			require.True(t, matchesTest(t, pattern, place), "-run '%s' must match a test of %s", c[2], place)
		}
	}
}

// matchesTest reports whether a pattern matches the name of a test in a package, or below it for ./package/... .
func matchesTest(t *testing.T, pattern *regexp.Regexp, place string) bool {
	t.Helper()
	dir, below := strings.CutSuffix(place, "/...")
	list := []string{"ls-files", "../../" + dir + "/*_test.go"}
	if !below {
		list[1] = ":(glob)" + list[1]
	}
	files, err := exec.Command("git", list...).Output()
	require.NoError(t, err)
	for _, file := range strings.Fields(string(files)) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			if pattern.Match(test[1]) {
				return true
			}
		}
	}
	return false
}
