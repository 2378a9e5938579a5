package docker_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheBuildHasEveryPackage checks that every package of weir is part of the build context. .dockerignore excludes
// all paths that it does not name.
func TestTheBuildHasEveryPackage(t *testing.T) {
	ignore, err := os.ReadFile("../.dockerignore")
	require.NoError(t, err)
	kept := strings.Split(string(ignore), "\n")
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}",
		"../cmd/weir").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, pkg := range strings.Fields(string(out)) {
		top, _, _ := strings.Cut(strings.TrimPrefix(pkg, "github.com/weir-project/weir/"), "/")
		require.True(t, slices.Contains(kept, "!"+top), "%s is not in .dockerignore", pkg)
	}
}
