package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeAsksForGo checks that make reports a missing or old Go before any other failure.
func TestMakeAsksForGo(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: make is missing (on Debian: apt install make)")
	}
	old := filepath.Join(t.TempDir(), "go")
	require.NoError(t, os.WriteFile(old, []byte("#!/bin/sh\necho 'go: go.mod requires go >= 1.26.0 (running go 1.20)' >&2; exit 1\n"), 0o755))
	for _, target := range []string{"build", "run", "run-cluster", "test", "test-quick", "lint"} {
		for program, want := range map[string]string{
			"/nowhere/go": `/nowhere/go is missing: install Go 1\.\d+\S* or later .* make GO=/usr/local/go/bin/go`,
			old:           `requires go >= 1\.26\.0(.|\n)*this Go cannot build weir: install Go 1\.\d+\S* or later .* GOTOOLCHAIN=auto make`,
		} {
			out, err := exec.Command("make", "--no-print-directory", "-C", "../..", target, "GO="+program).CombinedOutput()
			require.Error(t, err, target)
			require.Regexp(t, want, string(out), target)
		}
	}
}
