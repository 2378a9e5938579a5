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

// TestMakeRunsSeveralGroups checks that make run-cluster founds a cluster with the number of groups that it is given.
func TestMakeRunsSeveralGroups(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: make is missing (on Debian: apt install make)")
	}
	for set, want := range map[string]string{"": "1", "GROUPS=4": "4"} {
		args := append([]string{"-n", "--no-print-directory", "-C", "../..", "run-cluster"}, strings.Fields(set)...)
		out, err := exec.Command("make", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), `bin/weir demo --groups "`+want+`"`, set)
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
