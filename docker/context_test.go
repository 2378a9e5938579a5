package docker_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every package that weir is made of is sent to the engine that builds the image: what
// .dockerignore does not name is left out of it.
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
