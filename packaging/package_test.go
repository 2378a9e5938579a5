// Package packaging_test installs the packages of a release in an isolated file system. It runs their programs, and
// upgrades, removes and purges the packages.
package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/internal/weirbin"
)

const (
	before = "0.1.1"
	after  = "0.1.2"
)

// packages builds the packages for this machine's architecture with the release configuration. It leaves out other
// systems and programs, archives, the SBOM and the profile, which would take minutes.
func packages(t *testing.T, version string) (dir string) {
	t.Helper()
	text, err := os.ReadFile("../.goreleaser.yaml")
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(text, &config))
	build := config["builds"].([]any)[0].(map[string]any)
	build["goos"], build["goarch"] = []string{"linux"}, []string{runtime.GOARCH}
	build["flags"] = append(build["flags"].([]any), "-pgo=off")
	config["builds"] = []any{build}
	config["snapshot"] = map[string]any{"version_template": version}
	config["archives"] = []any{map[string]any{"formats": []string{"none"}}}
	delete(config, "sboms")
	dir = t.TempDir()
	config["dist"] = filepath.Join(dir, "dist")
	text, err = yaml.Marshal(config)
	require.NoError(t, err)
	file := filepath.Join(dir, "goreleaser.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	release := exec.Command("make", "packages", "PACKAGES_CONFIG="+file)
	release.Dir = ".."
	out, err := release.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, "dist")
}

// only returns the one file in dir that matches the name.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

// apart runs a script over the files of this machine. Its changes stay in memory and are lost when it ends. It has a
// network of its own, and its processes end with it.
func apart(t *testing.T, script string, env ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: packages are installed by root only")
	}
	alone := []string{"--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "testdata/apart.sh"}
	if out, err := exec.Command("unshare", append(alone, "true")...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no overlay of this machine's files here: %s", out)
	}
	var text []byte
	for _, part := range []string{"life.sh", script} {
		lines, err := os.ReadFile(filepath.Join("testdata", part))
		require.NoError(t, err)
		text = append(text, lines...)
	}
	cmd := exec.Command("unshare", append(alone, "sh", "-eux", "-c", string(text))...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestPackages installs, upgrades and removes the packages. It compiles for minutes: see make test-package.
func TestPackages(t *testing.T) {
	if os.Getenv("WEIRTEST_PACKAGE") == "" {
		t.Skip("SKIPPED: packages are tested with WEIRTEST_PACKAGE=1 (make test-package)")
	}
	old, next := packages(t, before), packages(t, after)
	for kind, tool := range map[string]string{"deb": "dpkg", "rpm": "rpm"} {
		t.Run(kind, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("SKIPPED: %s is missing (on Debian: apt install %s)", tool, tool)
			}
			apart(t, kind+".sh", "OLD="+only(t, old, "*."+kind), "NEW="+only(t, next, "*."+kind), "BEFORE="+before,
				"AFTER="+after)
		})
	}
}

// TestSettingsAreValid checks that weir accepts the settings that the packages install.
func TestSettingsAreValid(t *testing.T) {
	program, err := weirbin.Build(t.TempDir())
	require.NoError(t, err)
	out, _ := exec.Command(program, "doctor", "--json", "--config", "weir.yaml",
		"--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--data-dir=").CombinedOutput()
	require.Contains(t, string(out), "weir.yaml, the flags and variables are valid")
}
