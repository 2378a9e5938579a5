package packaging_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirtest"
)

// TestTheModuleIsSmall bounds the size of the module, because everyone who imports the client downloads it.
func TestTheModuleIsSmall(t *testing.T) {
	archive, err := os.Stat(publish(t) + ".zip")
	require.NoError(t, err)
	require.Less(t, archive.Size(), int64(maxModuleBytes),
		"bytes of the module: was a large file committed by mistake?")
}

// TestGoInstall installs a release with the go command, as if it had its tag. The go command tries the published
// files first, then this machine's module cache, then the usual proxy. It has a module cache of its own. With
// -trimpath, other builds can reuse its compilations.
func TestGoInstall(t *testing.T) {
	if os.Getenv("WEIRTEST_PACKAGE") == "" {
		t.Skip("SKIPPED: go install is tested with WEIRTEST_PACKAGE=1 (make test-package)")
	}
	ordinary := strings.Fields(output(t, "", nil, "go", "env", "GOMODCACHE", "GOPROXY"))
	proxy, _, _ := strings.Cut(publish(t), "/"+release.Path)
	bin := t.TempDir()
	output(t, bin, []string{
		"GOPROXY=file://" + proxy + ",file://" + ordinary[0] + "/cache/download," + ordinary[1], "GONOPROXY=none",
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath -pgo=off", "GOSUMDB=off",
		"GOWORK=off", "GOBIN=" + bin,
	}, "go", "install", release.Path+"/cmd/weir@"+release.Version)
	said := output(t, bin, nil, filepath.Join(bin, "weir"), "version")
	require.True(t, strings.HasPrefix(said, "weir 0.1.0, go1."), said)
}

// TestImportTheClient follows client/README.md in a separate module, and checks what the page says about
// requirements. It needs no network, because the tests of this module already have the client's dependencies.
func TestImportTheClient(t *testing.T) {
	page, err := os.ReadFile("../client/README.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "\n```go\n")
	program, _, found := strings.Cut(rest, "\n```\n")
	require.True(t, found, "the page has a program")
	s := weirtest.Start(t)
	root, err := filepath.Abs("..")
	require.NoError(t, err)

	dir, env := t.TempDir(), []string{"GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "GOFLAGS=-mod=mod"}
	program = strings.ReplaceAll(program, "127.0.0.1:6380", s.Addr)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	output(t, dir, env, "go", "mod", "init", "example.com/importer")
	output(t, dir, env, "go", "mod", "edit", "-require="+release.Path+"@"+release.Version,
		"-replace="+release.Path+"="+root)
	output(t, dir, env, "go", "build", "-o", "importer", ".")
	require.Contains(t, string(page), "It prints `"+strings.TrimSpace(output(t, dir, nil, "./importer"))+"`.")
	s.Stop()
	require.Contains(t, string(page), "the program prints `"+strings.TrimSpace(output(t, dir, nil, "./importer"))+"`.")

	modules := compiled(t, dir, env, "{{with .Module}}{{.Path}}{{end}}")
	require.Equal(t, []string{"example.com/importer", "github.com/cespare/xxhash/v2", "github.com/redis/go-redis/v9",
		release.Path, "go.uber.org/atomic", "golang.org/x/sys"}, modules)
	for _, path := range compiled(t, dir, env, "{{.ImportPath}}") {
		if rest, ours := strings.CutPrefix(path, release.Path+"/"); ours {
			require.Regexp(t, "^(client|engine|latency|limits$|internal/(clientaddr|millis|offheap|quote)$)", rest,
				"the client needs no server")
		}
	}
}

// compiled returns a format's output for each package of a program.
func compiled(t *testing.T, dir string, env []string, format string) []string {
	t.Helper()
	lines := strings.Fields(output(t, dir, env, "go", "list", "-deps", "-f", format, "."))
	slices.Sort(lines)
	return slices.Compact(lines)
}
